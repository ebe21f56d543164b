"""The short form of the losses of power; the long one is ``python -m tests.torture power-loss``."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.torture.disk_model import Disk, contents, found_in, lay_out, random_content
from tests.torture.outcome import Scale
from tests.torture.power_loss import torture, why_not
from tests.torture.syscalls import Call

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_no_loss_of_power_loses_a_finished_step_or_makes_an_unfinished_one_count(tmp_path: Path) -> None:
    outcome = torture(tmp_path, Scale(count=300, seconds=60))
    assert outcome.faults == []
    assert outcome.tried["different states in which the job was loaded and planned"] > 100
    assert outcome.tried["of these, resumed to the end by the program"] > 0


# The model itself.


def disk_after(top: Path, *calls: Call) -> Disk:
    disk = Disk(top)
    for call in calls:
        assert disk.apply(call)
    return disk


def states(disk: Disk) -> list[bytes | None]:
    """What a file may hold, with all names kept; ``None`` where it has no name once all are lost."""
    [node] = disk.pending_nodes()
    every = [
        found["file"][2]
        for one in contents(node)
        if (found := disk.found(lambda _naming: True, {node: one}, lost=False))
    ]
    lost = disk.found(lambda _naming: False, {}, lost=True)
    return [*every, lost["file"][2] if "file" in lost else None]


def opened(top: Path) -> Call:
    return Call("open", f"{top}/file", flags="O_WRONLY|O_CREAT", number=0o666)


def test_what_was_not_synced_may_be_there_in_part_or_as_zeros(tmp_path: Path) -> None:
    disk = disk_after(tmp_path, opened(tmp_path), Call("write", f"{tmp_path}/file", data=b"a" * 600))
    found = states(disk)
    assert bytes(600) in found
    assert b"a" in found
    assert b"a" * 512 + bytes(88) in found
    assert bytes(512) + b"a" * 88 in found
    assert found[-1] is None
    chance = random.Random(1)
    [node] = disk.pending_nodes()
    assert {len(random_content(node, chance)) for _ in range(200)} > {0, 600}


def test_what_was_synced_stays_and_its_name_only_with_its_folder(tmp_path: Path) -> None:
    written = (opened(tmp_path), Call("write", f"{tmp_path}/file", data=b"old"), Call("fsync", f"{tmp_path}/file"))
    disk = disk_after(tmp_path, *written)
    assert not disk.pending_nodes()
    assert disk.found(lambda _naming: False, {}, lost=True) == {}
    disk.apply(Call("fsync", str(tmp_path)))
    assert disk.found(lambda _naming: False, {}, lost=True)["file"][2] == b"old"


def test_a_rename_takes_place_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    new = Call("open", f"{tmp_path}/new", flags="O_WRONLY|O_CREAT|O_EXCL", number=0o666)
    disk = disk_after(
        tmp_path,
        new,
        Call("write", f"{tmp_path}/new", data=b"content"),
        Call("rename", f"{tmp_path}/new", other=f"{tmp_path}/file"),
    )
    contents_found = set()
    for lost in (False, True):
        for count in range(3):
            kept = set(disk.namings[:count])
            found = disk.found(lambda naming, kept=kept: naming in kept, {}, lost=lost)  # type: ignore[misc]
            contents_found.add((found["file"][2], "new" in found))
    assert contents_found == {(b"old", False), (b"old", True), (b"content", False), (b"", False)}


def test_what_is_found_is_laid_out_as_it_was(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    (first / "folder").mkdir(parents=True)
    (first / "folder" / "file").write_bytes(b"x")
    (first / "folder" / "file").chmod(0o600)
    (first / "link").symlink_to("folder")
    second.mkdir()
    lay_out(found_in(first), second)
    assert found_in(second) == found_in(first)
