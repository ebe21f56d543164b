"""What unfinished steps have so far, in a store and back."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import BundleError, StoreError
from checkpoint_action.model import AUTO, Job, Record, Status, Step
from checkpoint_action.runner import unfinished as module
from checkpoint_action.runner import uploads as uploads_module
from checkpoint_action.runner.checkpoints import Checkpoints
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.runner.progress import progress_of
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.runner.stop import StopRequest
from checkpoint_action.store.bundle import pack_layer, read_header, write_archive
from checkpoint_action.store.codec import record_to_json
from tests.console import tree
from tests.runner.jobs import as_nobody, job, record, step
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them")

KEYS = KeyScheme("run1", job_slug("demo", "demo"), "1", "1")
PATIENCE = 60.0  # seconds that nothing here takes


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "_APART", 0.0)
    monkeypatch.setattr(module, "_PAUSES", (0.0,) * 4)


class Machine:
    """A checkout, and what the engine does with one unfinished step on it."""

    def __init__(self, folder: Path, store: MemoryStore, *, exclude: tuple[str, ...] = (), **options: Any) -> None:
        self.stop = StopRequest()
        self.root = folder / "workspace"
        (self.root / "src").mkdir(parents=True)
        (self.root / "src/main.c").write_text("int main;")
        (self.root / "stale").write_text("of the checkout")
        self.own = folder / "own"
        self.own.mkdir()
        archives = folder / "archives"
        archives.mkdir()
        self.warnings: list[str] = []
        self.checkpoints = Checkpoints(
            store,
            KEYS,
            archives,
            Workspace.at(self.root, Excludes(exclude)),
            warn=self.warnings.append,
            stop=self.stop,
            **options,
        )
        self.step: Step = step("build", self.root, partial=("build/", "stale"), outputs=AUTO)
        self.job: Job = job(self.root, self.step)

    def begin(self) -> int | None:
        """What comes before a try: learn, look, put back."""
        self.checkpoints.learn([self.step.id])
        self.checkpoints.look(self.step.id, ContentDigests())
        return self.checkpoints.restore_progress(self.step.id, self.own)

    def work(self, name: str = "part", text: str = "x") -> None:
        """What a try does."""
        (self.root / "build").mkdir(exist_ok=True)
        (self.root / "build" / name).write_text(text)
        (self.own / name).write_text(text)
        (self.root / "stale").unlink(missing_ok=True)

    def record(self, status: Status = Status.FAILED) -> Record:
        return record(self.step, self.root, status)

    def end(self, status: Status = Status.FAILED, *, stopping: bool = False) -> None:
        """What comes after it."""
        self.checkpoints.keep_unfinished(self.step, self.job, self.record(status), self.own, stopping=stopping)
        self.checkpoints.finish(PATIENCE)

    def save(self) -> str:
        """What the step asks for while it runs."""
        return self.checkpoints.save_running(self.step, self.job, self.record(Status.RUNNING), self.own)


@pytest.fixture
def store() -> Iterator[MemoryStore]:
    made = MemoryStore()
    yield made
    made.gate.set()


@pytest.fixture
def one(tmp_path: Path, store: MemoryStore) -> Machine:
    return Machine(tmp_path / "one", store)


@pytest.fixture
def other(tmp_path: Path, store: MemoryStore) -> Machine:
    return Machine(tmp_path / "other", store)


def header_of(store: MemoryStore, folder: Path) -> dict[str, Any]:
    path = folder / "newest"
    path.write_bytes(list(store.entries.values())[-1])
    return read_header(path)


def partial_of(store: MemoryStore, folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = header_of(store, folder)["records"]["build"].get("partial") or {}
    return found


def paths_of(partial: dict[str, Any], part: str = "workspace") -> list[str]:
    return [entry["path"] for entry in partial[part]["entries"]]


def test_all_of_it_comes_back_on_another_machine(one: Machine, other: Machine) -> None:
    one.begin()
    one.work()
    (one.root / "litter").touch()
    one.end()
    assert other.begin() == 2
    assert tree(other.root / "build") == tree(one.root / "build")
    assert not (other.root / "stale").exists()
    assert not (other.root / "litter").exists()
    assert (other.own / "part").read_text() == "x"
    assert one.warnings == other.warnings == []


def test_it_comes_back_once(one: Machine, other: Machine) -> None:
    one.begin()
    one.work()
    one.end()
    assert other.begin() == 2
    assert other.checkpoints.restore_progress("build", other.own) is None


def test_it_grows_from_machine_to_machine(one: Machine, other: Machine, store: MemoryStore, tmp_path: Path) -> None:
    one.begin()
    one.work("first")
    one.end()
    other.begin()
    other.work("second")
    other.end()
    third = Machine(tmp_path / "third", store)
    third.begin()
    assert sorted(path.name for path in (third.root / "build").iterdir()) == ["first", "second"]
    assert not (third.root / "stale").exists()


def test_a_try_that_removes_its_progress_leaves_none(
    one: Machine, other: Machine, store: MemoryStore, tmp_path: Path
) -> None:
    one.begin()
    one.work()
    one.end()
    other.begin()
    shutil.rmtree(other.root / "build")
    (other.own / "part").unlink()
    other.end()
    third = Machine(tmp_path / "third", store)
    assert third.begin() == 0
    assert not (third.root / "stale").exists(), "that it had removed this is still so"
    assert not (third.root / "build").exists()
    assert list(third.own.iterdir()) == []


def test_it_grows_on_a_machine_whose_workspace_stays(one: Machine, store: MemoryStore, tmp_path: Path) -> None:
    """Case: what the first try left lies there already when the second begins, and is no less its progress for it."""
    one.begin()
    one.work("first")
    (one.root / "src/main.c").write_text("edited")
    one.step = replace(one.step, partial=("build/", "stale", "src/main.c"))
    one.end()
    again = Machine(tmp_path / "again", store)
    again.step = replace(one.step, cwd=again.root)
    shutil.rmtree(again.root)
    one.root.rename(again.root)
    again.begin()
    again.work("second")
    again.end()
    third = Machine(tmp_path / "third", store)
    third.begin()
    assert sorted(path.name for path in (third.root / "build").iterdir()) == ["first", "second"]
    assert (third.root / "src/main.c").read_text() == "edited"
    assert not (third.root / "stale").exists()
    assert third.warnings == again.warnings == []


def test_a_path_in_the_way_means_that_nothing_is_put_back(one: Machine, other: Machine) -> None:
    one.begin()
    one.work()
    one.end()
    (other.root / "build").mkdir()
    (other.root / "build/part").write_text("somebody's own")
    with pytest.raises(StoreError, match="build/part is a file with other content"):
        other.begin()
    assert list(other.own.iterdir()) == [], "the two parts belong together"
    assert (other.root / "stale").exists()
    assert (other.root / "build/part").read_text() == "somebody's own"


def test_what_this_machine_has_in_the_folder_is_left_alone(one: Machine, other: Machine) -> None:
    one.begin()
    one.work()
    one.end()
    (other.own / "mine").write_text("newer")
    assert other.begin() == 2
    assert [path.name for path in other.own.iterdir()] == ["mine"]
    assert (other.root / "build/part").exists()


def test_a_folder_here_that_is_a_link_gets_nothing_put_through_it(one: Machine, other: Machine, tmp_path: Path) -> None:
    one.begin()
    one.work()
    one.end()
    outside = tmp_path / "outside"
    outside.mkdir()
    (other.root / "build").symlink_to(outside)
    with pytest.raises(StoreError, match="link"):
        other.begin()
    assert list(outside.iterdir()) == []
    assert list(other.own.iterdir()) == []


def test_a_link_that_leads_out_comes_back_as_a_link_and_nothing_goes_through_it(
    one: Machine, other: Machine, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    one.begin()
    one.work()
    (one.own / "out").symlink_to(outside)
    (one.root / "build/out").symlink_to(outside)
    one.end()
    other.begin()
    assert (other.own / "out").readlink() == (other.root / "build/out").readlink() == outside
    assert list(outside.iterdir()) == []


def forge(store: MemoryStore, machine: Machine, change: Callable[[dict[str, Any]], object]) -> None:
    """Put an archive on top whose record of the step's progress says something else."""
    header = header_of(store, machine.own.parent)
    change(header["records"]["build"]["partial"])
    path = machine.own.parent / "forged"
    write_archive(header, [], path)
    store.entries[KEYS.new("x", len(store.entries) + 1)] = path.read_bytes()


HOSTILE = ["../evil", "/etc/evil", "build/../../evil", "build//evil", "", ".", "a\0b", "x" * 300]


@pytest.mark.parametrize("part", ["workspace", "folder"])
@pytest.mark.parametrize("path", HOSTILE)
@pytest.mark.parametrize("kind", ["entry", "deleted"])
def test_a_path_that_leads_out_makes_the_archive_unusable(
    one: Machine, other: Machine, store: MemoryStore, part: str, path: str, kind: str
) -> None:
    one.begin()
    one.work()
    one.end()

    def change(partial: dict[str, Any]) -> None:
        row = {"path": path, "type": "dir", "mode": "0755", "mtime_ns": 1}
        partial[part] |= {"entries": [row]} if kind == "entry" else {"deleted": [path]}

    forge(store, other, change)
    before = tree(other.root.parent)
    assert other.begin() == 2  # of the archive before it
    [warning] = other.warnings
    assert "is not usable (" in warning
    assert set(tree(other.root.parent)) - set(before) <= {
        "workspace/build", "workspace/build/part", "own/part", *(f"archives/fetched-{n}.tar.zst" for n in range(3)),
    }  # fmt: skip


@pytest.mark.parametrize(
    "rows",
    [
        [{"path": "l", "type": "link", "target": "/tmp"}, {"path": "l/evil", "type": "dir"}],
        [{"path": "l", "type": "link", "target": ".."}, {"path": "l/l/evil", "type": "dir"}],
        [{"path": "f", "type": "file", "size": 0, "sha256": "0" * 64}, {"path": "f/evil", "type": "dir"}],
        [{"path": "twice", "type": "dir"}, {"path": "twice", "type": "dir"}],
        [{"path": "size", "type": "file", "size": -1, "sha256": "0" * 64}],
        [{"path": "mode", "type": "dir", "mode": "77777"}],
    ],
)
@pytest.mark.parametrize("part", ["workspace", "folder"])
def test_a_manifest_that_makes_no_sense_makes_the_archive_unusable(
    one: Machine, other: Machine, store: MemoryStore, part: str, rows: list[dict[str, Any]]
) -> None:
    one.begin()
    one.work()
    one.end()
    entries = [{"mode": "0755", "mtime_ns": 1} | row for row in rows]
    forge(store, other, lambda partial: partial[part].update(entries=entries))
    assert other.begin() == 2
    [warning] = other.warnings
    assert "is not usable" in warning


@pytest.mark.parametrize(
    "change",
    [
        lambda partial: partial["archive"].update(layer="../../evil"),
        lambda partial: partial["archive"].update(layer="another"),
        lambda partial: partial["archive"].update(key="another"),
        lambda partial: partial["workspace"]["entries"][-1].update(sha256="0" * 64),
        lambda partial: partial["folder"]["entries"][-1].update(sha256="0" * 64),
        lambda partial: partial["folder"]["entries"].append(partial["folder"]["entries"][-1] | {"path": "zz"}),
    ],
)
def test_progress_that_is_not_what_the_record_says_is_not_put_back(
    one: Machine, other: Machine, store: MemoryStore, change: Callable[[dict[str, Any]], object]
) -> None:
    one.begin()
    one.work()
    one.end()
    forge(store, other, change)
    before = tree(other.root)
    with pytest.raises(StoreError):
        other.begin()
    assert set(tree(other.root)) == set(before)
    assert list(other.own.iterdir()) == []


def changing(machine: Machine, monkeypatch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Have a file change between the look at it and its packing, so many times."""
    real = pack_layer
    tries: list[int] = []

    def pack(*args: Any) -> None:
        if args[0] == machine.root:
            tries.append(len(tries))
            if len(tries) <= times:
                (machine.root / "build/part").write_text(f"changed {len(tries)}")
        real(*args)

    monkeypatch.setattr(module, "pack_layer", pack)
    return tries


def test_a_save_looks_again_at_files_that_change_meanwhile(
    one: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.begin()
    one.work()
    tries = changing(one, monkeypatch, 2)
    assert one.save() == "and 10 bytes that were not there before the step are in the store"
    assert len(tries) == 3
    other.begin()
    assert (other.root / "build/part").read_text() == "changed 2"


def test_a_save_of_files_that_do_not_stop_changing_says_which_and_the_step_goes_on(
    one: Machine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.begin()
    one.work()
    changing(one, monkeypatch, 1000)
    assert one.save() == "but not in the store: build/part changed before it was packed"
    assert store.entries == {}
    monkeypatch.undo()
    one.end()
    assert "build/part" in paths_of(partial_of(store, one.own.parent))
    assert one.warnings == []


def test_a_process_that_goes_on_writing_after_its_step_has_failed_costs_one_warning(
    one: Machine, other: Machine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its next try goes on from what it had saved before."""
    one.begin()
    one.work(text="saved")
    assert "in the store" in one.save()
    changing(one, monkeypatch, 1000)
    one.end()
    assert one.warnings == [
        "step 'build': what it left unfinished is not kept: build/part changed before it was packed"
    ]
    assert header_of(store, one.own.parent)["records"]["build"]["status"] == "failed"
    other.begin()
    assert (other.root / "build/part").read_text() == (other.own / "part").read_text() == "saved"


def test_a_file_that_nobody_may_read_is_named(public: Path, store: MemoryStore) -> None:
    one = Machine(public / "one", store)
    one.begin()
    one.work()
    with as_nobody(public):
        (one.own / "part").chmod(0)
        assert one.save() == "but not in the store: part cannot be read"
        one.checkpoints.keep_unfinished(one.step, one.job, one.record(), one.own, stopping=False)
    one.checkpoints.finish(PATIENCE)
    assert one.warnings == ["step 'build': what it left unfinished is not kept: part cannot be read"]


def test_progress_that_there_is_no_memory_to_pack_costs_a_warning(
    one: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pack(*_arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr(module, "pack_layer", pack)
    one.begin()
    one.work()
    one.checkpoints.keep_unfinished(one.step, one.job, one.record(), one.own, stopping=False)
    one.checkpoints.finish(PATIENCE)
    assert one.warnings == ["step 'build': what it left unfinished is not kept: unexpected MemoryError"]


def test_a_save_counts_what_was_not_there_before(one: Machine) -> None:
    one.begin()
    one.work(text="12345")
    assert one.save() == "and 10 bytes that were not there before the step are in the store"


def test_a_save_where_nothing_is_new_is_in_the_store_too(one: Machine, store: MemoryStore) -> None:
    one.begin()
    assert one.save() == "and 0 bytes that were not there before the step are in the store"
    assert len(store.entries) == 1


@pytest.mark.parametrize("required", [False, True])
def test_a_save_that_the_store_refuses_is_an_error_only_where_the_store_is_required(
    tmp_path: Path, store: MemoryStore, required: bool
) -> None:
    one = Machine(tmp_path / "one", store, required=required)
    one.begin()
    one.work()
    store.refuse["save"] = StoreError("memory: 503")
    if required:
        with pytest.raises(StoreError, match="memory: 503"):
            one.save()
    else:
        assert one.save() == "but not in the store: memory: 503"
        assert one.save() == "but not in the store: memory: 503"
        assert len(one.warnings) == 1


def test_a_save_after_a_stop_request_puts_nothing_into_the_queue(one: Machine, store: MemoryStore) -> None:
    """Else it might come after how the step has ended; a folder alone is not even to be read."""
    one.begin()
    (one.root / "build").mkdir()
    (one.root / "stale").unlink()
    one.stop.request(2)
    assert one.save() == "but not in the store: the run is being stopped"
    one.checkpoints.finish(PATIENCE)
    assert store.entries == {}


def test_a_stop_ends_a_save_that_reads(one: Machine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    one.begin()
    one.work()
    real = progress_of

    def stop_first(*args: Any) -> Any:
        one.stop.request(2)
        return real(*args)

    monkeypatch.setattr(module, "progress_of", stop_first)
    assert one.save() == "but not in the store: the run is being stopped"
    monkeypatch.undo()
    one.end(Status.INTERRUPTED, stopping=True)
    assert "build/part" in paths_of(partial_of(store, one.own.parent))


def test_a_stop_while_a_failed_step_is_looked_at_moves_the_looking_beside_the_end(
    one: Machine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.begin()
    one.work()
    real = progress_of
    threads: list[threading.Thread] = []

    def stop_first(*args: Any) -> Any:
        threads.append(threading.current_thread())
        one.stop.request(2)
        return real(*args)

    monkeypatch.setattr(module, "progress_of", stop_first)
    one.end()
    assert "build/part" in paths_of(partial_of(store, one.own.parent))
    assert [thread is threading.current_thread() for thread in threads] == [True, False]
    assert one.warnings == []


def test_the_end_of_a_stopped_run_does_not_wait_for_progress_that_is_too_much(
    one: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.begin()
    one.work()
    go = threading.Event()
    monkeypatch.setattr(module, "progress_of", lambda *_: go.wait())
    one.stop.request(2)
    try:
        one.checkpoints.keep_unfinished(
            one.step, one.job, one.record(Status.INTERRUPTED), one.own, stopping=True
        )  # for ever, if it looked itself
        one.checkpoints.finish(PATIENCE, 0.1)
        assert one.warnings == [
            "memory: not stored within 0.1 s, so another machine does it again: what build has so far"
        ]
    finally:
        go.set()


def test_what_is_excluded_or_a_repositorys_own_stays_here(tmp_path: Path, store: MemoryStore) -> None:
    for name in (".git", "vendor/.git"):
        (tmp_path / "one/workspace" / name).mkdir(parents=True)
    one = Machine(tmp_path / "one", store, exclude=("*.tmp", "/cache/"))
    one.step = replace(one.step, partial=("**",))
    one.begin()
    for name in (".git/config", "vendor/.git/config", "vendor/x", "new/.git/config", "x.tmp", "cache/x", "sub/cache/x"):
        (one.root / name).parent.mkdir(parents=True, exist_ok=True)
        (one.root / name).write_text("x")
    one.end()
    files = [path for path in paths_of(partial_of(store, tmp_path)) if (one.root / path).is_file()]
    assert files == ["new/.git/config", "sub/cache/x", "vendor/x"]


def test_the_announcement_of_a_step_that_must_not_run_twice_keeps_its_earlier_progress(
    one: Machine, other: Machine, store: MemoryStore
) -> None:
    one.begin()
    one.work()
    one.end()
    other.begin()
    started = record(other.step, other.root, Status.RUNNING)
    other.checkpoints.started(replace(other.step, on_crash="stop"), started)
    found = header_of(store, one.own.parent)["records"]["build"]
    assert found["status"] == "running"
    assert paths_of(found["partial"]) == ["build", "build/part"]


def test_progress_of_steps_that_are_not_reached_is_handed_on(
    one: Machine, other: Machine, store: MemoryStore, tmp_path: Path
) -> None:
    one.begin()
    one.work()
    one.end()
    other.checkpoints.learn(["build"])
    failed = record(step("before", other.root), other.root, Status.FAILED)
    other.checkpoints.keep_unfinished(
        step("before", other.root), other.job, failed, other.root.parent / "none", stopping=False
    )
    other.checkpoints.finish(PATIENCE)
    third = Machine(tmp_path / "third", store)
    assert third.begin() == 2


def test_an_unexpected_fault_while_putting_back_is_a_store_error(
    one: Machine, other: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.begin()
    one.work()
    one.end()

    def fail(*_: object) -> None:
        raise RecursionError("deep\nand deeper")

    monkeypatch.setattr("checkpoint_action.runner.putting_back.apply_layer", fail)
    with pytest.raises(StoreError, match="unexpected RecursionError: deep and deeper"):
        other.begin()


def test_a_half_packed_layer_does_not_lie_about(one: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    one.begin()
    one.work()
    real = pack_layer

    def pack(*args: Any) -> None:
        if args[0] == one.own:
            raise BundleError("the disk is full")
        real(*args)

    monkeypatch.setattr(module, "pack_layer", pack)
    one.end()
    assert len(one.warnings) == 1
    assert os.listdir(one.own.parent / "archives") == []


def test_a_record_with_progress_survives_the_way_there_and_back(one: Machine, other: Machine) -> None:
    one.begin()
    one.work()
    one.end(Status.INTERRUPTED)
    learned = other.checkpoints.learn(["build"])["build"]
    assert learned.status is Status.INTERRUPTED
    assert record_to_json(learned)["partial"]["workspace"]["deleted"] == ["stale"]
