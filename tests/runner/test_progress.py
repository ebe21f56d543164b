"""What there is of an unfinished step: found, told from what was there before, and made durable."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.model import Layer
from checkpoint_action.runner import progress as module
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.patterns import expand
from checkpoint_action.runner.progress import (
    NoDigests,
    Progress,
    ProgressFolders,
    covers,
    progress_of,
    sync_progress,
)
from checkpoint_action.runner.scan import Scan, Workspace
from tests.runner.jobs import as_nobody, job, step

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and odd names as POSIX has them")


class World:
    """A workspace, and a step in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        self.folder = folder / "own"
        self.folder.mkdir()

    def write(self, **files: str) -> None:
        """Write files; ``__`` in a name is a slash."""
        for name, text in files.items():
            path = self.root / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def look(self) -> Scan:
        return Workspace.at(self.root, Excludes(())).scan(ContentDigests())

    def progress(self, *partial: str, before: Scan | None = None, cwd: str = ".") -> Progress:
        one = step("a", self.root / cwd, partial=partial)
        known: Any = {} if before is None else before
        return progress_of(one, job(self.root, one), self.folder, known, ContentDigests())


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def paths(layer: Layer) -> list[str]:
    return [entry.path for entry in layer.entries]


def test_only_what_differs_from_before_is_progress(world: World) -> None:
    world.write(build__same="1", build__edited="1", build__gone="1", other="1")
    before = world.look()
    world.write(build__edited="2", build__new="3", other="2")
    (world.root / "build/gone").unlink()
    found = world.progress("build/", before=before)
    assert paths(found.workspace) == ["build", "build/edited", "build/new"]
    assert found.workspace.deleted == ("build/gone",)
    assert found.workspace.before == {name: before[name].content for name in ("build", "build/edited", "build/gone")}


def test_a_time_alone_is_progress_too_as_build_tools_look_at_times(world: World) -> None:
    world.write(build__stamp="")
    before = world.look()
    os.utime(world.root / "build/stamp", ns=(1, 1_600_000_000_000_000_001))
    assert "build/stamp" in paths(world.progress("build/", before=before).workspace)


def test_a_folder_that_was_removed_is_gone_with_all_it_held(world: World) -> None:
    world.write(build__deep__x="1", build__y="1")
    before = world.look()
    for name in ("build/deep/x", "build/y"):
        (world.root / name).unlink()
    (world.root / "build/deep").rmdir()
    (world.root / "build").rmdir()
    found = world.progress("build/", before=before)
    assert found.workspace.deleted == ("build", "build/deep", "build/deep/x", "build/y")
    assert found.count == 4


def test_what_is_gone_and_not_named_is_no_progress(world: World) -> None:
    world.write(build__x="1", src__x="1")
    before = world.look()
    (world.root / "src/x").unlink()
    assert world.progress("build/", before=before).workspace == Layer()
    assert world.progress(before=before).workspace == Layer()


def test_a_link_is_progress_as_a_link(world: World) -> None:
    world.write(build__x="1")
    (world.root / "build/link").symlink_to("x")
    (world.root / "build/dangling").symlink_to("nowhere")
    (world.root / "build/up").symlink_to("..")
    found = {entry.path: entry for entry in world.progress("build/").workspace.entries}
    assert {path: entry.target for path, entry in found.items() if entry.type == "link"} == {
        "build/link": "x", "build/dangling": "nowhere", "build/up": "..",
    }  # fmt: skip
    assert set(found) == {"build", "build/x", "build/link", "build/dangling", "build/up"}


def test_the_file_in_the_place_of_a_folder_is_progress_and_the_folders_content_gone(world: World) -> None:
    world.write(build__x="1")
    before = world.look()
    (world.root / "build/x").unlink()
    (world.root / "build").rmdir()
    world.write(build="a file")
    found = world.progress("build", before=before)
    assert paths(found.workspace) == ["build"]
    assert found.workspace.deleted == ("build/x",)


def test_what_is_in_a_closed_folder_does_not_count_as_gone(public: Path) -> None:
    world = World(public)
    world.write(build__deep__x="1", build__y="1")
    before = world.look()
    closed = world.root / "build/deep"
    with as_nobody(public):
        closed.chmod(0)
        try:
            found = world.progress("build/", before=before)
        finally:
            closed.chmod(0o755)
    assert found.workspace.deleted == ()


def test_a_pipe_or_a_socket_is_no_progress(world: World) -> None:
    world.write(build__x="1")
    os.mkfifo(world.root / "build/pipe")
    assert paths(world.progress("build/").workspace) == ["build", "build/x"]


def test_the_steps_own_folder_is_progress_with_all_it_holds(world: World) -> None:
    (world.folder / "deep/empty").mkdir(parents=True)
    (world.folder / "deep/x").write_text("123")
    (world.folder / "link").symlink_to("deep/x")
    found = world.progress()
    assert paths(found.folder) == ["deep", "deep/empty", "deep/x", "link"]
    assert (found.size, found.count) == (3, 4)


def test_a_folder_that_is_not_there_is_no_progress(world: World) -> None:
    world.folder.rmdir()
    assert world.progress("build/") == Progress()


def test_the_workspace_itself_is_no_progress(world: World) -> None:
    world.write(x="1")
    assert paths(world.progress(".").workspace) == ["x"]


@pytest.mark.parametrize(
    ("cwd", "pattern", "path", "covered"),
    [
        (".", "build/", "build/x", True),
        (".", "build", "build/deep/x", True),
        (".", "build", "build", True),
        (".", "build", "builder", False),
        (".", ".", "anything/x", True),
        (".", "*.o", "x.o", True),
        (".", "*.o", "sub/x.o", False),
        (".", "**/*.o", "sub/x.o", True),
        (".", "out-*/", "out-1/deep/x", True),
        (".", "[[]x]", "[x]", True),
        ("sub", "build", "sub/build/x", True),
        ("sub", "build", "build/x", False),
        ("sub", "../build", "build/x", True),
        ("sub", "../*.o", "x.o", True),
        ("sub", ".", "sub/x", True),
        ("sub", ".", "other/x", False),
        ("sub", "**", "other/x", False),
        ("sub", "./build", "sub/build/x", True),
        ("sub", "ROOT/build", "build/x", True),
    ],
)
def test_what_a_pattern_covers(world: World, cwd: str, pattern: str, path: str, covered: bool) -> None:
    one = step("a", world.root / cwd, partial=(pattern.replace("ROOT", str(world.root)),))
    assert covers(one, job(world.root, one), path, folder=False) is covered


def test_a_later_pattern_takes_away(world: World) -> None:
    one = step("a", world.root, partial=("build/", "!build/tmp", "build/tmp/keep"))
    found = {path: covers(one, job(world.root, one), path, folder=False) for path in ("build/x", "build/tmp/x")}
    assert found == {"build/x": True, "build/tmp/x": False}
    assert covers(one, job(world.root, one), "build/tmp/keep", folder=False)


NAMES = st.sampled_from(["a", "b", "ab", ".c", "[a]"])
TREES = st.sets(st.lists(NAMES, min_size=1, max_size=3).map("/".join), max_size=8)
PARTS = st.sampled_from(["a", "b", "ab", "*", "**", "?", "[ab]", "a*", "*b", "[[]a]", ".*"])
PATTERNS = st.builds(
    lambda taken, lead, parts, end: ("!" if taken else "") + lead + "/".join(parts) + end,
    st.booleans(),
    st.sampled_from(["", "", "./", "../", "sub/../"]),
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=TREES, patterns=st.lists(PATTERNS, min_size=1, max_size=3), inside=st.booleans())
def test_what_was_there_is_covered_exactly_when_it_would_be_found(
    tmp_path_factory: pytest.TempPathFactory, files: set[str], patterns: list[str], inside: bool
) -> None:
    """A path that is gone must count as the step's exactly if it had been found while it was there."""
    with workspace_with(tmp_path_factory, files) as root:
        one = step("a", root / "sub" if inside else root, partial=tuple(patterns))
        found, _missing = expand(one.partial, one.cwd)
        for path in root.rglob("*"):
            name = path.relative_to(root).as_posix()
            assert covers(one, job(root, one), name, folder=path.is_dir()) is (str(path) in found), (name, patterns)


@contextmanager
def workspace_with(factory: pytest.TempPathFactory, files: set[str]) -> Iterator[Path]:
    root = factory.mktemp("around") / "workspace"
    (root / "sub").mkdir(parents=True)
    for top in (root, root / "sub"):
        for name in sorted(files):
            path = top / name
            if not any(above.is_file() for above in path.parents) and not path.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
    yield root


def test_each_file_and_each_folder_that_has_a_new_name_is_synced(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write(build__deep__x="1")
    (world.folder / "sub").mkdir()
    (world.folder / "sub/y").write_text("1")
    (world.root / "build/link").symlink_to("deep/x")
    synced: list[str] = []

    def note(target: int | Path) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{target}") if isinstance(target, int) else str(target))

    if sys.platform != "linux":
        pytest.skip("tells what a descriptor is by /proc")
    monkeypatch.setattr(os, "fsync", note)
    monkeypatch.setattr(module, "sync_folder", note)
    sync_progress(world.progress("build/"), world.root, world.folder)
    expected = [world.root / "build/deep/x", world.root, world.root / "build", world.root / "build/deep"]
    expected += [world.folder / "sub/y", world.folder, world.folder / "sub", world.folder.parent]
    assert {str(path) for path in expected} <= set(synced)
    assert synced.index(str(world.root / "build/deep/x")) < synced.index(str(world.root / "build/deep"))


@pytest.mark.skipif(sys.platform != "linux", reason="tells what a descriptor is by /proc")
@pytest.mark.parametrize("partial", ["build/deep/x", "build/deep/", "build/**/x"])
def test_the_folders_above_are_synced_too_where_only_what_lies_deep_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, partial: str
) -> None:
    world.write(build__deep__x="1")
    synced: set[str] = set()
    monkeypatch.setattr(os, "fsync", lambda number: synced.add(os.readlink(f"/proc/self/fd/{number}")))
    sync_progress(world.progress(partial), world.root, world.folder)
    assert {str(world.root / name) for name in ("", "build", "build/deep", "build/deep/x")} <= synced
    assert str(world.root.parent) not in synced


def test_a_file_that_vanishes_is_no_fault_of_a_sync(world: World) -> None:
    world.write(build__x="1", build__y="1")
    found = world.progress("build/")
    (world.root / "build/x").unlink()
    sync_progress(found, world.root, world.folder)


def test_nothing_is_read_where_only_the_names_matter(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.write(build__x="123")
    one = step("a", world.root, partial=("build/",))

    def refuse(*_: object) -> None:
        raise AssertionError("a file was read")

    monkeypatch.setattr("checkpoint_action.runner.hashing.file_digest", refuse)
    found = progress_of(one, job(world.root, one), world.folder, {}, NoDigests())
    assert (found.count, found.size) == (2, 3)


def test_a_folder_is_made_for_its_owner_only_and_lasts_until_it_is_forgotten(tmp_path: Path) -> None:
    folders = ProgressFolders(tmp_path / "state" / "progress")
    folder = Path(folders.make("a"))
    assert folder.stat().st_mode & 0o777 == 0o700
    (folder / "deep").mkdir()
    (folder / "deep/x").touch()
    assert Path(folders.make("a")) == folder
    assert (folder / "deep/x").exists()
    folders.forget("a")
    assert not folder.exists()
    folders.forget("a")
    folders.clear()


def test_a_folder_that_a_try_has_removed_is_there_for_the_next(tmp_path: Path) -> None:
    folders = ProgressFolders(tmp_path / "progress", ["a", "b"])
    Path(folders.make("a")).rmdir()
    assert Path(folders.make("a")).is_dir()


def test_only_folders_with_something_in_them_outlive_the_run(tmp_path: Path) -> None:
    folders = ProgressFolders(tmp_path / "progress", ["a", "b", "c"])
    Path(folders.make("a"))
    (Path(folders.make("b")) / "x").touch()
    folders.clear()
    assert [path.name for path in (tmp_path / "progress").iterdir()] == ["_b.progress"]


def test_a_link_in_the_place_of_the_folder_is_neither_followed_nor_kept(world: World, tmp_path: Path) -> None:
    """Case: a step puts a link to its home folder there; what that holds goes nowhere."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/secret").write_text("secret")
    folders = ProgressFolders(tmp_path / "progress", ["a"])
    Path(folders.make("a")).rmdir()
    folders.of("a").symlink_to(tmp_path / "home")
    world.folder = folders.of("a")
    assert world.progress().folder == Layer()
    assert list(Path(folders.make("a")).iterdir()) == []
    folders.of("a").rmdir()
    folders.of("a").symlink_to(tmp_path / "home")
    folders.forget("a")
    folders.clear()
    assert not (tmp_path / "progress").exists()
    assert (tmp_path / "home/secret").exists()


def test_a_folder_left_empty_becomes_the_next_steps(tmp_path: Path) -> None:
    folders = ProgressFolders(tmp_path / "progress", ["a", "b"])
    made = Path(folders.make("a")).stat().st_ino
    folders.forget("a")
    assert Path(folders.make("b")).stat().st_ino == made
    assert not folders.of("a").exists()


@pytest.mark.parametrize("how", ["in use", "written to", "open to all"])
def test_a_folder_that_is_not_as_it_was_becomes_nobody_elses(tmp_path: Path, how: str) -> None:
    folders = ProgressFolders(tmp_path / "progress", ["a", "b"])
    folder = Path(folders.make("a"))
    if how == "in use":
        folders.keep_apart("a")
    folders.forget("a")
    if how == "written to":
        (folder / "late").touch()
    if how == "open to all":
        folder.chmod(0o777)
    other = Path(folders.make("b"))
    assert list(other.iterdir()) == []
    assert other.stat().st_mode & 0o777 == 0o700
    assert not folder.exists()
