"""Machines that share a store."""

from __future__ import annotations

import os
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from checkpoint_action.model import AUTO, Action, Layer, Reason, Record, Step
from checkpoint_action.runner.checkpoints import Checkpoints
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.runner.outputs import collect
from checkpoint_action.runner.plan import Planner
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.runner.stop import StopRequest
from checkpoint_action.store.bundle import write_archive
from checkpoint_action.store.codec import record_to_json
from tests.runner.jobs import job, record, step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from checkpoint_action.store.base import Store
    from tests.runner.memory_store import MemoryStore

__all__ = ["KEYS", "Machine", "build", "forge", "keep_each", "writing"]

KEYS = KeyScheme("run1", job_slug("demo", "demo"), "1", "1")


class Machine:
    """A checkout of the sources, and what a run does on it."""

    def __init__(
        self,
        folder: Path,
        store: Store,
        *,
        keys: KeyScheme = KEYS,
        **options: Any,
    ) -> None:
        self.stop = StopRequest()
        self.root = folder / "workspace"
        self.root.mkdir(parents=True)
        (self.root / "src").mkdir()
        (self.root / "src/main.c").write_text("int main;")
        (self.root / "doomed").write_text("soon gone")
        for path in ("src/main.c", "doomed", "src", ""):
            os.utime(self.root / path, ns=(1, 1_600_000_000_000_000_001))
        self.archives = folder / "archives"
        self.archives.mkdir()
        self.warnings: list[str] = []
        self.kept: list[tuple[str, ...]] = []
        self.missed: list[str] = []
        self.workspace = Workspace.at(self.root, Excludes(()))
        self.checkpoints = Checkpoints(
            store,
            keys,
            self.archives,
            self.workspace,
            warn=self.warnings.append,
            kept=lambda done, _unfinished, _size: self.kept.append(done),
            missed=self.missed.append,
            stop=self.stop,
            **options,
        )
        self.digests = ContentDigests()

    def run(self, of: Step, change: Callable[[Path], object] = lambda _root: None) -> Record:
        """What the engine does with a step that ends well."""
        self.checkpoints.look(of.id, self.digests)
        change(self.root)
        declared = Layer() if of.outputs == AUTO else collect(of.outputs, of.cwd, self.root, self.digests)
        layer = self.checkpoints.changes(of, declared, self.digests)
        done = record(of, self.root, layer=layer)
        self.checkpoints.keep(done)
        return done

    def step(self, name: str, outputs: Any = AUTO) -> Step:
        return step(name, self.root, outputs=outputs)

    def resume(self, *steps: Step) -> list[tuple[Action, Reason]]:
        """Learn, plan and restore, in order; what was decided."""
        records = self.checkpoints.learn([step.id for step in steps])
        planner = Planner(job(self.root, *steps), records, {})
        decided = []
        for one in steps:
            decision = planner.decide(one, planner.parts(one))
            decided.append((decision.action, decision.reason))
            if decision.action is Action.RESTORE:
                self.checkpoints.restore(records[one.id], planner.ownership.known_contents)
        return decided


def writing(path: str, text: str) -> Callable[[Path], object]:
    """A step that writes one file."""
    return lambda root: (root / path).write_text(text)


def build(root: Path) -> None:
    """Adds, changes, deletes; files, folders and links; modes and times."""
    (root / "dist/empty").mkdir(parents=True)
    (root / "dist/app").write_bytes(b"\x7fELF" + os.urandom(5000))
    (root / "dist/app").chmod(0o755)
    (root / "dist/readonly").write_text("r")
    (root / "dist/readonly").chmod(0o444)
    (root / "dist/link").symlink_to("app")
    (root / "dist/dangling").symlink_to("nowhere")
    (root / os.fsdecode(b"odd\xff\nname")).write_text("odd")
    (root / "src/main.c").write_text("int main(void);")
    (root / "doomed").unlink()
    os.utime(root / "dist/app", ns=(1, 1_650_000_000_123_456_789))
    os.utime(root / "dist", ns=(1, 1_650_000_000_987_654_321))


def keep_each(machine: Machine, *names: str) -> None:
    """Run steps that write a file of their name, each with an archive of its own."""
    for name in names:
        count = len(machine.kept)
        machine.run(machine.step(name), writing(name, name))
        deadline = time.monotonic() + 30
        while len(machine.kept) == count:
            assert time.monotonic() < deadline
            time.sleep(0.005)
    machine.checkpoints.finish(30)


def forge(
    store: MemoryStore, machine: Machine, records: dict[str, Any], header: Mapping[str, object] = MappingProxyType({})
) -> None:
    """Put an archive into the store that no run made."""
    rows = {name: record_to_json(one) if isinstance(one, Record) else one for name, one in records.items()}
    path = machine.root.parent / "forged"
    write_archive({"job": KEYS.job, "records": rows} | dict(header), [], path)
    store.entries[KEYS.new("x", len(store.entries))] = path.read_bytes()
