"""A layer into a workspace: only over what may be written over, and all or nothing."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Entry, Layer
from checkpoint_action.store import bundle, transaction
from checkpoint_action.store.apply import apply_layer
from tests.store.trees import (
    archive,
    as_nobody,
    dir_entry,
    file_entry,
    layer_between,
    layer_of,
    link_entry,
    nothing_else,
    scan,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them")


class Lab:
    """A workspace that a step changes, and a fresh copy of what it was before to restore into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / "work"
        self.root = folder / "root"
        self.side = folder / "side"
        self.work.mkdir()
        self.layer = Layer()
        self.wanted: dict[str, Entry] = {}

    def step(self, change: Callable[[Path], object]) -> None:
        """Copy the workspace as it is to ``root``, then let the step run and pack its layer."""
        shutil.copytree(self.work, self.root, symlinks=True)
        before = scan(self.work)
        assert scan(self.root) == before
        change(self.work)
        self.wanted = scan(self.work)
        self.layer = layer_between(before, self.wanted)
        archive(self.work, self.layer, self.folder / "pack")
        self.unpack()

    def unpack(self) -> None:
        """A fresh ``side``."""
        shutil.rmtree(self.side, ignore_errors=True)
        bundle.unpack_layer(self.folder / "pack" / "archive", "build", self.layer, self.side)

    def apply(self, acceptable: Callable[[str], tuple[str, ...]] = nothing_else) -> None:
        apply_layer(self.side, self.root, self.layer, acceptable)

    def refuse(self, match: str, acceptable: Callable[[str], tuple[str, ...]] = nothing_else) -> None:
        """Nothing is changed."""
        before, root_time = scan(self.root), self.root.stat().st_mtime_ns
        with pytest.raises(BundleError, match=match):
            self.apply(acceptable)
        assert scan(self.root) == before
        assert self.root.stat().st_mtime_ns == root_time


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def furnish(root: Path) -> None:
    """A workspace with something of everything."""
    (root / "src" / "deep").mkdir(parents=True)
    (root / "src" / "main").write_text("main")
    (root / "src" / "deep" / "part").write_text("part")
    (root / "old" / "older").mkdir(parents=True)
    (root / "old" / "a").write_text("a")
    (root / "old" / "older" / "b").write_text("b")
    (root / "link").symlink_to("src")
    (root / "file-to-folder").write_text("file")
    (root / "folder-to-file").mkdir()
    (root / "folder-to-file" / "x").write_text("x")
    (root / "link-to-folder").symlink_to("src")
    (root / "folder-to-link").mkdir()
    (root / "folder-to-link" / "y").write_text("y")
    (root / "file-to-link").write_text("f")
    (root / "link-to-file").symlink_to("nowhere")
    (root / "kept").write_text("kept")
    (root / "locked").mkdir()
    (root / "locked" / "in").write_text("in")
    for number, path in enumerate(sorted(scan(root), reverse=True)):
        times = 1_500_000_000_000_000_123 + number * 1_000_000_007
        os.utime(root / path, ns=(times, times), follow_symlinks=False)
    (root / "locked").chmod(0o555)


def everything(root: Path) -> None:
    """A step that changes every kind into every other one, adds, edits and deletes."""
    (root / "src" / "main").write_text("main, edited")
    (root / "src" / "new").write_text("new")
    (root / "src" / "new").chmod(0o755)
    (root / "made" / "empty").mkdir(parents=True)
    (root / "made" / "out").write_text("out")
    shutil.rmtree(root / "old")
    (root / "link").unlink()
    (root / "link").symlink_to("made")
    (root / "file-to-folder").unlink()
    (root / "file-to-folder").mkdir()
    (root / "file-to-folder" / "z").write_text("z")
    shutil.rmtree(root / "folder-to-file")
    (root / "folder-to-file").write_text("now a file")
    (root / "link-to-folder").unlink()
    (root / "link-to-folder").mkdir()
    (root / "link-to-folder" / "w").write_text("w")
    shutil.rmtree(root / "folder-to-link")
    (root / "folder-to-link").symlink_to("/nowhere")
    (root / "file-to-link").unlink()
    (root / "file-to-link").symlink_to("kept")
    (root / "link-to-file").unlink()
    (root / "link-to-file").write_text("file")
    (root / "locked").chmod(0o755)
    (root / "locked" / "in").write_text("in, edited")
    (root / "locked" / "added").write_text("added")
    (root / "locked").chmod(0o555)
    (root / "made").chmod(0o500)


def test_a_step_that_changes_everything_is_restored_exactly(lab: Lab) -> None:
    furnish(lab.work)
    lab.step(everything)
    lab.apply()
    assert scan(lab.root) == lab.wanted
    assert len(lab.layer.deleted) == 6


def test_as_a_user_whom_permissions_bind_too() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "lab").mkdir()
        lab = Lab(Path(folder, "lab"))
        furnish(lab.work)
        lab.step(everything)
        with as_nobody(lab.folder):
            with pytest.raises(PermissionError):
                Path(lab.root, "locked", "direct").touch()
            lab.apply()
        assert scan(lab.root) == lab.wanted


def test_restoring_twice_changes_nothing_the_second_time(lab: Lab) -> None:
    furnish(lab.work)
    lab.step(everything)
    lab.apply()
    inodes = {path: os.lstat(lab.root / path).st_ino for path in scan(lab.root)}
    lab.apply()
    assert scan(lab.root) == lab.wanted
    assert {path: os.lstat(lab.root / path).st_ino for path in scan(lab.root)} == inodes


def test_content_that_is_there_already_gets_its_mode_and_time(lab: Lab) -> None:
    lab.step(lambda root: (root / "f").write_text("same"))
    (lab.root / "f").write_text("same")
    (lab.root / "f").chmod(0o600)
    lab.apply()
    assert scan(lab.root) == lab.wanted


def test_folders_above_a_declared_output_are_made(lab: Lab, tmp_path: Path) -> None:
    (lab.work / "a" / "b").mkdir(parents=True)
    (lab.work / "a" / "b" / "out").write_text("out")
    layer = layer_of(lab.work, "a/b/out")
    bundle.unpack_layer(archive(lab.work, layer, tmp_path / "pack"), "build", layer, lab.side)
    lab.root.mkdir()
    apply_layer(lab.side, lab.root, layer, nothing_else)
    assert scan(lab.root)["a/b/out"] == layer.entries[0]


# What may be written over


def test_a_new_file_over_one_that_nobody_knows_is_refused(lab: Lab) -> None:
    lab.step(lambda root: (root / "out").write_text("out"))
    (lab.root / "out").write_text("precious")
    lab.refuse("out is a file with other content")


def test_a_changed_file_over_another_content_than_before_is_refused(lab: Lab) -> None:
    (lab.work / "f").write_text("before")
    (lab.work / "a").write_text("comes first")
    lab.step(lambda root: [(root / name).write_text("after") for name in ("a", "f")])
    (lab.root / "f").write_text("edited by hand")
    lab.refuse("^f is a file with other content")


def test_a_changed_file_that_is_missing_is_refused_unless_that_is_acceptable(lab: Lab) -> None:
    (lab.work / "f").write_text("before")
    lab.step(lambda root: (root / "f").write_text("after"))
    (lab.root / "f").unlink()
    lab.refuse("f is missing")
    lab.apply(lambda path: ("",))
    assert scan(lab.root) == lab.wanted


def test_a_state_that_another_step_recorded_is_acceptable(lab: Lab) -> None:
    (lab.work / "f").write_text("before")
    lab.step(lambda root: (root / "f").write_text("after"))
    (lab.root / "f").write_text("by a later step")
    asked = []

    def acceptable(path: str) -> tuple[str, ...]:
        asked.append(path)
        return (file_entry("f", b"by a later step").sha256,)

    lab.apply(acceptable)
    assert scan(lab.root) == lab.wanted
    assert asked == ["f"]


def test_a_deleted_file_with_another_content_is_refused(lab: Lab) -> None:
    (lab.work / "f").write_text("before")
    lab.step(lambda root: (root / "f").unlink())
    (lab.root / "f").write_text("edited by hand")
    lab.refuse("f is a file with other content")


def test_a_deleted_file_that_is_gone_already_is_no_problem(lab: Lab) -> None:
    (lab.work / "d").mkdir()
    (lab.work / "d" / "f").write_text("before")
    lab.step(lambda root: shutil.rmtree(root / "d"))
    shutil.rmtree(lab.root / "d")
    lab.apply()
    assert scan(lab.root) == {}


@pytest.mark.parametrize("change", ["delete", "to file", "to link"])
def test_a_folder_that_is_to_go_but_holds_a_strangers_file_is_refused(lab: Lab, change: str) -> None:
    (lab.work / "d").mkdir()
    (lab.work / "d" / "f").write_text("before")
    (lab.work / "x").write_text("x")

    def step(root: Path) -> None:
        shutil.rmtree(root / "d")
        (root / "x").unlink()
        if change == "to file":
            (root / "d").write_text("file")
        elif change == "to link":
            (root / "d").symlink_to("/nowhere")

    lab.step(step)
    (lab.root / "d" / "strange").write_text("strange")
    lab.refuse("d is to go, but holds strange")


@pytest.mark.parametrize("kind", ["pipe", "link", "dir"])
def test_another_kind_of_thing_in_the_way_is_refused(lab: Lab, kind: str) -> None:
    lab.step(lambda root: (root / "out").write_text("out"))
    if kind == "pipe":
        os.mkfifo(lab.root / "out")
        with pytest.raises(BundleError, match="out is a device or a pipe"):
            lab.apply(lambda path: ("", "dir"))
        assert os.listdir(lab.root) == ["out"]
        return
    if kind == "link":
        (lab.root / "out").symlink_to("elsewhere")
    else:
        (lab.root / "out").mkdir()
    lab.refuse("out is another link" if kind == "link" else "out is a folder")


def test_a_link_with_another_target_than_before_is_refused(lab: Lab) -> None:
    (lab.work / "l").symlink_to("one")
    lab.step(lambda root: ((root / "l").unlink(), (root / "l").symlink_to("two")))
    (lab.root / "l").unlink()
    (lab.root / "l").symlink_to("three")
    lab.refuse("l is another link")


# Never through a link


@pytest.mark.parametrize("there", ["folder", "nothing"])
def test_a_parent_that_is_a_link_here_is_refused(lab: Lab, there: str) -> None:
    (lab.work / "d").mkdir()
    lab.step(lambda root: (root / "d" / "f").write_text("f"))
    lab.layer = Layer(tuple(entry for entry in lab.layer.entries if entry.type == "file"))
    (lab.root / "d").rmdir()
    (lab.folder / "outside").mkdir()
    (lab.root / "d").symlink_to("../outside" if there == "folder" else "../nothing")
    lab.refuse("d/f is below d, which is a link")
    assert os.listdir(lab.folder / "outside") == []


def test_a_file_behind_a_link_is_not_deleted(lab: Lab) -> None:
    (lab.work / "d").mkdir()
    (lab.work / "d" / "f").write_text("f")
    lab.step(lambda root: (root / "d" / "f").unlink())
    lab.layer = Layer(deleted=("d/f",), before=lab.layer.before)
    (lab.root / "d").rename(lab.folder / "outside")
    (lab.root / "d").symlink_to("../outside")
    lab.refuse("d/f is below d, which is a link")
    assert (lab.folder / "outside" / "f").read_text() == "f"


def test_a_parent_that_becomes_a_link_after_the_look_is_found(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (lab.work / "d").mkdir()
    lab.step(lambda root: (root / "d" / "f").write_text("f"))
    (lab.folder / "outside").mkdir()
    made = transaction.Transaction.__init__

    def swapped(self: transaction.Transaction, *given: Any) -> None:
        made(self, *given)
        self._tree.forget()
        (lab.root / "d").rmdir()
        (lab.root / "d").symlink_to("../outside")

    monkeypatch.setattr(transaction.Transaction, "__init__", swapped)
    with pytest.raises(BundleError, match="not a folder"):
        lab.apply()
    assert os.listdir(lab.folder / "outside") == []


def test_a_link_that_leads_out_is_restored_and_not_followed(lab: Lab) -> None:
    (lab.folder / "outside").mkdir()
    os.utime(lab.folder / "outside", ns=(5, 5))
    lab.step(lambda root: (root / "l").symlink_to("../outside"))
    lab.apply()
    assert scan(lab.root) == lab.wanted
    assert (lab.folder / "outside").stat().st_mtime_ns == 5


def test_a_root_that_is_reached_through_a_link_is_fine(lab: Lab) -> None:
    furnish(lab.work)
    lab.step(everything)
    (lab.folder / "alias").symlink_to("root")
    apply_layer(lab.side, lab.folder / "alias", lab.layer, nothing_else)
    assert scan(lab.root) == lab.wanted


# All or nothing


FALLIBLE = ["replace", "link", "mkdir", "rmdir", "chmod", "fchmod", "utime", "symlink", "fsync", "unlink"]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], list[str]]]:
    """Make the n-th call that changes the disk fail as a full disk does, once."""

    def arm(number: int) -> list[str]:
        monkeypatch.undo()
        calls: list[str] = []
        if not number:
            return calls

        def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **named: Any) -> Any:
                calls.append(name)
                if len(calls) == number:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return real(*given, **named)

            return call

        for name in FALLIBLE:
            monkeypatch.setattr(os, name, wrap(name, getattr(os, name)))
        return calls

    yield arm
    monkeypatch.undo()


def other_filesystem(folder: Path) -> bool:
    return Path("/dev/shm").is_dir() and Path("/dev/shm").stat().st_dev != folder.stat().st_dev


@pytest.mark.parametrize("place", ["beside", "on another filesystem"])
def test_whatever_fails_everything_is_put_back(lab: Lab, failing: Callable[[int], list[str]], place: str) -> None:
    if place != "beside" and not other_filesystem(lab.folder):
        pytest.skip("one filesystem only")
    furnish(lab.work)
    lab.step(everything)
    before, number, seen = scan(lab.root), 0, set()
    shutil.copytree(lab.side, lab.folder / "kept")
    shutil.copytree(lab.root, lab.folder / "before", symlinks=True)
    while True:
        number += 1
        shutil.rmtree(lab.root)
        shutil.copytree(lab.folder / "before", lab.root, symlinks=True)
        root_time = lab.root.stat().st_mtime_ns
        with tempfile.TemporaryDirectory(dir=lab.folder if place == "beside" else "/dev/shm") as parent:
            lab.side = Path(parent, "side")
            shutil.copytree(lab.folder / "kept", lab.side)
            calls = failing(number)
            try:
                lab.apply()
            except BundleError as error:
                failing(0)
                assert "No space left" in str(error)
                assert "taken back" not in str(error)
                assert scan(lab.root) == before
                assert lab.root.stat().st_mtime_ns == root_time
                seen.add(calls[number - 1])
                continue
            failing(0)
        assert scan(lab.root) == lab.wanted
        if len(calls) < number:
            break  # nothing is left that could fail
        # No hard links here, or something left over in the side folder: neither is a reason to fail.
        assert calls[number - 1] in ("link", "unlink", "rmdir")
    assert {"replace", "mkdir", "utime", "rmdir"} <= seen


def test_a_folder_we_may_not_write_to_leaves_all_as_it_was() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "lab").mkdir()
        lab = Lab(Path(folder, "lab"))
        for name in ["a", "m", "z"]:
            (lab.work / name).mkdir()
            (lab.work / name / "f").write_text("before")
        lab.step(lambda root: [(root / name / "f").write_text(f"after {name}") for name in "amz"])
        with as_nobody(lab.folder):
            if os.geteuid() == 65534:
                os.seteuid(0)
                os.chown(lab.root / "m", 0, 0)  # somebody else's folder, in the middle of the work
                os.seteuid(65534)
                lab.refuse("Permission denied|not permitted")
        if os.geteuid() == 0:
            lab.unpack()
            lab.apply()  # with the right to do it, the same layer is fine
            assert scan(lab.root) == lab.wanted


def test_a_disk_that_is_really_full_leaves_all_as_it_was(lab: Lab) -> None:
    resource = pytest.importorskip("resource")
    if not other_filesystem(lab.folder):
        pytest.skip("one filesystem only")
    (lab.work / "a").write_text("before")
    lab.step(lambda root: ((root / "a").write_text("after"), (root / "big").write_bytes(bytes(1 << 20))))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as parent:
        shutil.copytree(lab.side, Path(parent, "side"))
        lab.side = Path(parent, "side")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, hard))  # Python ignores the signal: EFBIG
        try:
            lab.refuse("File too large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert sorted(os.listdir(lab.root)) == ["a"]


def test_a_failure_that_cannot_be_taken_back_says_where_the_originals_are(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab.work / "a").write_text("before")
    lab.step(lambda root: ((root / "a").unlink(), (root / "b").write_text("b")))
    real, count = os.replace, 0

    def dying(*given: Any, **named: Any) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise OSError(errno.EIO, "the disk died")
        real(*given, **named)

    monkeypatch.setattr(os, "replace", dying)
    with pytest.raises(BundleError, match=r"could not be taken back.*what could not be put back is in ") as caught:
        lab.apply()
    monkeypatch.undo()
    aside = Path(str(caught.value).rpartition(" is in ")[2])
    assert [path.read_text() for path in aside.iterdir()] == ["before"]


def test_an_interrupt_in_the_middle_puts_everything_back(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(lab.work)
    lab.step(everything)
    before = scan(lab.root)
    real, count = os.replace, 0

    def interrupted(*given: Any, **named: Any) -> None:
        nonlocal count
        count += 1
        if count == 12:
            raise KeyboardInterrupt
        real(*given, **named)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lab.apply()
    assert scan(lab.root) == before


def test_a_side_folder_that_lacks_a_file_changes_nothing(lab: Lab) -> None:
    furnish(lab.work)
    lab.step(everything)
    (lab.side / "src" / "new").unlink()
    lab.refuse("cannot restore into")


def test_another_filesystem_keeps_modes_and_times(lab: Lab) -> None:
    if not other_filesystem(lab.folder):
        pytest.skip("one filesystem only")
    furnish(lab.work)
    lab.step(everything)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as parent:
        shutil.copytree(lab.side, Path(parent, "side"))
        apply_layer(Path(parent, "side"), lab.root, lab.layer, nothing_else)
        assert not [path for path in scan(Path(parent)) if ".cpr-" in path]
    assert scan(lab.root) == lab.wanted


def test_a_file_is_never_missing_while_it_is_replaced(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (lab.work / "f").write_text("before")
    lab.step(lambda root: (root / "f").write_text("after"))
    real = os.replace
    seen = []

    def looking(*given: Any, **named: Any) -> None:
        seen.append((lab.root / "f").read_text())
        real(*given, **named)

    monkeypatch.setattr(os, "replace", looking)
    lab.apply()
    assert seen == ["before"]
    assert (lab.root / "f").read_text() == "after"


names = st.sampled_from(["a", "b", "c"])
contents = st.sampled_from(["", "one", "two"])
shapes = st.recursive(
    st.dictionaries(names, contents | st.sampled_from([("a",), ("../..",)]), max_size=3),
    lambda inner: st.dictionaries(names, inner | contents | st.sampled_from([("a",), ("../..",)]), max_size=3),
    max_leaves=8,
)


def become(folder: Path, shape: dict[str, Any]) -> None:
    """Make the folder hold exactly ``shape``, leaving alone what is right already."""
    for path in folder.iterdir():
        wanted = shape.get(path.name)
        if isinstance(wanted, dict) and path.is_dir() and not path.is_symlink():
            become(path, wanted)
        elif path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path)
    for name, value in shape.items():
        path = folder / name
        if path.is_dir() and not path.is_symlink():
            continue
        if isinstance(value, dict):
            path.mkdir()
            become(path, value)
        elif isinstance(value, tuple):
            path.symlink_to(value[0])
        else:
            path.write_text(value)


calm = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@calm
@given(shapes, shapes)
def test_any_step_is_restored_over_what_was_there_before_it(first: dict[str, Any], second: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        become(lab.work, first)
        lab.step(lambda root: become(root, second))
        lab.apply()
        assert scan(lab.root) == lab.wanted


@calm
@given(shapes, shapes, shapes)
def test_over_anything_else_it_is_restored_or_nothing_changes(
    first: dict[str, Any], second: dict[str, Any], here: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Path(folder))
        become(lab.work, first)
        lab.step(lambda root: become(root, second))
        become(lab.root, here)
        before = scan(lab.root)
        try:
            lab.apply()
        except BundleError:
            assert scan(lab.root) == before
        else:
            after = scan(lab.root)
            for entry in lab.layer.entries:
                assert after[entry.path] == entry
            assert not set(lab.layer.deleted) & set(after)
            # whatever the layer does not speak of is as it was
            spoken = {entry.path for entry in lab.layer.entries} | set(lab.layer.deleted)
            assert {path: entry.content for path, entry in after.items() if path not in spoken} == {
                path: entry.content for path, entry in before.items() if path not in spoken
            }


def test_hand_made_layers_that_cannot_be_are_refused_before_anything_is_read(lab: Lab) -> None:
    for layer in [
        Layer((dir_entry("../x"),)),
        Layer((link_entry("a", "b"), file_entry("a/b"))),
        Layer(deleted=("../root",)),
    ]:
        with pytest.raises(BundleError):
            apply_layer(lab.side, lab.root, layer, nothing_else)
