"""All that a step leaves comes back on the next machine as it was, and where it cannot the step runs."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from tests.actions_service.faults import Fault

if TYPE_CHECKING:
    from tests.action.archives import Held
    from tests.action.machine import Workflow

MAKE = r"""#!/usr/bin/env python3
import os
os.makedirs(b"tree/.hidden/deep"); os.makedirs(b"tree/empty"); os.makedirs(b"tree/closed")
for name in (b"plain", b".dot", b"-leading", b"with space", b"a:b", b"new\nline", b"quote'\"", b"back\\slash",
             b"bytes-\xff\xfe", "Stra\u00dfe".encode(), "e\u0301".encode(), b"x" * 255, b".hidden/deep/f"):
    with open(b"tree/" + name, "wb") as file:
        file.write(name * 3)
os.chmod(b"tree/plain", 0o755); os.chmod(b"tree/.dot", 0o444); os.chmod(b"tree/a:b", 0o600)
os.symlink("plain", "tree/link"); os.symlink("nowhere", "tree/dangling"); os.symlink(".hidden", "tree/to-folder")
os.symlink("/etc/hostname", "tree/outside"); os.link("tree/plain", "tree/hard")
open("tree/empty-file", "w").close()
with open("tree/sparse", "wb") as file:
    file.truncate(3_000_000)
os.chmod("tree/closed", 0o500)
when = 1_500_000_000_123_456_789
for base, folders, files in os.walk(b"tree", topdown=False):
    for name in files + folders:
        os.utime(os.path.join(base, name), ns=(when, when), follow_symlinks=False)
        when += 1_000_000_007
os.utime(b"tree", ns=(when, when))
"""
STEPS = """\
- {id: tree, run: 'python3 make; rm src/main.c'}
- {id: check, run: 'test $GITHUB_RUN_ATTEMPT -gt 1', outputs: []}
"""


def listing(folder: Path) -> dict[bytes, tuple[object, ...]]:
    """Mode, kind, time, target and content of each path."""
    found: dict[bytes, tuple[object, ...]] = {}
    for base, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            info = os.lstat(path)
            target = os.readlink(path) if stat.S_ISLNK(info.st_mode) else b""
            content = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()) if stat.S_ISREG(info.st_mode) else None
            found[os.path.relpath(path, os.fsencode(folder))] = (
                *(stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode), info.st_mtime_ns, target),
                content and content.hexdigest(),
            )
    return found


def test_a_nasty_tree_comes_back_as_it_was(workflow: Workflow) -> None:
    workflow.sources = {"src/main.c": "int main;\n", "make": MAKE}
    first = workflow.run(STEPS)
    assert first.outputs["ran"] == ["tree", "check"]
    left = listing(first.machine.workspace / "tree")
    assert len(left) == 24
    second = workflow.run(STEPS)
    assert (second.code, second.outputs["restored"]) == (0, ["tree"])
    assert listing(second.machine.workspace / "tree") == left
    assert not (second.machine.workspace / "src/main.c").exists(), "what the step removed is gone again"


def test_an_archive_that_is_damaged_or_gone_or_fails_to_come_is_a_step_that_runs(
    workflow: Workflow, held: Held
) -> None:
    workflow.sources = {"make": MAKE, "src/main.c": ""}
    workflow.run(STEPS, store="cache")
    key = held.records()["tree"]["archive"]["key"]
    entry = next(one for one in held.entries if one.key == key)
    held.damage(entry)
    second = workflow.run(STEPS, store="cache")
    assert (second.code, second.outputs["restored"], second.outputs["ran"]) == (0, [], ["tree", "check"])
    assert "archive-missing" in second.log

    third = workflow.run(STEPS, store="cache")
    assert third.outputs["restored"] == ["tree"]
    for one in held.entries:
        held.evict(one)
    fourth = workflow.run(STEPS, store="cache")
    assert (fourth.code, fourth.outputs["restored"], fourth.outputs["ran"]) == (0, [], ["tree", "check"])


def test_a_store_that_hangs_when_it_is_to_save_costs_no_green_run(workflow: Workflow) -> None:
    for call in ("CreateCacheEntry", "CreateArtifact"):
        workflow.service.faults.next(call, Fault.status(502, "<html>bad gateway</html>"), 999)
    ended = workflow.run("- {id: a, run: echo a > a}")
    assert ended.code == 0
    assert ended.warnings
    assert ended.outputs["result"] == "success"
