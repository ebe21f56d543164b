"""What follows a run never changes how it has ended."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.cli import main
from checkpoint_action.runner import remembering

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is kept there")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_while_the_answers_are_kept_ends_that_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "checkpoint.yml").write_text("job: demo\nshell: sh\nsteps:\n  - {id: a, run: 'true'}\n")
    monkeypatch.chdir(tmp_path)
    asked = []

    def remember(*_args: object, **_known: object) -> None:
        asked.append(name)
        signal.raise_signal(getattr(signal, name))
        asked.append("went on")

    monkeypatch.setattr(remembering, "remember", remember)
    assert main(["--quiet"]) == 0
    assert asked == [name]
