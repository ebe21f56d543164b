"""What archives from anywhere tell, believed in no point."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Action, Reason
from checkpoint_action.runner.stored_state import state_of
from checkpoint_action.store.codec import record_to_json
from tests.runner.jobs import record
from tests.runner.machines import KEYS, Machine, forge, writing

if TYPE_CHECKING:
    from tests.runner.memory_store import MemoryStore

pytestmark = [
    pytest.mark.usefixtures("no_pause"),
    pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them"),
]


@pytest.mark.parametrize(
    ("log", "here"),
    [
        (".checkpoint-run-j.logs/a.log", ".checkpoint-run-j.logs/a.log"),
        ("/home/runner/work/_temp/x.logs/a.log", "a.log"),
        ("/etc/passwd", "passwd"),
        ("../../.ssh/id_ed25519", "id_ed25519"),
        ("D:\\a\\_temp\\logs\\a.log", "a.log"),
        ("C:a.log", "" if os.name == "nt" else "C:a.log"),
        ("..", ""),
        ("/", ""),
        ("", ""),
    ],
)
def test_a_log_of_another_machine_is_no_other_file_here(one: Machine, log: str, here: str) -> None:
    """Reports and `logs` show what lies where a record says, and a record may come from anybody with the store."""
    record = replace(one.run(one.step("a"), writing("a", "a")), log=log)
    header = {"job": KEYS.job, "records": {"a": record_to_json(record)}}
    assert state_of(header, KEYS.job, KEYS.prefix).records["a"].log == here


@pytest.mark.parametrize(
    "header",
    [
        {"job": "another"},
        {"job": None},
        {"records": 7},
        {"records": {"a": {"step": "a"}}},
        {"records": {"a": None}},
        {"records": ["a"]},
        {"told": ["a"]},
        {"told": {"a": 1}},
    ],
)
def test_an_archive_that_is_not_ours_or_makes_no_sense_is_a_miss_with_one_line(
    other: Machine, store: MemoryStore, header: dict[str, object]
) -> None:
    forge(store, other, {}, header)
    assert other.checkpoints.learn() == {}
    assert len(other.warnings) == 1
    assert other.warnings[0].startswith("CPR505: memory: ")
    assert "\n" not in other.warnings[0]


@pytest.mark.parametrize("path", ["../out", "/etc/passwd", "a\0b", "a//b", ""])
def test_a_record_with_a_path_that_leads_out_is_a_miss_with_one_line(
    other: Machine, store: MemoryStore, path: str
) -> None:
    good = record(other.step("a"), other.root)
    row = record_to_json(good)
    row["layer"] = {"entries": [{"path": path, "type": "dir", "mode": "0755", "mtime_ns": 1}]}
    forge(store, other, {"a": row})
    assert other.resume(other.step("a")) == [(Action.RUN, Reason.NEVER_RAN)]
    assert len(other.warnings) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"duration": -1},
        {"duration": 1e300},
        {"started": 10**400},
        {"tries": -5},
        {"exit_code": 1 << 70},
        {"signal": 1 << 70},
        {"archive": {"key": "k\n::error::x", "layer": "l"}},
        {"layer": {"deleted": ["/etc/passwd"]}},
    ],
)
def test_a_forged_value_is_a_miss_with_one_line(other: Machine, store: MemoryStore, change: dict[str, object]) -> None:
    forge(store, other, {"a": record_to_json(record(other.step("a"), other.root)) | change})
    assert other.checkpoints.learn(["a"]) == {}
    assert len(other.warnings) == 1
    assert other.warnings[0].isprintable()
