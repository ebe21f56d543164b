"""The times of the files a job starts from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.runner.sources import Source, restore_times, sources_from_json, sources_of, sources_to_json

if TYPE_CHECKING:
    from pathlib import Path

OLD = 981_173_106_123_456_789


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    root = tmp_path / "workspace"
    root.mkdir()
    for name in ("same", "edited", "gone"):
        (root / name).write_text(f"{name}\n")
        os.utime(root / name, ns=(OLD, OLD))
    return Workspace.at(root, Excludes(()))


def seen(workspace: Workspace) -> dict[str, Source]:
    return sources_from_json(sources_to_json(sources_of(workspace.scan(ContentDigests()))))


def test_only_files_with_the_same_content_get_their_times_back(workspace: Workspace) -> None:
    sources = seen(workspace)
    for name in ("same", "edited"):
        (workspace.root / name).write_text("edited?" if name == "edited" else "same\n")
    (workspace.root / "gone").unlink()
    now = (workspace.root / "edited").stat().st_mtime_ns
    assert restore_times(workspace, sources) == 1
    assert (workspace.root / "same").stat().st_mtime_ns == OLD
    assert (workspace.root / "edited").stat().st_mtime_ns == now


def test_a_file_of_the_same_size_and_other_content_keeps_its_time(workspace: Workspace) -> None:
    sources = seen(workspace)
    (workspace.root / "same").write_text("emas\n")
    assert restore_times(workspace, sources) == 0


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "./same", "", "link/outside"])
def test_nothing_outside_the_workspace_is_touched(workspace: Workspace, name: str) -> None:
    outside = workspace.root.parent / "outside"
    outside.write_text("same\n")
    (workspace.root / "link").symlink_to(workspace.root.parent)
    before = outside.stat().st_mtime_ns
    source = seen(workspace)["same"]
    restore_times(workspace, {name: source, str(outside): source})
    assert outside.stat().st_mtime_ns == before


def test_a_link_is_not_followed(workspace: Workspace) -> None:
    sources = seen(workspace)
    outside = workspace.root.parent / "outside"
    outside.write_text("same\n")
    before = outside.stat().st_mtime_ns
    (workspace.root / "same").unlink()
    (workspace.root / "same").symlink_to(outside)
    restore_times(workspace, sources)
    assert outside.stat().st_mtime_ns == before


@pytest.mark.parametrize("rows", [None, {}, [1], [["a"]], [["a", 1, 2, 3]], [["a", "1", 2, "x"]], [[1, 1, 2, "x"]]])
def test_anything_else_is_a_value_error(rows: object) -> None:
    with pytest.raises(ValueError, match="sources"):
        sources_from_json(rows)


def test_a_time_that_no_file_system_has_is_passed_over(workspace: Workspace) -> None:
    source = seen(workspace)["same"]._replace(mtime_ns=10**40)
    assert restore_times(workspace, {"same": source, "gone\0": source}) == 0


def test_the_files_are_in_the_order_of_their_paths_whatever_order_they_were_found_in(workspace: Workspace) -> None:
    found = workspace.scan(ContentDigests())
    turned = dict(sorted(found.items(), reverse=True))
    assert list(sources_of(turned)) == list(sources_of(found)) == ["edited", "gone", "same"]
