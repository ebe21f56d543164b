"""Whatever the graph: its steps, each run once on a machine of its own, leave together what one machine leaves."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_action.action_fanout import FanOut
from checkpoint_action.model import AUTO, Job
from checkpoint_action.runner import uploads as uploads_module
from checkpoint_action.runner.checkpoints import Checkpoints
from checkpoint_action.runner.engine import Engine
from checkpoint_action.runner.fanout import part_of
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.runner.process import Command, End, Limits, Outcome
from checkpoint_action.runner.run_options import RunOptions
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.runner.stop import StopRequest
from tests.runner.jobs import job, step
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.runner.events import RunEnded

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="modes of files")]

KEYS = KeyScheme("run1", "demo", "1", "1", shared=True)


@dataclass
class Work:
    """What a step does: to files that steps above it were the last to touch.

    :param needs: places of earlier steps.
    :param read: files that go into its own.
    """

    needs: tuple[int, ...]
    read: tuple[str, ...] = ()
    edit: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@st.composite
def works(draw: st.DrawFn) -> list[Work]:
    """A graph, in which no two steps touch one file without an order between them."""
    above: list[set[int]] = []
    owners = {"README": -1}
    found: list[Work] = []
    for at in range(draw(st.integers(2, 6))):
        needs = draw(st.sets(st.integers(0, at - 1), max_size=2)) if at else set()
        above.append(needs.union({-1}, *(above[need] for need in needs)))
        mine = sorted(name for name, owner in owners.items() if owner in above[at] and (owner >= 0 or not at))
        kinds = {name: draw(st.sampled_from(["", "read", "edit", "drop"])) for name in mine}
        touched = {kind: tuple(name for name in mine if kinds[name] == kind) for kind in ("read", "edit", "drop")}
        for name in touched["edit"]:
            owners[name] = at
        for name in touched["drop"]:
            del owners[name]
        owners[f"out/{at}"] = at
        found.append(Work(tuple(sorted(needs)), touched["read"], touched["edit"], touched["drop"]))
    return found


@dataclass
class Fleet:
    """Machines with one store, and how often each step ran."""

    folder: Path
    works: list[Work]
    store: MemoryStore = field(default_factory=MemoryStore)
    ran: list[int] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    count: int = 0

    def machine(self) -> Machine:
        self.count += 1
        return Machine(self, self.folder / str(self.count))


class Machine:
    """A fresh checkout; it has looked into the store."""

    def __init__(self, fleet: Fleet, folder: Path) -> None:
        self.fleet = fleet
        self.root = folder / "work"
        self.root.mkdir(parents=True)
        (self.root / "README").write_text("read me\n")
        for name in ("archives", "state"):
            (folder / name).mkdir()
        steps = (
            step(f"s{at}", self.root, needs=tuple(f"s{need}" for need in work.needs), outputs=AUTO)
            for at, work in enumerate(fleet.works)
        )
        self.job: Job = job(self.root, *steps)
        space = Workspace.at(self.root, Excludes(()))
        self.checkpoints = Checkpoints(fleet.store, KEYS, folder / "archives", space, warn=fleet.warnings.append)
        self.records = self.checkpoints.learn([one.id for one in self.job.steps])
        self.paths = StatePaths(folder / "state", "demo")

    def machines(self, of: Job) -> FanOut:
        return FanOut(of, self.records, self.checkpoints, KEYS, {})

    def plan(self) -> tuple[str, ...]:
        return self.machines(self.job).plan(lambda _event: None, str)[0].steps

    def run(self, only: str = "") -> RunEnded:
        of = part_of(self.job, only) if only else self.job
        journal = Journal(self.paths, load(self.paths))
        journal.merge(self.records)
        journal.open()
        selection = self.machines(of).selection(everything=False, needed_only=False)
        engine = Engine(
            of,
            journal,
            dict(os.environ),
            listener=lambda _event: None,
            write=lambda _data: None,
            stop=StopRequest(),
            options=RunOptions(selection=selection),
            checkpoints=self.checkpoints,
            run=self._work,
        )
        try:
            return engine.run()
        finally:
            journal.close()

    def _work(
        self, command: Command, _limits: Limits, _write: object, _stop: StopRequest, *, started: Callable[[], None]
    ) -> Outcome:
        started()
        at = int(command.env["CHECKPOINT_STEP"][1:])
        self.fleet.ran.append(at)
        work = self.fleet.works[at]
        text = "".join((self.root / name).read_text() for name in work.read)
        (self.root / "out").mkdir(exist_ok=True)
        (self.root / f"out/{at}").write_text(f"{text}made by {at}\n")
        for name in work.edit:
            with (self.root / name).open("a") as file:
                file.write(f"edited by {at}\n")
            (self.root / name).chmod(0o600 + at)
        for name in work.drop:
            (self.root / name).unlink()
        return Outcome(End.EXITED, 0, None, 1.0)


def content(root: Path) -> dict[str, object]:
    """Paths with content and mode; times differ."""
    return {
        str(path.relative_to(root)): (path.read_text(), path.stat().st_mode & 0o777)
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


@settings(max_examples=40, deadline=None)
@given(works(), st.data())
def test_legs_and_one_machine_leave_the_same(found: list[Work], data: st.DataObject) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(uploads_module, "_APART", 0.0),
    ):
        one = Fleet(Path(folder, "one"), found).machine()
        assert one.run().exit_code == 0
        fleet = Fleet(Path(folder, "fleet"), found)
        for _ in range(2 * len(found)):
            steps = fleet.machine().plan()
            if not steps:
                break
            legs = {name: fleet.machine() for name in steps}  # all have looked before any has written
            for name in data.draw(st.permutations(steps)):
                if len(fleet.ran) and data.draw(st.integers(0, 4)) == 0:
                    continue  # its machine is lost
                assert legs[name].run(name).ran == (name,)
        last = fleet.machine()
        ended = last.run()
        assert ended.exit_code == 0
        assert sorted(fleet.ran) == list(range(len(found))), "each once, in the last job what the levels did not reach"
        assert content(last.root) == content(one.root)
        assert fleet.warnings == []
