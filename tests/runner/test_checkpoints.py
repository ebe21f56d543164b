"""Finished steps kept in a store, and put back on another machine."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import StoreDeniedError, StoreError, StoreMissingError
from checkpoint_action.model import Action, ArchiveRef, Entry, Layer, Reason, Status
from checkpoint_action.runner import archives as archives_module
from checkpoint_action.runner import checkpoints as module
from checkpoint_action.runner import stored_state
from checkpoint_action.runner import uploads as uploads_module
from checkpoint_action.runner.outputs import result_of
from checkpoint_action.runner.plan import plan_job
from checkpoint_action.store.bundle import read_header
from tests.runner.jobs import job, record
from tests.runner.machines import KEYS, Machine, build, forge, keep_each, writing
from tests.store.trees import scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from tests.runner.memory_store import MemoryStore

pytestmark = [
    pytest.mark.usefixtures("no_pause"),
    pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them"),
]


RESTORED = (Action.RESTORE, Reason.RESTORED)
SKIPPED = (Action.SKIP, Reason.DONE)


def test_another_machine_gets_bytes_modes_links_times_and_deletions(one: Machine, other: Machine) -> None:
    done = one.run(one.step("build"), build)
    one.checkpoints.finish(30)
    wanted = scan(one.root)
    assert other.resume(other.step("build")) == [RESTORED]
    found = scan(other.root)
    assert found == wanted
    assert found["dist/app"].mtime_ns == 1_650_000_000_123_456_789
    assert found["dist"].mtime_ns == 1_650_000_000_987_654_321
    assert "doomed" not in found
    assert done.layer.deleted == ("doomed",)
    assert one.warnings == other.warnings == []
    assert one.kept == [("build",)]


def test_a_machine_that_has_it_all_reads_the_state_only(one: Machine, store: MemoryStore, tmp_path: Path) -> None:
    one.run(one.step("build"), build)
    one.checkpoints.finish(30)
    again = Machine(tmp_path / "again", store)
    shutil.rmtree(again.root)
    shutil.copytree(one.root, again.root, symlinks=True)
    assert again.resume(again.step("build")) == [SKIPPED]
    assert store.calls == ["save", "find", "read"]


def test_a_declared_output_is_restored_too(one: Machine, other: Machine) -> None:
    outputs = ("dist",)
    one.run(one.step("build", outputs), build)
    one.checkpoints.finish(30)
    assert other.resume(other.step("build", outputs)) == [RESTORED]
    assert (other.root / "dist/app").read_bytes() == (one.root / "dist/app").read_bytes()
    assert (other.root / "doomed").exists()


def test_a_step_that_leaves_nothing_is_skipped_elsewhere(one: Machine, other: Machine) -> None:
    one.run(one.step("test"))
    one.checkpoints.finish(30)
    assert other.resume(other.step("test")) == [SKIPPED]


def test_two_steps_that_edit_one_file_are_restored_one_after_the_other(one: Machine, other: Machine) -> None:
    for number in "123":
        one.run(one.step(f"s{number}"), writing("f", number))
    one.checkpoints.finish(30)
    steps = [other.step(f"s{number}") for number in "123"]
    assert other.resume(*steps) == [RESTORED] * 3
    assert scan(other.root) == scan(one.root)
    assert (other.root / "f").read_text() == "3"


def test_steps_that_edit_and_remove_a_source_are_restored_in_order(one: Machine, other: Machine) -> None:
    one.run(one.step("a"), writing("doomed", "edited"))
    one.run(one.step("b"), lambda root: (root / "doomed").unlink())
    one.run(one.step("c"), writing("doomed", "again"))
    one.checkpoints.finish(30)
    assert other.resume(*(other.step(name) for name in "abc")) == [RESTORED] * 3
    assert (other.root / "doomed").read_text() == "again"


def test_what_finishes_during_an_upload_goes_up_together(one: Machine, other: Machine, store: MemoryStore) -> None:
    store.gate.clear()
    one.run(one.step("s0"), writing("0", "0"))
    assert store.uploading.wait(30)
    for number in range(1, 6):
        one.run(one.step(f"s{number}"), writing(str(number), str(number)))
    store.gate.set()
    one.checkpoints.finish(30)
    assert one.kept == [("s0",), ("s1", "s2", "s3", "s4", "s5")]
    assert [key.split("-")[4] for key in store.entries] == ["s0", "s5"]
    assert other.resume(*(other.step(f"s{number}") for number in range(6))) == [RESTORED] * 6
    assert [name for name in store.calls if name in {"read", "fetch"}] == ["read", "fetch"]


def test_uploads_keep_the_order_of_the_steps(one: Machine, store: MemoryStore) -> None:
    reached = threading.Event()

    def kept(done: tuple[str, ...], _unfinished: tuple[str, ...], _size: int) -> None:
        one.kept.append(done)
        reached.set()

    one.checkpoints._uploads._kept = kept
    for number in range(4):
        reached.clear()
        one.run(one.step(f"s{number}"))
        assert reached.wait(30)
    one.checkpoints.finish(30)
    assert one.kept == [(f"s{number}",) for number in range(4)]
    numbers = [int(key.split("-")[7]) for key in store.entries]
    assert numbers == list(range(numbers[0], numbers[0] + 4))


def test_two_uploads_are_never_of_one_second(one: Machine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "_APART", 0.4)
    times = []
    real = store.save

    def save(key: str, source: Path) -> None:
        times.append(time.monotonic())
        real(key, source)

    monkeypatch.setattr(store, "save", save)
    one.checkpoints._uploads._last_upload = time.monotonic()
    one.run(one.step("a"))
    one.run(one.step("b"))
    one.checkpoints.finish(30)
    assert one.kept == [("a", "b")]
    assert len(times) == 1


def test_the_newest_archive_tells_the_whole_state(one: Machine, other: Machine, store: MemoryStore) -> None:
    one.run(one.step("a"), writing("a", "a"))
    one.checkpoints.finish(30)
    second = Machine(other.root.parent / "second", store)
    second.resume(second.step("a"))
    second.run(second.step("b"), writing("b", "b"))
    second.checkpoints.finish(30)
    assert other.resume(other.step("a"), other.step("b")) == [RESTORED, RESTORED]
    assert {path for path in scan(other.root) if path in "ab"} == {"a", "b"}


def test_a_plan_on_another_machine_says_restore_and_changes_nothing(one: Machine, other: Machine) -> None:
    one.run(one.step("build"), build)
    one.checkpoints.finish(30)
    before = scan(other.root)
    plan = plan_job(job(other.root, other.step("build")), other.checkpoints.learn(), {})
    assert [(decision.action, decision.reason) for decision in plan.decisions] == [RESTORED]
    assert scan(other.root) == before


def test_a_later_change_of_the_workspace_is_not_in_an_earlier_layer(one: Machine, other: Machine) -> None:
    one.run(one.step("a"), writing("f", "a"))
    (one.root / "f").write_text("not what a left")
    one.checkpoints.finish(30)
    assert other.resume(other.step("a")) == [RESTORED]
    assert (other.root / "f").read_text() == "a"


def test_what_was_there_after_a_failed_step_is_not_another_steps_doing(one: Machine) -> None:
    one.checkpoints.look("a", one.digests)
    (one.root / "litter").write_text("of a step that failed")
    one.checkpoints.forget_look()
    done = one.run(one.step("next"), writing("mine", ""))
    assert {entry.path for entry in done.layer.entries} == {"mine"}


def test_no_checkpoint_is_an_empty_state_without_a_word(other: Machine) -> None:
    assert other.checkpoints.learn() == {}
    assert other.warnings == []


@pytest.mark.parametrize("status", [Status.FAILED, Status.TIMEOUT, Status.INTERRUPTED, Status.RUNNING])
def test_how_a_step_ended_elsewhere_is_learned(
    one: Machine, other: Machine, store: MemoryStore, status: Status
) -> None:
    forge(store, other, {"a": record(one.step("a"), one.root, status)})
    assert other.resume(other.step("a"))[0][0] is Action.RUN
    assert other.checkpoints.learn()["a"].status is status


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x28\xb5\x2f\xfd" + b"\0" * 50])
def test_a_damaged_archive_is_a_miss_with_one_line(other: Machine, store: MemoryStore, content: bytes) -> None:
    store.entries[KEYS.new("a", 1)] = content
    assert other.checkpoints.learn() == {}
    assert len(other.warnings) == 1


def test_a_step_that_was_not_kept_cannot_be_restored(other: Machine) -> None:
    with pytest.raises(StoreError, match="not kept"):
        other.checkpoints.restore(record(other.step("a"), other.root), lambda _path: ())


ERRORS = [StoreError("memory: 503"), StoreDeniedError("memory: 403"), OSError(28, "No space left"), ValueError("bug")]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_a_store_that_fails_to_save_is_said_once_and_costs_nothing(
    one: Machine, store: MemoryStore, error: Exception
) -> None:
    store.refuse["save"] = error
    for name in "abc":
        one.run(one.step(name), writing(name, name))
    one.checkpoints.finish(30)
    one.checkpoints.keep(record(one.step("d"), one.root))
    assert len(one.warnings) == 1
    assert "going on without the store" in one.warnings[0]
    assert store.calls.count("save") == 1


def test_a_required_store_that_fails_to_save_is_an_error_at_the_end(store: MemoryStore, tmp_path: Path) -> None:
    strict = Machine(tmp_path / "strict", store, required=True)
    store.refuse["save"] = StoreError("memory: 503")
    strict.run(strict.step("a"))
    with pytest.raises(StoreError, match="503"):
        strict.checkpoints.finish(30)
    assert len(strict.warnings) == 1


@pytest.fixture
def stuck(one: Machine, store: MemoryStore) -> Iterator[Machine]:
    """A machine whose upload does not end before the test does."""
    store.gate.clear()
    one.run(one.step("a"))
    assert store.uploading.wait(30)
    yield one
    store.gate.set()
    one.checkpoints._uploads._worker.join(30)


def test_the_end_waits_no_longer_than_it_may(stuck: Machine) -> None:
    begin = time.monotonic()
    stuck.checkpoints.finish(0.2)
    assert time.monotonic() - begin < 30
    assert stuck.warnings == ["memory: not stored within 0.2 s, so another machine does it again: a"]


def test_an_upload_that_fails_after_the_end_says_nothing_more(stuck: Machine, store: MemoryStore) -> None:
    stuck.checkpoints.finish(0)
    store.refuse["save"] = StoreError("memory: 503")
    store.gate.set()
    stuck.checkpoints._uploads._worker.join(30)
    assert len(stuck.warnings) == 1


def test_nothing_kept_ends_at_once(one: Machine) -> None:
    one.checkpoints.finish(3600)
    one.checkpoints._uploads._worker.join(30)
    assert not one.checkpoints._uploads._worker.is_alive()


def test_nothing_is_left_in_our_folder_but_what_was_fetched(one: Machine, other: Machine) -> None:
    one.run(one.step("build"), build)
    one.checkpoints.finish(30)
    assert os.listdir(one.archives) == []
    other.resume(other.step("build"))
    assert os.listdir(other.archives) == ["fetched-0.tar.zst"]


def test_set_id_bits_do_not_travel(one: Machine, other: Machine) -> None:
    def change(root: Path) -> None:
        (root / "tool").write_text("")
        (root / "tool").chmod(0o6755)

    one.run(one.step("a"), change)
    one.checkpoints.finish(30)
    assert other.resume(other.step("a")) == [RESTORED]
    assert stat.S_IMODE((other.root / "tool").stat().st_mode) == 0o755
    assert other.resume(other.step("a")) == [SKIPPED]


def test_the_header_says_job_and_all_records(one: Machine, store: MemoryStore, tmp_path: Path) -> None:
    done = one.run(one.step("a"), writing("f", ""))
    one.checkpoints.finish(30)
    [(key, whole)] = store.entries.items()
    (tmp_path / "archive").write_bytes(whole)
    header = read_header(tmp_path / "archive")
    assert (header["job"], list(header["records"])) == (KEYS.job, ["a"])
    assert header["records"]["a"]["archive"] == {"key": key, "layer": "000001-a"}
    assert replace(done, archive=None).result == result_of(done.layer)


def another_jobs(store: MemoryStore, machine: Machine) -> bytes:
    forge(store, machine, {}, {"job": "another"})
    return store.entries.popitem()[1]


@pytest.mark.parametrize("how", ["damaged", "another job", "gone"])
def test_an_unusable_newest_archive_costs_only_what_it_alone_knows(
    one: Machine, other: Machine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    keep_each(one, "a", "A-b", "c")
    newest = list(store.entries)[-1]
    store.entries[newest] = b"junk" if how == "damaged" else another_jobs(store, other)
    if how == "gone":
        real = store.read

        def read(found: Any, start: int, length: int) -> bytes:
            if found.key == newest:
                raise StoreMissingError("it is gone")
            return real(found, start, length)

        monkeypatch.setattr(store, "read", read)
    steps = [other.step(name) for name in ("a", "A-b", "c")]
    assert other.resume(*steps) == [RESTORED, RESTORED, (Action.RUN, Reason.NEVER_RAN)]
    assert len(other.warnings) == 1
    assert newest in other.warnings[0]
    assert "using an older checkpoint" in other.warnings[0]


def test_an_archive_found_unusable_is_not_read_again_and_the_next_one_serves(
    one: Machine, other: Machine, store: MemoryStore
) -> None:
    keep_each(one, "a", "a-b", "c")
    first, second, third = store.entries
    store.entries[second] = store.entries[third] = b"junk"
    # the look-up for step a meets the archive of a-b, which hides its own
    assert other.resume(other.step("a"), other.step("a-b")) == [RESTORED, (Action.RUN, Reason.NEVER_RAN)]
    assert store.calls.count("read") == 3
    assert len(other.warnings) == 1
    assert second in other.warnings[0]
    assert third in other.warnings[0]
    assert f"using an older checkpoint, {first}" in other.warnings[0]


def test_the_newest_of_the_usable_archives_is_taken(one: Machine, other: Machine, store: MemoryStore) -> None:
    keep_each(one, "b", "a")
    later = Machine(other.root.parent / "later", store, keys=replace(KEYS, attempt="10"))
    later.resume(later.step("b"), later.step("a"))
    keep_each(later, "b", "z")
    store.entries[list(store.entries)[-1]] = b"junk"
    newest = list(store.entries)[-2]
    other.checkpoints.learn(["a", "b", "z"])
    assert newest in other.warnings[0]


def test_all_archives_damaged_is_one_line_and_a_bounded_number_of_look_ups(other: Machine, store: MemoryStore) -> None:
    steps = [f"s{number}" for number in range(300)]
    store.entries = {KEYS.new(step, number): b"junk" for number, step in enumerate(steps)}
    assert other.checkpoints.learn(steps) == {}
    assert store.calls.count("find") <= 101
    assert len(other.warnings) == 1
    assert "starting afresh" in other.warnings[0]
    assert len(other.warnings[0]) < 1500


@pytest.fixture
def hanging(one: Machine, store: MemoryStore) -> Iterator[MemoryStore]:
    """A store with the checkpoint of steps a and b, whose calls hang when asked to."""
    keep_each(one, "a", "b")
    store.gate.clear()
    yield store
    store.gate.set()


def stop_soon(machine: Machine) -> None:
    threading.Timer(0.2, machine.stop.request, (15,)).start()


@pytest.mark.parametrize("method", ["find", "read"])
@pytest.mark.parametrize("required", [False, True])
def test_a_stop_ends_the_wait_for_a_store_that_hangs(
    hanging: MemoryStore, tmp_path: Path, method: str, required: bool
) -> None:
    machine = Machine(tmp_path / "machine", hanging, required=required)
    hanging.hang.add(method)
    stop_soon(machine)
    begin = time.monotonic()
    assert machine.checkpoints.learn(["a", "b"]) == {}
    machine.checkpoints.finish(0)
    assert time.monotonic() - begin < 10
    assert machine.warnings == []


def test_a_stop_ends_a_restore_without_switching_the_store_off(other: Machine, hanging: MemoryStore) -> None:
    records = other.checkpoints.learn()
    hanging.hang.add("fetch")
    stop_soon(other)
    begin = time.monotonic()
    with pytest.raises(StoreError, match="stopped"):
        other.checkpoints.restore(records["a"], lambda _path: ())
    other.checkpoints.restore(records["b"], lambda _path: ())  # it is on this machine already
    assert time.monotonic() - begin < 10
    assert not (other.root / "a").exists()
    hanging.gate.set()
    other.run(other.step("c"), writing("c", "c"))
    other.checkpoints.finish(30)
    assert other.kept == [("c",)]


def test_nothing_is_asked_of_the_store_once_a_stop_is_requested(other: Machine, hanging: MemoryStore) -> None:
    other.stop.request(15)
    hanging.calls.clear()
    assert other.checkpoints.learn() == {}
    assert hanging.calls == []


def test_a_stop_shortens_the_wait_at_the_end(stuck: Machine) -> None:
    stop_soon(stuck)
    begin = time.monotonic()
    stuck.checkpoints.finish(1800, 0.1)
    assert 0.2 < time.monotonic() - begin < 10
    assert len(stuck.warnings) == 1


def test_a_store_too_slow_to_restore_from_is_waited_for_once(hanging: MemoryStore, tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine", hanging, restore_seconds=0.5)
    records = machine.checkpoints.learn()
    hanging.hang.add("fetch")
    begin = time.monotonic()
    for _ in range(20):
        with pytest.raises(StoreError, match="takes more than"):
            machine.checkpoints.restore(records["a"], lambda _path: ())
    assert time.monotonic() - begin < 5
    assert hanging.calls.count("fetch") == 1
    assert len(machine.warnings) == 1


@pytest.mark.parametrize("error", [StoreError("memory: 503"), OSError(28, "No space left"), RuntimeError("a bug")])
def test_a_fetch_that_fails_switches_the_store_off(
    one: Machine, other: Machine, store: MemoryStore, error: Exception
) -> None:
    keep_each(one, "a", "b", "c")
    records = other.checkpoints.learn()
    store.refuse["fetch"] = error
    for name in "ab":
        with pytest.raises(StoreError):
            other.checkpoints.restore(records[name], lambda _path: ())
    assert store.calls.count("fetch") == 1
    other.checkpoints.restore(records["c"], lambda _path: ())  # it came with the state
    other.run(other.step("d"))
    other.checkpoints.finish(30)
    assert other.kept == []
    assert len(other.warnings) == 1


def test_an_archive_that_is_gone_is_asked_for_once_and_the_store_stays_on(
    one: Machine, other: Machine, store: MemoryStore
) -> None:
    keep_each(one, "a", "b", "c")
    records = other.checkpoints.learn()
    del store.entries[next(iter(store.entries))]
    for _ in range(2):
        with pytest.raises(StoreMissingError, match="not there"):
            other.checkpoints.restore(records["a"], lambda _path: ())
    assert store.calls.count("fetch") == 1
    other.checkpoints.restore(records["b"], lambda _path: ())
    keep_each(other, "d")
    assert other.warnings == []


@pytest.mark.parametrize("error", [RecursionError("deep"), MemoryError(), AssertionError("x\ny"), KeyError("k")])
@pytest.mark.parametrize(
    ("owner", "where"),
    [
        (archives_module, "parse_header"),
        (stored_state, "check_layer"),
        (module, "restore_times"),
        (archives_module, "_nearest_first"),
    ],
    ids=["parse_header", "check_layer", "restore_times", "_nearest_first"],
)
def test_no_unexpected_fault_gets_out_of_learning(
    one: Machine,
    other: Machine,
    store: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    owner: ModuleType,
    where: str,
    error: Exception,
) -> None:
    keep_each(one, "a")
    if where == "_nearest_first":
        store.entries[next(iter(store.entries))] = b"junk"

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(owner, where, fail)
    assert set(other.checkpoints.learn(["a"])) == ({"a"} if where == "restore_times" else set())
    assert len(other.warnings) == 1
    assert other.warnings[0].isprintable()


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "a/../../secret"])
def test_a_path_that_leads_out_is_refused_before_anything_is_fetched_or_opened(
    other: Machine, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(module, "restore_times", lambda _workspace, sources: asked.append(dict(sources)))
    forge(store, other, {}, {"sources": [[path, 1, 1, "0" * 16], ["doomed", 1, 1, "0" * 16]]})
    other.checkpoints.learn()
    assert [list(sources) for sources in asked if isinstance(sources, dict)] == [["doomed"]]
    layer = Layer((Entry(path, "file", 0o644, 1, 1, "0" * 64),))
    bad = replace(record(other.step("a"), other.root, layer=layer), archive=ArchiveRef("k", "l"))
    store.calls.clear()
    with pytest.raises(StoreError, match="refused path"):
        other.checkpoints.restore(bad, lambda _path: ())
    assert store.calls == []
