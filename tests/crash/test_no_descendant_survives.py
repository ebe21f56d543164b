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

GRACE = 0.2
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

# Let the step run out of its time, and say whether some of it was up by then.
def time_out(number, seconds):
    token = f"round-{number}-{os.getpid()}"
    said = []
    command = Command(("sh", "-c", SCRIPT), Path("/"), {**os.environ, MARKER: token})
    outcome = run_command(command, Limits(timeout=seconds, grace=GRACE), said.append, StopRequest())
    assert outcome.end is End.TIMEOUT, outcome
    assert outcome.notes == (), outcome
    assert outcome.duration < seconds + GRACE + 2, outcome
    assert not left(token), (number, left(token))
    return b"".join(said).count(b"up") >= 1

assert adopt_orphans()
seconds = 0.4
for number in range(50):
    while not time_out(number, seconds):
        seconds *= 2  # so slow a machine had started nothing yet
        assert seconds < 60
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
        timeout=550,
    )
    assert done.returncode == 0, done.stderr
