"""The package's own names: loaded when they are asked for, and not before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import checkpoint_action


def test_every_public_name_is_there() -> None:
    for name in checkpoint_action.__all__:
        assert getattr(checkpoint_action, name) is not None
        assert name in dir(checkpoint_action)
    with pytest.raises(AttributeError, match="has no attribute 'jobs'"):
        checkpoint_action.jobs  # type: ignore[attr-defined]  # noqa: B018  # asked for to be refused


@pytest.mark.parametrize("module", ["checkpoint_action", "checkpoint_action.cli"])
def test_nobody_pays_for_what_is_not_asked_for(module: str) -> None:
    text = f"import sys, {module}; print([name for name in sys.modules if name.startswith('checkpoint_action.api')])"
    told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert told.stdout == "[]\n"


def test_the_package_alone_brings_nothing_with_it() -> None:
    text = "import sys; before = set(sys.modules); import checkpoint_action; print(set(sys.modules) - before)"
    told = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert told.stdout == "{'checkpoint_action'}\n"
