"""What a folder does for the names in it: whether they last, and whose they are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest import mock

import pytest

from checkpoint_action.store.folders import check_owner, make_folder
from tests.runner.jobs import NOBODY, ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="other owners and syncs there")


def synced_by_making(folder: Path) -> list[str]:
    """The folders that are synced, in order, while one is made."""
    found: list[str] = []
    with mock.patch.object(os, "fsync", lambda number: found.append(os.path.realpath(f"/dev/fd/{number}"))):
        make_folder(folder)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="finds the name of an open folder in /proc")
def test_each_folder_that_gets_a_new_name_is_synced_after_it(tmp_path: Path) -> None:
    top = Path(os.path.realpath(tmp_path))
    assert synced_by_making(top / "a" / "b" / "c") == [str(top), str(top / "a"), str(top / "a" / "b")]
    assert (top / "a" / "b" / "c").is_dir()
    assert synced_by_making(top / "a" / "b" / "c") == []


@pytest.mark.skipif(sys.platform != "linux", reason="finds the name of an open folder in /proc")
def test_a_relative_folder_is_one_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert synced_by_making(Path("a") / "b") == [os.path.realpath(tmp_path), os.path.realpath(tmp_path / "a")]
    assert synced_by_making(Path()) == []


def test_what_is_no_folder_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_folder(tmp_path / "file" / "below")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "file")


@pytest.fixture
def strange(tmp_path: Path) -> Path:
    """Somebody else's file in a folder that all may write to and where each keeps what is his."""
    if not ROOT:
        pytest.skip("only root gives files away")
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o1777)
    (public / "ours").touch()
    found = public / "strange"
    found.touch()
    os.chown(found, NOBODY, NOBODY)
    return found


def test_what_somebody_else_has_put_into_a_public_folder_is_refused_by_name(strange: Path) -> None:
    check_owner(strange.parent, [strange.parent / "ours", strange.parent / "missing"])
    with pytest.raises(PermissionError, match="another user's") as caught:
        check_owner(strange.parent, [strange.parent / "ours", strange])
    assert caught.value.filename == str(strange)
    with pytest.raises(PermissionError):
        check_owner(str(strange.parent), [str(strange)])


@pytest.mark.parametrize("kind", ["folder", "link", "dangling link"])
def test_it_need_not_be_a_file(strange: Path, kind: str) -> None:
    other = strange.with_name("other")
    if kind == "folder":
        other.mkdir()
    else:
        other.symlink_to("ours" if kind == "link" else "nowhere")
    os.lchown(other, NOBODY, NOBODY)
    with pytest.raises(PermissionError):
        check_owner(strange.parent, [other])


@pytest.mark.parametrize("mode", [0o777, 0o1755, 0o755, 0o700])
def test_in_a_folder_of_another_kind_nothing_is_asked(strange: Path, mode: int) -> None:
    strange.parent.chmod(mode)
    check_owner(strange.parent, [strange])


def test_in_a_public_folder_of_a_group_it_is_refused_too(strange: Path) -> None:
    strange.parent.chmod(0o1770)
    with pytest.raises(PermissionError):
        check_owner(strange.parent, [strange])


def test_the_owner_of_the_folder_is_trusted(strange: Path) -> None:
    os.chown(strange.parent, NOBODY, NOBODY)
    check_owner(strange.parent, [strange, strange.parent / "ours"])


def test_a_folder_that_is_not_there_has_nothing_in_it(tmp_path: Path) -> None:
    check_owner(tmp_path / "none", [tmp_path / "none" / "file"])
