"""What is recorded of a step that is taken as done: its files as they are now, the rest as it was."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import UsageError
from checkpoint_action.model import AUTO, ArchiveRef, Entry, Layer, Record, Status, Values
from checkpoint_action.runner.acceptance import accept_steps
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.outputs import result_of
from checkpoint_action.runner.scan import entry_of
from tests.runner.jobs import as_nobody, job, record, step

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint_action.model import Step

ARCHIVE = ArchiveRef("key", "layer")


def entry(root: Path, name: str, text: str) -> Entry:
    """A file, written and looked at."""
    (root / name).write_text(text)
    found = entry_of(str(root / name), name, ContentDigests())
    assert found is not None
    return found


def done(of: Step, root: Path, layer: Layer, **more: Any) -> Record:
    return replace(
        record(of, root, layer=layer), tries=2, duration=3.0, started=4.0, log="a.log", archive=ARCHIVE, **more
    )


def accept(root: Path, *steps: Step, records: dict[str, Record], ids: tuple[str, ...] = ("a",)) -> dict[str, Record]:
    found = accept_steps(job(root, *steps), records, {}, ids)
    return {name: one for name, one in found.items() if one is not None}


def test_what_is_the_same_keeps_its_layer_and_its_archive(tmp_path: Path) -> None:
    old = step("a", tmp_path, outputs=("f",))
    layer = Layer((entry(tmp_path, "f", "1"),), before={"f": "dir"})
    os.utime(tmp_path / "f", ns=(1, 1))  # a time is no difference
    before = done(old, tmp_path, layer, values=Values(outputs={"v": "1"}))
    new = accept(tmp_path, replace(old, command="true  "), records={"a": before})["a"]
    assert new == replace(before, fingerprint=new.fingerprint, parts=new.parts, command="true  ", exit_code=None)
    assert new.fingerprint != before.fingerprint
    assert new.accepted
    assert not before.accepted


def test_what_differs_is_recorded_as_it_is_and_its_archive_is_no_longer_its_own(tmp_path: Path) -> None:
    of = step("a", tmp_path, outputs=("f",))
    before = done(of, tmp_path, Layer((entry(tmp_path, "f", "1"),)))
    now = entry(tmp_path, "f", "2")
    new = accept(tmp_path, of, records={"a": before})["a"]
    assert new.layer == Layer((now,))
    assert new.result == result_of(new.layer) != before.result
    assert new.archive is None
    assert (new.tries, new.duration, new.started, new.log) == (2, 3.0, 4.0, "a.log")


@pytest.mark.parametrize("status", [Status.FAILED, Status.TIMEOUT, Status.INTERRUPTED, Status.RUNNING])
def test_of_a_step_that_was_not_done_nothing_of_its_last_try_stays(tmp_path: Path, status: Status) -> None:
    of = step("a", tmp_path, outputs=("f",))
    now = entry(tmp_path, "f", "1")
    before = done(of, tmp_path, Layer(), values=Values(env={"V": "1"}), error="why")
    new = accept(tmp_path, of, records={"a": replace(before, status=status, exit_code=1, signal=9)})["a"]
    assert new == Record("a", Status.DONE, new.fingerprint, "true", new.parts, layer=Layer((now,)), result=new.result)
    assert new.accepted


def auto(root: Path, **more: Any) -> Step:
    return step("a", root, outputs=AUTO, **more)


def test_a_layer_that_was_found_by_looking_is_read_again(tmp_path: Path) -> None:
    same, edited, gone = (entry(tmp_path, name, "1") for name in ("same", "edited", "gone"))
    layer = Layer(
        (edited, gone, same), ("removed", "back"), {"same": "dir", "gone": "dir", "removed": "x", "back": "y"}
    )
    before = done(auto(tmp_path), tmp_path, layer)
    now = entry(tmp_path, "edited", "2")
    (tmp_path / "gone").unlink()
    entry(tmp_path, "back", "1")
    new = accept(tmp_path, auto(tmp_path, command="true  "), records={"a": before})["a"]
    assert new.layer == Layer((now, same), ("removed",), {"same": "dir", "removed": "x"})
    assert new.archive is None


def test_what_a_later_step_made_of_it_is_not_what_it_left(tmp_path: Path) -> None:
    left = [entry(tmp_path, name, "1") for name in ("edited", "removed", "mine")]
    before = done(auto(tmp_path), tmp_path, Layer(tuple(left)))
    edit = entry(tmp_path, "edited", "2")
    (tmp_path / "removed").unlink()
    mine = entry(tmp_path, "mine", "3")
    later = step("b", tmp_path, outputs=AUTO)
    of_later = record(later, tmp_path, layer=Layer((edit, replace(mine, sha256="0" * 64)), ("removed",)))
    new = accept(tmp_path, auto(tmp_path, command="true  "), later, records={"a": before, "b": of_later})["a"]
    # What neither of them left is taken as it is now.
    assert new.layer.entries == (left[0], left[1], mine)


def test_an_earlier_steps_file_is_taken_as_it_is_now(tmp_path: Path) -> None:
    earlier = step("e", tmp_path, outputs=("f",))
    of_earlier = record(earlier, tmp_path, layer=Layer((entry(tmp_path, "f", "1"),)))
    of = step("a", tmp_path, outputs=("f",))
    before = done(of, tmp_path, Layer((entry(tmp_path, "f", "2"),)))
    now = entry(tmp_path, "f", "1")
    new = accept(tmp_path, earlier, of, records={"e": of_earlier, "a": before})["a"]
    assert new.layer.entries == (now,)


def test_a_secret_that_is_kept_nowhere_has_to_be_handed_on_again(tmp_path: Path) -> None:
    of = step("a", tmp_path)
    before = done(of, tmp_path, Layer(), withheld=("env TOKEN", "outputs.x"))
    with pytest.raises(UsageError, match=r"accept 'a': it hands on env TOKEN, outputs.x, which is secret"):
        accept(tmp_path, of, records={"a": before})
    # Of a try that failed nothing was handed on.
    accept(tmp_path, of, records={"a": replace(before, status=Status.FAILED)})


@pytest.mark.skipif(sys.platform == "win32", reason="modes as POSIX has them")
def test_an_output_that_cannot_be_read_is_named(public: Path) -> None:
    of = step("a", public, outputs=("f",))
    (public / "f").write_text("1")
    with as_nobody(public):
        (public / "f").chmod(0)
        with pytest.raises(UsageError, match="accept 'a': its output f cannot be read; change its mode"):
            accept(public, of, records={})


def test_a_need_further_up_is_looked_at_too(tmp_path: Path) -> None:
    a, b, c = step("a", tmp_path), step("b", tmp_path, needs=("a",)), step("c", tmp_path, needs=("b",))
    of_a = record(a, tmp_path)
    of_b = record(b, tmp_path, needs={"a": of_a.result})
    records = {"a": of_a, "b": of_b}
    assert set(accept(tmp_path, a, b, c, records=records, ids=("c",))) == {"c"}
    with pytest.raises(UsageError, match=r"accept 'c': it needs 'b', which is not done \(needs-changed: a: "):
        accept(tmp_path, replace(a, command="false"), b, c, records=records, ids=("c",))
    # Of the one that is accepted with it nothing is known but that it left what it had left: the next is done as it is.
    changed = replace(a, command="false")
    assert list(accept(tmp_path, changed, b, c, records=records, ids=("c", "b", "a"))) == ["a", "c"]


def test_a_step_that_asks_first_is_accepted(tmp_path: Path) -> None:
    of = step("a", tmp_path, on_crash="stop")
    after = step("b", tmp_path, needs=("a",))
    running = replace(record(of, tmp_path), status=Status.RUNNING, exit_code=None)
    assert list(accept(tmp_path, of, after, records={"a": running}, ids=("a", "b"))) == ["a", "b"]
