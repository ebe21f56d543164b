"""Fifty times: a time-out with descendants that left the session, ignore SIGTERM and hold the output."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

# In a process of its own, which becomes the parent of what the steps orphan.
ROUNDS = r"""
import os, sys
from contextlib import suppress
from pathlib import Path
import psutil
from checkpoint_action.runner.descendants import MARKER, adopt_orphans
from checkpoint_action.runner.process import Command, End, Limits, run_command
from checkpoint_action.runner.stop import StopRequest

TIMEOUT, GRACE = 0.4, 0.2
STUBBORN = "trap '' TERM INT HUP; echo up; while :; do sleep 987; done"
SCRIPT = f'''setsid sh -c "{STUBBORN}" &
(setsid sh -c "{STUBBORN}" &)
sh -c "{STUBBORN}" &
sleep 987'''

def left(token):
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARKER) == token and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.cmdline())
    return found

assert adopt_orphans()
for number in range(50):
    token = f"round-{number}-{os.getpid()}"
    said = []
    command = Command(("sh", "-c", SCRIPT), Path("/"), {**os.environ, MARKER: token})
    outcome = run_command(command, Limits(timeout=TIMEOUT, grace=GRACE), said.append, StopRequest())
    assert outcome.end is End.TIMEOUT, outcome
    assert outcome.notes == (), outcome
    assert outcome.duration < TIMEOUT + GRACE + 2, outcome
    assert b"".join(said).count(b"up") >= 1, said
    assert not left(token), (number, left(token))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a child subreaper")
def test_no_descendant_survives_a_time_out_in_fifty_rounds() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ROUNDS],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
