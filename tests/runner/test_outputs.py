"""What a step declares to leave: found, recorded, and looked at again."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Entry, Layer, Reason
from checkpoint_action.runner.hashing import ContentDigests, text_digest
from checkpoint_action.runner.outputs import MissingOutputError, collect, name_in, result_of, verify
from checkpoint_action.runner.patterns import expand
from tests.runner.jobs import as_nobody

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and odd names as POSIX has them")


def make(root: Path, *paths: str) -> None:
    """Files with their own path as content; what ends in a slash is a folder."""
    for path in paths:
        whole = root / path
        (whole if path.endswith("/") else whole.parent).mkdir(parents=True, exist_ok=True)
        if not path.endswith("/"):
            whole.write_bytes(os.fsencode(path))


def names(patterns: Sequence[str], cwd: Path) -> list[str]:
    return [os.path.relpath(path, cwd) for path in expand(patterns, cwd)[0]]


@pytest.mark.parametrize(
    ("patterns", "found", "missing"),
    [
        (["a.txt"], ["a.txt"], []),
        (["dist"], ["dist", "dist/deep", "dist/deep/b.o", "dist/x.py"], []),
        (["dist/"], ["dist", "dist/deep", "dist/deep/b.o", "dist/x.py"], []),
        (["empty/"], ["empty"], []),
        (["a.txt/"], [], ["a.txt/"]),
        (["*.txt"], ["a.txt"], []),
        (["d*/"], ["dist", "dist/deep", "dist/deep/b.o", "dist/x.py"], []),
        (["**/*.o"], ["dist/deep/b.o"], []),
        (["dist/*"], ["dist/deep", "dist/deep/b.o", "dist/x.py"], []),
        (["dist", "!dist/deep"], ["dist", "dist/x.py"], []),
        (["dist", "!**/*.o"], ["dist", "dist/deep", "dist/x.py"], []),
        (["!dist/x.py", "dist/x.py"], ["dist/x.py"], []),
        (["none", "a.txt", "*.none"], ["a.txt"], ["none", "*.none"]),
        (["./a.txt", "a.txt", "dist/../a.txt"], ["a.txt"], []),
        (["./dist/*.py"], ["dist/x.py"], []),
        (["dangling"], ["dangling"], ["dangling"]),
        (["dangl*"], ["dangling"], []),
        (["to-dist"], ["dist", "dist/deep", "dist/deep/b.o", "dist/x.py", "to-dist"], []),
        (["to-dist/"], ["dist", "dist/deep", "dist/deep/b.o", "dist/x.py", "to-dist"], []),
        (["to-*"], ["dist", "dist/deep", "dist/deep/b.o", "dist/x.py", "to-dist"], []),
        (["to-dist", "!dist/deep"], ["dist", "dist/x.py", "to-dist"], []),
        (["to-dist", "!to-dist"], [], []),
        (["to-dist", "dist/x.py", "!to-dist"], ["dist/x.py"], []),
        (["empty/**"], [], ["empty/**"]),
    ],
)
def test_patterns_name_files_folders_and_what_folders_hold(
    tmp_path: Path, patterns: list[str], found: list[str], missing: list[str]
) -> None:
    make(tmp_path, "a.txt", "dist/x.py", "dist/deep/b.o", "empty/", "src/y.py")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "to-dist").symlink_to("dist")
    assert names(patterns, tmp_path) == found
    assert expand(patterns, tmp_path)[1] == missing


def test_links_in_a_declared_folder_are_just_links(tmp_path: Path) -> None:
    make(tmp_path, "dist/f", "other/g")
    (tmp_path / "dist/to-other").symlink_to("../other")
    (tmp_path / "dist/dangling").symlink_to("nowhere")
    inside = ["dist/dangling", "dist/f", "dist/to-other"]
    assert names(["dist"], tmp_path) == ["dist", *inside]
    assert names(["dist/**"], tmp_path) == names(["dist/**/*"], tmp_path) == inside
    assert expand(["dist/**"], tmp_path, through=True)[0] == [
        str(tmp_path / name) for name in [*inside, "other", "other/g"]
    ]


def test_every_link_on_the_way_is_found(tmp_path: Path) -> None:
    make(tmp_path, "releases/1/f")
    (tmp_path / "current").symlink_to("releases/1")
    (tmp_path / "latest").symlink_to("./current/f")
    (tmp_path / "out").symlink_to(tmp_path / "latest")
    assert names(["out"], tmp_path) == ["current", "latest", "out", "releases/1/f"]


def test_links_in_circles_end(tmp_path: Path) -> None:
    make(tmp_path, "d/f")
    (tmp_path / "d/up").symlink_to("..")
    (tmp_path / "d/here").symlink_to(".")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    inside = ["a", "b", "d", "d/f", "d/here", "d/up"]
    assert expand(["**"], tmp_path, through=True)[0] == [str(tmp_path), *(str(tmp_path / name) for name in inside)]
    assert expand(["a"], tmp_path)[1] == ["a"]


def test_our_own_files_are_never_found(tmp_path: Path) -> None:
    ours = ".checkpoint-run-demo"
    make(tmp_path, f"{ours}.json", f"d/{ours}.logs/a.log", "d/f")
    (tmp_path / "l").symlink_to(f"d/{ours}.logs")
    assert names(["**", f"{ours}*", f"d/{ours}.logs/*", "d", "l"], tmp_path) == ["d", "d/f", "l"]
    assert expand([f"{ours}.json", f"d/{ours}.logs/a.log"], tmp_path) == (
        [],
        [f"{ours}.json", f"d/{ours}.logs/a.log"],
    )


def test_a_workspace_in_a_folder_named_as_ours_is_like_any(tmp_path: Path) -> None:
    make(tmp_path, ".checkpoint-run-x/d/f")
    assert names(["d", "*/f"], tmp_path / ".checkpoint-run-x") == ["d", "d/f"]


def test_folders_of_odd_names_are_taken_as_they_are(tmp_path: Path) -> None:
    odd = os.fsdecode(b"d\xff\n [x]")
    make(tmp_path, f"{odd}/f")
    assert names(["d*"], tmp_path) == [odd, f"{odd}/f"]


def test_absolute_patterns_and_those_above_the_folder_work(tmp_path: Path) -> None:
    make(tmp_path, "work/", "out/a.o", "out/b.txt")
    cwd = tmp_path / "work"
    assert names([f"{tmp_path}/out/*.o"], cwd) == ["../out/a.o"]
    assert names(["../out/*.txt"], cwd) == ["../out/b.txt"]


def test_names_are_relative_to_the_workspace_where_they_lie_in_it(tmp_path: Path) -> None:
    assert name_in(tmp_path, f"{tmp_path}/a/./b") == "a/b"
    assert name_in(tmp_path, f"{tmp_path}-other/a") == f"{tmp_path}-other/a"


def test_outputs_are_recorded_with_type_mode_time_and_content(tmp_path: Path) -> None:
    make(tmp_path, "sub/out/f", "sub/out/empty/")
    (tmp_path / "sub/out/f").chmod(0o755)
    (tmp_path / "sub/out/l").symlink_to("nowhere")
    os.utime(tmp_path / "sub/out/f", ns=(1, 1_700_000_000_000_000_001))
    layer = collect(["out"], tmp_path / "sub", tmp_path, ContentDigests())
    assert [entry.path for entry in layer.entries] == ["sub/out", "sub/out/empty", "sub/out/f", "sub/out/l"]
    assert layer.entries[2] == Entry(
        "sub/out/f", "file", 0o755, 1_700_000_000_000_000_001, len("sub/out/f"), text_digest("sub/out/f")
    )
    assert layer.entries[3].target == "nowhere"
    assert layer.deleted == ()
    assert layer.before == {}


def test_a_declared_output_that_is_not_there_is_named(tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    with pytest.raises(MissingOutputError, match=r"without its declared output b\.txt, \*\.o$"):
        collect(["a.txt", "b.txt", "*.o"], tmp_path, tmp_path, ContentDigests())


def test_a_declared_link_to_nothing_is_named_as_such(tmp_path: Path) -> None:
    make(tmp_path, "a.txt")
    (tmp_path / "l[1]").symlink_to("nowhere")
    with pytest.raises(MissingOutputError, match=r"declared output l\[1\], which is a link to nothing$"):
        collect(["l[[]1]"], tmp_path, tmp_path, ContentDigests())
    with pytest.raises(MissingOutputError, match=r"declared output x; l\[1\], which is a link to nothing$"):
        collect(["x", "a.txt", "l[[]1]"], tmp_path, tmp_path, ContentDigests())


def test_what_a_declared_link_leads_to_is_recorded_by_its_own_name(tmp_path: Path) -> None:
    root = tmp_path / "work"
    make(tmp_path, "work/data/f", "outside")
    (root / "l").symlink_to("data")
    (root / "out").symlink_to("../outside")
    layer = collect(["l", "out"], root, root, ContentDigests())
    assert [(entry.path, entry.type) for entry in layer.entries] == [
        (f"{tmp_path}/outside", "file"),
        ("data", "dir"),
        ("data/f", "file"),
        ("l", "link"),
        ("out", "link"),
    ]
    (tmp_path / "outside").write_text("x")
    difference = look(root, layer)
    assert difference is not None
    assert difference[0] is Reason.OUTPUT_CHANGED


def test_a_workspace_that_is_named_through_a_link_is_still_the_workspace(tmp_path: Path) -> None:
    make(tmp_path, "real/data/f")
    (tmp_path / "work").symlink_to("real")
    (tmp_path / "real/l").symlink_to("data/f")
    layer = collect(["l"], tmp_path / "work", tmp_path / "work", ContentDigests())
    assert [entry.path for entry in layer.entries] == ["data/f", "l"]


def test_a_link_to_the_workspace_itself_records_no_entry_for_it(tmp_path: Path) -> None:
    (tmp_path / "l").symlink_to(".")
    layer = collect(["l"], tmp_path, tmp_path, ContentDigests())
    assert [entry.path for entry in layer.entries] == ["l"]


@pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
def test_what_is_no_file_folder_or_link_is_no_output(tmp_path: Path, kind: str) -> None:
    name = "/dev/null" if kind == "device" else "x"
    if kind == "pipe":
        os.mkfifo(tmp_path / "x")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(tmp_path / "x"))
    with pytest.raises(MissingOutputError, match=f"its declared output {name} is no file, folder or link$"):
        collect([name], tmp_path, tmp_path, ContentDigests())
    (tmp_path / "l").symlink_to(name)
    with pytest.raises(MissingOutputError, match=r"its declared output l leads to no file or folder$"):
        collect(["l"], tmp_path, tmp_path, ContentDigests())
    assert collect([name, "l", f"!{name}", "!l"], tmp_path, tmp_path, ContentDigests()).entries == ()


def left(root: Path) -> Layer:
    make(root, "d/f", "d/empty/")
    (root / "l").symlink_to("d")
    return collect(["d", "l"], root, root, ContentDigests())


def look(root: Path, layer: Layer) -> tuple[Reason, str] | None:
    wanted = {entry.path: entry for entry in layer.entries}
    return verify(list(wanted), wanted, root, ContentDigests())


def test_outputs_that_are_as_they_were_verify(tmp_path: Path) -> None:
    layer = left(tmp_path)
    os.utime(tmp_path / "d/f", ns=(1, 1))  # a time is no part of a result
    assert look(tmp_path, layer) is None


def test_an_output_that_is_gone_is_named(tmp_path: Path) -> None:
    layer = left(tmp_path)
    (tmp_path / "d/f").unlink()
    assert look(tmp_path, layer) == (Reason.OUTPUT_MISSING, "d/f")


def test_an_empty_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    layer = left(tmp_path)
    (tmp_path / "d/empty").rmdir()
    assert look(tmp_path, layer) == (Reason.OUTPUT_MISSING, "d/empty")


def test_one_more_byte_is_a_change(tmp_path: Path) -> None:
    layer = left(tmp_path)
    with (tmp_path / "d/f").open("a") as file:
        file.write("x")
    reason, detail = look(tmp_path, layer) or (None, "")
    assert reason is Reason.OUTPUT_CHANGED
    assert detail == f"d/f: sha256 {text_digest('d/f')[:12]} → sha256 {text_digest('d/fx')[:12]}"


def test_another_mode_type_or_link_target_is_a_change(tmp_path: Path) -> None:
    layer = left(tmp_path)
    (tmp_path / "d/f").chmod(0o600)
    assert look(tmp_path, layer) == (Reason.OUTPUT_CHANGED, "d/f: mode 0644 → 0600")
    (tmp_path / "d/f").chmod(0o644)
    (tmp_path / "l").unlink()
    (tmp_path / "l").symlink_to("elsewhere")
    assert look(tmp_path, layer) == (Reason.OUTPUT_CHANGED, "l: link:d → link:elsewhere")
    (tmp_path / "l").unlink()
    (tmp_path / "l").mkdir()
    assert look(tmp_path, layer) == (Reason.OUTPUT_CHANGED, "l: link:d → dir")


def test_set_id_and_sticky_bits_are_no_part_of_a_result(tmp_path: Path) -> None:
    layer = left(tmp_path)
    (tmp_path / "d/f").chmod(0o6644)
    (tmp_path / "d").chmod(0o1755)
    assert look(tmp_path, layer) is None
    assert result_of(collect(["d", "l"], tmp_path, tmp_path, ContentDigests())) == result_of(layer)


def test_what_should_be_gone_and_is_there_is_a_change(tmp_path: Path) -> None:
    make(tmp_path, "f")
    found = verify(["f"], {"f": None}, tmp_path, ContentDigests())
    assert found == (Reason.OUTPUT_CHANGED, "f: removed → there")
    assert verify(["g"], {"g": None}, tmp_path, ContentDigests()) is None


def test_an_output_that_cannot_be_read_is_not_trusted(public: Path) -> None:
    make(public, "d/f")
    with as_nobody(public):
        (public / "d/f").chmod(0)
        layer = collect(["d"], public, public, ContentDigests())
        assert look(public, layer) == (Reason.OUTPUT_CHANGED, "d/f: cannot be read")


def test_an_output_that_could_not_be_read_is_not_trusted_later(public: Path) -> None:
    make(public, "f")
    with as_nobody(public):
        (public / "f").chmod(0)
        layer = collect(["f"], public, public, ContentDigests())
        (public / "f").chmod(0o644)
        reason, text = look(public, layer) or (None, "")
    assert reason is Reason.OUTPUT_CHANGED
    assert text.startswith("f: could not be read → sha256 ")


def test_an_output_in_a_folder_that_is_closed_is_not_trusted(public: Path) -> None:
    make(public, "d/e/f")
    layer = collect(["d/e/f"], public, public, ContentDigests())
    with as_nobody(public):
        (public / "d").chmod(0)
        assert look(public, layer) == (Reason.OUTPUT_CHANGED, "d/e/f: Permission denied")


BASE = Entry("f", "file", 0o644, 7, 1, text_digest("a"))


@pytest.mark.parametrize(
    "other",
    [
        replace(BASE, path="g"),
        replace(BASE, mode=0o755),
        replace(BASE, sha256=text_digest("b")),
        Entry("f", "dir", 0o644, 7),
        Entry("f", "link", 0o644, 7, target="a"),
        Entry("f", "link", 0o644, 7, target="b"),
    ],
)
def test_a_result_is_path_type_mode_and_content(other: Entry) -> None:
    assert result_of(Layer((BASE,))) != result_of(Layer((other,)))


def test_a_result_is_no_time_and_nothing_that_was_before() -> None:
    same = Layer((replace(BASE, mtime_ns=8),), before={"f": "x"})
    assert result_of(Layer((BASE,))) == result_of(same)


def test_what_was_deleted_is_part_of_a_result() -> None:
    assert result_of(Layer((BASE,))) != result_of(Layer((BASE,), deleted=("g",)))
