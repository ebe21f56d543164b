"""Links out of the documentation lead to the repository on the site, and one that leads nowhere is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ci.loading import script

docs_hooks = script("docs_hooks")
HOME = "https://example.com/owner/project"


@pytest.mark.parametrize(
    ("page", "link", "leads_to"),
    [
        ("a.md", "../README.md", f"{HOME}/blob/main/README.md"),
        ("a.md", "../README.md#try-it", f"{HOME}/blob/main/README.md#try-it"),
        ("a.md", "../examples", f"{HOME}/tree/main/examples"),
        ("how-to/a.md", "../../README.md", f"{HOME}/blob/main/README.md"),
        ("how-to/a.md", "../done.md#x", "../done.md#x"),
        ("a.md", "done.md", "done.md"),
        ("a.md", "https://example.com/..", "https://example.com/.."),
    ],
)
def test_a_link_leads_to_where_the_file_is(page: str, link: str, leads_to: str) -> None:
    text, lost = docs_hooks.rewritten(f"see [this]({link}) and that", Path(page), HOME)
    assert (text, lost) == (f"see [this]({leads_to}) and that", [])


def test_a_link_to_no_file_is_named() -> None:
    assert docs_hooks.rewritten("[x](../nothing.md)", Path("a.md"), HOME)[1] == ["../nothing.md"]


def test_a_pipe_in_the_code_of_a_table_has_no_backslash() -> None:
    table = "| option | |\n|---|---|\n| `--color` `auto\\|never` | a \\| b |\n"
    assert docs_hooks.with_plain_pipes(table) == table.replace("auto\\|never", "auto|never")
    assert docs_hooks.with_plain_pipes("in `a\\|b` text") == "in `a\\|b` text"
