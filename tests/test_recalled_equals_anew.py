"""Whatever happens to a job of which all is done: what is recalled of it is what deciding anew says and does."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.runner.recall import recalled
from tests.console import Console, tree
from tests.done_job import ANEW, EDITS, STAT, inside, project, said

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),  # each of many examples runs a job
    pytest.mark.skipif(sys.platform == "win32", reason="nothing is kept there"),
]

PLAN = ("plan",)
RUN = ("--no-logs",)
RUN_STAT = (*RUN, "--verify", "stat")


@pytest.fixture(scope="module")
def done_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("done") / "project"
    folder.mkdir()
    project(folder)
    return folder


def text_of(*words: str) -> str | None:
    """What is recalled; the job is not held afterwards."""
    reply = recalled(words, os.environ, lambda _seconds: "TIME")
    if reply is None:
        return None
    if reply.lock is not None:
        os.close(reply.lock)
    return reply.text


def nothing_done(*words: str) -> str | None:
    """What a run that decides anew says, where it does nothing and changes nothing but who held the lock last."""
    before = content_of_all()
    done = Console(Path.cwd()).run(*words, "--no-pty")
    if done.returncode or done.stdout or content_of_all() != before:
        return None
    return re.sub(r" in \d[\w. ]*", " in TIME", done.stderr)


def content_of_all() -> dict[str, tuple[int, str]]:
    """Mode and digest of each path in the current folder."""
    found = tree(Path.cwd())
    return {path: (mode, digest) for path, (mode, _time, digest) in found.items() if not path.endswith(".lock")}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.sampled_from((RUN, RUN_STAT)),
    edits=st.lists(st.integers(0, len(EDITS) - 1), min_size=1, max_size=4),
    seed=st.integers(0, 1 << 20),
)
def test_whatever_is_edited_no_other_answer_is_given_than_deciding_gives(
    monkeypatch: pytest.MonkeyPatch, done_project: Path, first: tuple[str, ...], edits: list[int], seed: int
) -> None:
    draw = random.Random(seed)
    aside = done_project.with_name("aside")
    subprocess.run(["cp", "-a", done_project, aside], check=True)
    try:
        with monkeypatch.context() as patch, inside(done_project):
            for name in ("MARK", "OTHER", "HOME", "GIT_DIR"):
                patch.setenv(name, "")  # to be as it was in the end
                del os.environ[name]
            patch.setenv("PATH", os.environ["PATH"])
            (done_project / ".checkpoint-run-demo.plan").unlink()
            assert Console(done_project).run(*first).returncode == 0  # anew, as a copy has other inodes
            assert text_of(*PLAN) == said(*PLAN, "--quiet")
            assert text_of(*STAT) == (said(*ANEW) if first == RUN_STAT else None)
            assert text_of(*RUN) == nothing_done(*RUN)
            for edit in edits:
                with suppress(OSError, subprocess.CalledProcessError, shutil.Error):
                    EDITS[edit](draw)
                assert text_of(*STAT) in (None, said(*ANEW))
                assert text_of(*PLAN) in (None, said(*PLAN, "--quiet"))
                for words in (RUN, RUN_STAT):
                    told = text_of(*words)
                    assert told is None or told == nothing_done(*words)
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", done_project], check=True)
        shutil.rmtree(done_project)
        aside.rename(done_project)
