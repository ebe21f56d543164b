"""SIGKILL at each point of ``reset ID`` and ``accept ID``: the record is the old or the new one, and stays that."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from checkpoint_action import cli
from checkpoint_action.runner.appending import AppendedFile
from checkpoint_action.runner.journal import StatePaths, load
from tests.crash.test_transitions import (
    CRASH,
    RESULTS,
    STEPS,
    command,
    crash,
    crash_in_fold,
    recorded,
    results,
    run,
    run_and_crash,
    starts,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.mark import ParameterSet

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL"),
]

SNAPSHOT, JOURNAL = ".json", ".journal"
FILES = (SNAPSHOT, JOURNAL)


# ---- in the process that crashes ------------------------------------------------------------------------------------


def crash_at_unlink(when: str) -> None:
    """Crash before or after the snapshot is removed."""
    original = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if not str(self).endswith(SNAPSHOT):
            original(self, missing_ok)
            return
        if when == "after":
            original(self, missing_ok)
        crash()

    Path.unlink = unlink  # type: ignore[method-assign]


def crash_in_append(cut: str) -> None:
    """Crash when only a part of the line, or all of it, is written.

    :param cut: how many thousandths.
    """

    original = AppendedFile.append

    def patched(self: AppendedFile, data: bytes, *, sync: bool = True) -> NoReturn:
        original(self, data[: len(data) * int(cut) // 1000])
        crash()

    AppendedFile.append = patched  # type: ignore[method-assign]


CRASHES: dict[str, Callable[..., None]] = {
    "unlink": crash_at_unlink,
    "append": crash_in_append,
    "fold": lambda ending, where: crash_in_fold(ending, where, 1),
}


def crashing_main() -> None:
    """The tool, with a crash where the environment asks for one."""
    kind, *words = os.environ[CRASH].split(" ")
    CRASHES[kind](*words)
    sys.exit(cli.main(sys.argv[1:]))


# ---- in the test ----------------------------------------------------------------------------------------------------

# Two lines are appended to forget a step, one to accept it.
FORGET = {
    "unlink before": False,
    "unlink after": False,
    "append 0": False,
    "append 100": False,
    "append 450": False,
    "append 750": True,
    "append 1000": True,
}
ACCEPT = {"append 0": False, "append 500": False, "append 1000": True}
FOLDS = {f"fold {ending} {where}": True for ending in FILES for where in ("writing", "before", "after")}
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="finds the name of an open file in /proc")


def points(*groups: dict[str, bool]) -> list[ParameterSet]:
    found = []
    for group in groups:
        marks = [on_linux] if group is FOLDS else []
        found += [pytest.param(where, new, id=where.replace(" ", "-"), marks=marks) for where, new in group.items()]
    return found


def told_by_each_file(folder: Path, elsewhere: Path) -> list[dict[str, str]]:
    """Status of each step, as each of the two files alone tells it, where it is there."""
    found = []
    for ending in FILES:
        file = StatePaths(folder, "three")._path(ending)
        if file.exists():
            alone = elsewhere / ending
            alone.mkdir()
            shutil.copy(file, alone)
            found.append({step: one.status.value for step, one in load(StatePaths(alone, "three")).records.items()})
    return found


DONE = dict.fromkeys(STEPS, "done")
WITHOUT_B = {"a": "done", "c": "done"}


@pytest.mark.parametrize(("where", "new"), points(FORGET, FOLDS))
def test_crash_while_a_step_is_forgotten(tmp_path: Path, where: str, new: bool) -> None:
    folder = tmp_path / "job"
    folder.mkdir()
    run(folder, command())
    run_and_crash(folder, where, ["reset", "b", "--job", "three"], __name__)
    wanted = WITHOUT_B if new else DONE
    assert recorded(folder) == wanted
    told = told_by_each_file(folder, tmp_path)
    assert told
    assert all(alone == wanted for alone in told)
    run(folder, command())
    assert starts(folder) == {"a": 1, "b": 1 + new, "c": 1}
    assert results(folder) == RESULTS
    assert recorded(folder) == DONE


@pytest.mark.parametrize(("where", "new"), points(ACCEPT, FOLDS))
def test_crash_while_a_step_is_accepted(tmp_path: Path, where: str, new: bool) -> None:
    run(tmp_path, command())
    changed = command(touch="b")  # its command is another, but does the same
    run_and_crash(tmp_path, where, ["accept", "b", *changed], __name__)
    assert recorded(tmp_path) == DONE
    run(tmp_path, changed)
    assert starts(tmp_path) == {"a": 1, "b": 2 - new, "c": 1}
    assert results(tmp_path) == RESULTS
    run(tmp_path, changed)
    assert starts(tmp_path) == {"a": 1, "b": 2 - new, "c": 1}
