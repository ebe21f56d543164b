"""A layer into a workspace: only over what may be written over, and all or nothing."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import BundleError
from checkpoint_action.model import Layer
from checkpoint_action.store import bundle, transaction
from checkpoint_action.store.apply import apply_layer
from tests.store.labs import Lab, become, everything, furnish
from tests.store.trees import (
    archive,
    as_nobody,
    dir_entry,
    file_entry,
    layer_of,
    link_entry,
    nothing_else,
    scan,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


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


def new_folders(root: Path) -> None:
    """A step that makes folders of every kind below one that is there and one that is not."""
    for top in ("here", "new"):
        (root / top / "deep" / "closed").mkdir(parents=True)
        (root / top / "deep" / "closed" / "f").write_text(top)
        (root / top / "deep" / "closed" / "f").chmod(0o444)
        (root / top / "deep" / "up").symlink_to("../../here")
        (root / top / "deep" / "empty").mkdir(mode=0o700)
        (root / top / "deep" / "closed").chmod(0o555)
    (root / "new").chmod(0o555)


def test_a_folder_that_is_not_there_is_moved_as_a_whole(lab: Lab) -> None:
    (lab.work / "here").mkdir()
    lab.step(new_folders)
    unpacked = {path: (lab.side / path).lstat().st_ino for path in ("new", "new/deep", "here/deep", "here/deep/closed")}
    lab.apply()
    assert scan(lab.root) == lab.wanted
    assert {path: (lab.root / path).lstat().st_ino for path in unpacked} == unpacked


@pytest.mark.parametrize("fail_at", [1, 2])
def test_folders_moved_as_a_whole_are_taken_back_for_a_user_whom_permissions_bind(fail_at: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "lab").mkdir()
        lab = Lab(Path(folder, "lab"))
        (lab.work / "here").mkdir()
        lab.step(new_folders)
        left, real = fail_at, transaction.Transaction._stamp

        def failing(self: transaction.Transaction, path: str, mode: int, mtime_ns: int | None) -> None:
            nonlocal left
            real(self, path, mode, mtime_ns)
            left -= path in ("new", "here/deep")
            if not left:
                left = -1000
                raise OSError("no more")

        with pytest.MonkeyPatch.context() as patch, as_nobody(lab.folder):
            patch.setattr(transaction.Transaction, "_stamp", failing)
            lab.refuse("no more")
        with as_nobody(lab.folder):
            shutil.rmtree(lab.side)
            lab.unpack()
            lab.apply()
        assert scan(lab.root) == lab.wanted


def test_a_folder_whose_upper_folder_is_not_in_the_layer_is_restored_too(lab: Lab) -> None:
    (lab.work / "a" / "b" / "c").mkdir(parents=True)
    (lab.work / "a" / "b" / "c" / "f").write_text("f")
    (lab.work / "a" / "x").write_text("x")
    layer = layer_of(lab.work, "a", "a/b/c", "a/b/c/f", "a/x")  # without a/b
    lab.root.mkdir()
    bundle.unpack_layer(archive(lab.work, layer, lab.folder / "pack"), "build", layer, lab.side)
    apply_layer(lab.side, lab.root, layer, nothing_else)
    found = scan(lab.root)
    assert found.pop("a/b").type == "dir"
    assert {entry.path: entry for entry in layer.entries} == found


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
    lab.step(lambda root: become(root, {"l": ("two",)}))
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


names = st.sampled_from(["a", "b", "c"])
contents = st.sampled_from(["", "one", "two"])
shapes = st.recursive(
    st.dictionaries(names, contents | st.sampled_from([("a",), ("../..",)]), max_size=3),
    lambda inner: st.dictionaries(names, inner | contents | st.sampled_from([("a",), ("../..",)]), max_size=3),
    max_leaves=8,
)


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
