"""Which paths are taken and which are refused, by the rules of either kind of system."""

from __future__ import annotations

import pytest

from checkpoint_action.errors import BundleError
from checkpoint_action.store import paths


@pytest.mark.parametrize(
    "path",
    [
        "a\\b",
        "C:",
        "C:x",
        "file:stream",
        "CON",
        "con.txt",
        "nul .x",
        "COM1",
        "lpt\u00b2.log",
        "CONOUT$",
        "a.",
        "a ",
        "d./x",
        "what?",
        "a*",
        'a"',
        "a<b",
        "a|b",
        "tab\t",
        "\U0001f600" * 128,
    ],
)
def test_windows_refuses_what_means_something_else_there(path: str) -> None:
    with pytest.raises(BundleError, match="refused path"):
        paths.check_path(path, windows=True)


@pytest.mark.parametrize("path", ["console", "a.b", ".hidden", "com10", "comm1", "nuls", "a b/c", "\u00e4/\u00f6"])
def test_windows_takes_plain_names(path: str) -> None:
    paths.check_path(path, windows=True)


def test_posix_takes_what_is_only_odd() -> None:
    for path in ["a\\b", "C:", "CON", "a.", "line\nbreak", "\udcff"]:
        paths.check_path(path, windows=False)
