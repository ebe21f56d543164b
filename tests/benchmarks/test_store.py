"""The comparison with the official client still runs, and what it restores is what was saved, for both."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks import store
from benchmarks.payloads import mixed, single, small
from benchmarks.store import Result, measure_pair, table
from benchmarks.store_clients import Floor, Limit, Official, Ours
from tests.peers.npm import node  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.store_clients import Client
    from tests.peers.npm import Node


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the official client's archives need tar and zstd")
@pytest.mark.skipif(not all(map(shutil.which, ("tar", "zstd", "curl"))), reason="a contestant is missing")
@pytest.mark.parametrize("which", ["ours", "theirs", "limit", "floor"])
def test_a_small_tree_goes_up_and_comes_down(tmp_path: Path, node: Node, which: str) -> None:  # noqa: F811
    payload = tmp_path / "payload"
    mixed(payload / "out" / "mixed", 1_000_000)
    small(payload / "out" / "small", 50)
    single(payload / "out" / "single", 300_000)
    folder = tmp_path / "round"
    folder.mkdir()
    client: Client
    if which == "theirs":
        shutil.copytree(node.folder, tmp_path / "npm", symlinks=True)
        client = Official(tmp_path / "npm")
        assert client.title().startswith("@actions/cache 6.")
    else:
        others: dict[str, Client] = {"ours": Ours(), "limit": Limit(), "floor": Floor()}
        client = others[which]
    saved, fetched, stored = measure_pair(client, payload, folder)
    assert 700_000 < stored < 1_600_000
    assert saved.seconds > 0 < fetched.seconds
    assert list(folder.iterdir()) == []


def test_the_table_has_the_medians_and_their_ratio() -> None:
    def rounds(*seconds: float) -> list[tuple[Result, Result, int]]:
        return [(Result(one, 3 * one, 10, {"pack": one / 2}), Result(2 * one, one, 30, {}), 5 << 20) for one in seconds]

    clients = {"ours": rounds(1, 9, 2), "theirs": rounds(4, 4, 4), "limit": rounds(1, 1, 1)}
    head, rule, *lines = table({"a tree": clients}).splitlines()
    assert {line.count("|") for line in (head, rule, *lines)} == {6}
    assert lines == [
        "| a tree | beside theirs | | | |",
        "| | save | 2.0 s | 4.0 s | 0.50 |",
        "| | – pack | 1.0 s | | |",  # noqa: RUF001 - a dash
        "| | restore | 4.0 s | 8.0 s | 0.50 |",
        "| | **both** | 6.0 s | 12.0 s | **0.50** |",
        "| | processor time, save | 6.0 s | 12.0 s | 0.50 |",
        "| | processor time, restore | 2.0 s | 4.0 s | 0.50 |",
        "| | peak memory, save | 10 MiB | 10 MiB | 1.00 |",
        "| | peak memory, restore | 30 MiB | 30 MiB | 1.00 |",
        "| | stored | 5 MiB | 5 MiB | 1.00 |",
        "| | beside limit | | | |",
        "| | save | 2.0 s | 1.0 s | 2.00 |",
        "| | processor time, save | 6.0 s | 3.0 s | 2.00 |",
        "| | restore | 4.0 s | 2.0 s | 2.00 |",
        "| | processor time, restore | 2.0 s | 1.0 s | 2.00 |",
        "| | **both** | 6.0 s | 3.0 s | **2.00** |",
    ]


def test_the_trees_are_the_same_each_time(tmp_path: Path) -> None:
    for top in (tmp_path / "one", tmp_path / "other"):
        mixed(top, 100_000)
        small(top / "small", 5)
        single(top / "single", 50_000)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert sum((tmp_path / "one" / name).stat().st_size for name in files) > 150_000
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_small_files_may_take_what_python_cannot_go_below() -> None:
    assert store._most_of_small(0.4) == 0.7
    assert store._most_of_small(0.6) == pytest.approx(0.75)
    assert store._most_of_small(0.9) == 1.0
