"""What a workspace holds, and what a step changed in it."""

from __future__ import annotations

import os
import socket
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Entry, Layer
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.hashing import ContentDigests, text_digest
from checkpoint_action.runner.scan import Scan, Workspace, difference, walk
from tests.runner.jobs import as_nobody

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and odd names as POSIX has them")


def scan(root: Path, *exclude: str) -> Scan:
    return Workspace.at(root, Excludes(exclude)).scan(ContentDigests())


def test_files_folders_and_links_are_told_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir(mode=0o750)
    (tmp_path / "d" / "f").write_text("text")
    (tmp_path / "d" / "f").chmod(0o4751)
    os.utime(tmp_path / "d" / "f", ns=(5, 1_700_000_000_123_456_789))
    (tmp_path / "l").symlink_to("nowhere")
    (tmp_path / "to-folder").symlink_to("d")
    found = scan(tmp_path)
    assert set(found) == {"d", "l", "to-folder", "d/f"}
    assert found["d/f"] == Entry("d/f", "file", 0o4751, 1_700_000_000_123_456_789, 4, text_digest("text"))
    assert (found["d"].type, found["d"].mode) == ("dir", 0o750)
    assert (found["l"].type, found["l"].target) == ("link", "nowhere")
    assert (found["to-folder"].type, found["to-folder"].target) == ("link", "d")


def test_odd_names_keep_their_bytes(tmp_path: Path) -> None:
    names = [b"a\nb", b"-rf", b" ", b"\xff\xfe", "stra\u00dfe".encode(), b"a\\b", b"x:y"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    assert {os.fsencode(path) for path in scan(tmp_path)} == set(names)


def test_sockets_and_pipes_are_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        assert scan(tmp_path) == {}


def test_folders_come_before_what_they_hold(tmp_path: Path) -> None:
    for folder in ("b/c/d", "a/x", "b/a"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_text("")
    seen: set[str] = set()
    for path in walk(str(tmp_path), ""):
        assert path.rpartition("/")[0] in {"", *seen}
        seen.add(path)
    assert len(seen) == 9


def test_excluded_folders_are_not_entered_and_taken_back_files_stay(tmp_path: Path) -> None:
    (tmp_path / "cache" / "deep").mkdir(parents=True)
    (tmp_path / "cache" / "deep" / "keep.o").write_text("")
    (tmp_path / "a.o").write_text("")
    (tmp_path / "keep.o").write_text("")
    assert set(scan(tmp_path, "cache/", "*.o", "!keep.o")) == {"keep.o"}


def test_our_own_files_are_left_out_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / ".checkpoint-run-demo.json").write_text("")
    (tmp_path / "d" / ".checkpoint-run-demo.logs").mkdir(parents=True)
    (tmp_path / "d" / ".checkpoint-run-demo.logs" / "a.log").write_text("")
    assert list(scan(tmp_path)) == ["d"]


def test_repositories_of_the_checkout_are_left_out_and_later_ones_kept(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / ".git").write_text("gitdir: ../.git/modules/sub")
    workspace = Workspace.at(tmp_path, Excludes(()))
    (tmp_path / "new" / ".git").mkdir(parents=True)
    (tmp_path / "new" / ".git" / "HEAD").write_text("")
    assert set(workspace.scan(ContentDigests())) == {"new", "sub", "new/.git", "new/.git/HEAD"}


def test_a_repository_made_at_the_top_by_a_step_is_left_out(tmp_path: Path) -> None:
    workspace = Workspace.at(tmp_path, Excludes(()))
    (tmp_path / ".git").mkdir()
    assert workspace.scan(ContentDigests()) == {}


def test_the_difference_of_two_scans(tmp_path: Path) -> None:
    for name in ("same", "edited", "touched", "gone", "mode"):
        (tmp_path / name).write_text(name)
    (tmp_path / "was-file").write_text("x")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "f").write_text("f")
    before = scan(tmp_path)
    (tmp_path / "edited").write_text("new")
    os.utime(tmp_path / "touched", ns=(1, 1))
    (tmp_path / "gone").unlink()
    (tmp_path / "mode").chmod(0o600)
    (tmp_path / "was-file").unlink()
    (tmp_path / "was-file").mkdir()
    (tmp_path / "old" / "f").unlink()
    (tmp_path / "old").rmdir()
    (tmp_path / "added").symlink_to("x")
    layer = difference(before, scan(tmp_path))
    assert [entry.path for entry in layer.entries] == ["added", "edited", "mode", "touched", "was-file"]
    assert layer.deleted == ("gone", "old", "old/f")
    assert layer.before == {
        "edited": text_digest("edited"),
        "mode": text_digest("mode"),
        "touched": text_digest("touched"),
        "was-file": text_digest("x"),
        "gone": text_digest("gone"),
        "old": "dir",
        "old/f": text_digest("f"),
    }


class Settled:
    """A clock by which every change is long past."""

    def passed(self, info: os.stat_result) -> bool:
        return True


def test_what_is_still_so_is_taken_from_the_scan_before_and_all_else_is_seen(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("a", "d/touched", "d/edited", "d/mode", "d/swapped", "gone", "typed"):
        (tmp_path / name).write_text(name)
    (tmp_path / "link").symlink_to("a")
    space, digests = Workspace.at(tmp_path, Excludes(())), ContentDigests(clock=Settled())
    before = space.scan(digests)
    os.utime(tmp_path / "d" / "touched", ns=(1, 1))
    (tmp_path / "d" / "edited").write_text("d/EDITED")
    os.utime(tmp_path / "d" / "edited", ns=(before["d/edited"].mtime_ns,) * 2)
    (tmp_path / "d" / "mode").chmod(0o755)
    (tmp_path / "other").write_text("d/swappe!")
    os.utime(tmp_path / "other", ns=(before["d/swapped"].mtime_ns,) * 2)
    (tmp_path / "other").replace(tmp_path / "d" / "swapped")
    (tmp_path / "gone").unlink()
    (tmp_path / "typed").unlink()
    (tmp_path / "typed").mkdir()
    (tmp_path / "new").write_text("new")
    after = space.scan(digests, before)
    assert after == space.scan(ContentDigests())
    assert after["a"] is before["a"]
    layer = difference(before, after)
    changed = ["d", "d/edited", "d/mode", "d/swapped", "d/touched", "new", "typed"]
    assert [entry.path for entry in layer.entries] == changed
    assert layer.deleted == ("gone",)


def test_a_file_that_may_have_changed_unseen_is_read_again_though_it_was_in_the_scan_before(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    space, digests = Workspace.at(tmp_path, Excludes(())), ContentDigests()
    before = space.scan(digests)
    (tmp_path / "f").write_text("two")
    os.utime(tmp_path / "f", ns=(before["f"].mtime_ns,) * 2)
    assert space.scan(digests, before)["f"].sha256 == text_digest("two")


def test_a_scan_after_a_scan_after_a_scan_takes_over_what_it_can_and_misses_nothing(tmp_path: Path) -> None:
    for folder in ("d/e", "x"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "f").write_text(folder)
    space, digests = Workspace.at(tmp_path, Excludes(("*.tmp",))), ContentDigests(clock=Settled())
    first = space.scan(digests)
    (tmp_path / "x" / "f").unlink()
    (tmp_path / "x" / "more.tmp").write_text("left out")
    (tmp_path / "x" / ".checkpoint-run-demo.json").write_text("left out")
    second = space.scan(digests, first)
    (tmp_path / "x" / "f").write_text("again")
    (tmp_path / "d" / "e" / "new").write_text("new")
    third = space.scan(digests, second)
    assert "x/f" not in second
    assert third == space.scan(ContentDigests())
    assert set(third) == {"d", "d/e", "d/e/f", "d/e/new", "x", "x/f"}
    assert third["d"] is first["d"]
    assert third["d/e/f"] is first["d/e/f"]


def test_what_is_there_is_seen_whatever_was_done_to_the_scan_before(tmp_path: Path) -> None:
    for name in ("told-otherwise", "told-away", "same"):
        (tmp_path / name).write_text(name)
    space, digests = Workspace.at(tmp_path, Excludes(())), ContentDigests(clock=Settled())
    before = space.scan(digests)
    before["told-otherwise"] = Entry("told-otherwise", "file", 0, 0, sha256="x")
    del before["told-away"]
    layer = difference(before, space.scan(digests, before))
    assert [entry.path for entry in layer.entries] == ["told-away", "told-otherwise"]
    assert layer.entries[1].sha256 == text_digest("told-otherwise")


def test_what_is_done_to_a_scan_shows_in_no_other(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("d/told-otherwise", "d/told-away", "d/same"):
        (tmp_path / name).write_text(name)
    space, digests = Workspace.at(tmp_path, Excludes(())), ContentDigests(clock=Settled())
    before = space.scan(digests)
    after = space.scan(digests, before)
    before["d/told-otherwise"] = Entry("d/told-otherwise", "file", 0, 0, sha256="x")
    before["e/new"] = Entry("e/new", "file", 0, 0, sha256="y")
    del before["d/told-away"]
    assert set(before) == {"d", "d/same", "d/told-otherwise", "e/new"}
    assert len(before) == 4
    assert after == space.scan(ContentDigests())
    layer = difference(before, after)
    assert [entry.path for entry in layer.entries] == ["d/told-away", "d/told-otherwise"]
    assert layer.deleted == ("e/new",)
    assert layer.before == {"d/told-otherwise": "x", "e/new": "y"}


def test_what_is_left_out_hides_no_change_beside_it(tmp_path: Path) -> None:
    for name in ("a.tmp", "b", "c.tmp"):
        (tmp_path / name).write_text("one")
    space, digests = Workspace.at(tmp_path, Excludes(("*.tmp",))), ContentDigests(clock=Settled())
    scans = [space.scan(digests)]
    for word in ("one", "two", "two", "three"):
        (tmp_path / "a.tmp").write_text(f"{len(scans)} times")
        (tmp_path / "b").write_text(word)
        scans.append(space.scan(digests, scans[-1]))
    assert [scan["b"].sha256 for scan in scans] == [text_digest(word) for word in ("one", "one", "two", "two", "three")]
    assert all(set(scan) == {"b"} for scan in scans)


def test_what_is_left_out_is_kept_once_it_is_a_file_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    space, digests = Workspace.at(tmp_path, Excludes(("cache/",))), ContentDigests(clock=Settled())
    before = space.scan(digests, space.scan(digests))
    (tmp_path / "cache").rmdir()
    (tmp_path / "cache").write_text("now a file")
    assert set(before) == set()
    assert set(space.scan(digests, before)) == {"cache"}


def test_what_other_digests_have_seen_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("one")
    space = Workspace.at(tmp_path, Excludes(()))
    before = space.scan(ContentDigests(clock=Settled()))
    digests = ContentDigests(clock=Settled())
    after = space.scan(digests, before)
    assert after == before
    assert after["f"] is not before["f"]
    assert set(digests.seen) == {str(tmp_path / "f")}


def test_what_is_taken_over_stays_in_what_the_digests_have_seen(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("one")
    space, digests = Workspace.at(tmp_path, Excludes(())), ContentDigests(clock=Settled())
    before = space.scan(digests)
    seen = dict(digests.seen)
    assert seen
    space.scan(digests, before)
    assert digests.seen == seen


def test_a_link_is_looked_at_each_time(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to("one")
    space, digests = Workspace.at(tmp_path, Excludes(())), ContentDigests(clock=Settled())
    before = space.scan(digests)
    info = os.lstat(tmp_path / "l")
    (tmp_path / "l").unlink()
    (tmp_path / "l").symlink_to("two")
    os.utime(tmp_path / "l", ns=(info.st_atime_ns, info.st_mtime_ns), follow_symlinks=False)
    assert space.scan(digests, before)["l"].target == "two"


def test_a_known_file_that_we_may_not_look_at_any_more_does_not_count_as_deleted(public: Path) -> None:
    (public / "listed").mkdir()
    (public / "listed" / "f").write_text("")
    with as_nobody(public):
        space, digests = Workspace.at(public, Excludes(())), ContentDigests(clock=Settled())
        before = space.scan(digests)
        (public / "listed").chmod(0o600)
        after = space.scan(digests, before)
    assert "listed/f" in before
    assert "listed/f" not in after
    assert difference(before, after).deleted == ()


def test_nothing_changed_is_an_empty_layer(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    assert difference(scan(tmp_path), scan(tmp_path)) == Layer()


def test_a_folder_that_cannot_be_entered_stops_no_scan(public: Path) -> None:
    (public / "closed").mkdir()
    (public / "closed" / "f").write_text("")
    (public / "listed").mkdir()
    (public / "listed" / "f").write_text("")
    (public / "f").write_text("")
    with as_nobody(public):
        (public / "closed").chmod(0)
        (public / "listed").chmod(0o600)
        found = scan(public)
    assert {"closed", "f", "listed"} <= set(found)


def test_what_a_step_made_unreadable_does_not_count_as_deleted(public: Path) -> None:
    for folder in ("closed", "listed"):
        (public / folder / "deep").mkdir(parents=True)
        (public / folder / "deep" / "f").write_text("")
    with as_nobody(public):
        before = scan(public)
        (public / "closed").chmod(0)
        (public / "listed").chmod(0o600)
        layer = difference(before, scan(public))
    assert layer.deleted == ()
    assert {entry.path for entry in layer.entries} >= {"closed", "listed"}


def test_a_file_that_cannot_be_read_is_there_without_a_digest(public: Path) -> None:
    (public / "f").write_text("secret")
    with as_nobody(public):
        (public / "f").chmod(0)
        assert scan(public)["f"].sha256 == ""


def test_a_path_longer_than_the_system_takes_stops_no_scan(tmp_path: Path) -> None:
    here = os.getcwd()
    try:
        os.chdir(tmp_path)
        for _ in range(25):
            os.mkdir("d" * 200)
            os.chdir("d" * 200)
        with open("f", "w"):
            pass
    finally:
        os.chdir(here)
    assert "d" * 200 in scan(tmp_path)
