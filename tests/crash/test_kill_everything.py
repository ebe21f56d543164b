"""`kill -9` of the tool and all its steps at random instants, again and again, until the job is through."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from checkpoint_action.runner.journal import StatePaths, load

TOOL = Path(sys.executable).with_name("checkpoint-run")
STEPS = 20
PARTS = 4
KILLS = 25  # in each part
AT_ONCE = 3
KILLS_AT_ONCE = 30


def command(at_once: int = 1) -> list[str]:
    """A job of twenty steps, each of which writes half of its output, takes its time, and writes all of it.

    :param at_once: how many steps may run at once; if more than one, no step reads what another wrote.
    """
    words = [str(TOOL), "--job", "twenty", "--quiet", "--jobs", str(at_once)]
    for number in range(STEPS):
        before = f"cat out.{number - 1} && " if number and at_once == 1 else ""
        script = (
            f"echo started >> started.{number}; printf half > out.{number}; sleep 0.01; "
            f"({before}echo full {number}) > whole.{number} && mv whole.{number} out.{number}"
        )
        words += ["--step", f"s{number}:{script}", "--step-artifact", f"s{number}:out.{number}"]
    return words


def recorded(folder: Path) -> dict[str, str]:
    """Status of each step as the next run would read it."""
    return {step: record.status.value for step, record in load(StatePaths(folder, "twenty")).records.items()}


def starts(folder: Path) -> dict[str, int]:
    """How often each step was started."""
    return {
        f"s{number}": len(path.read_text().splitlines()) if (path := folder / f"started.{number}").exists() else 0
        for number in range(STEPS)
    }


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for the tool and each of its descendants."""
    doomed = []
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(process.pid)
        parent.suspend()  # or it would start another step between the look and the kill
        doomed = [parent, *parent.children(recursive=True)]
    for one in doomed:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait(30)
    psutil.wait_procs(doomed, timeout=30)


def results(folder: Path) -> dict[str, bytes]:
    """What the job leaves."""
    return {path.name: path.read_bytes() for path in folder.glob("out.*")}


def kill_again_and_again(top: Path, words: list[str], least: int) -> tuple[int, int]:
    """Kill a job at random instants until it is through, in new folders until there were enough kills.

    :param words: the job's command line.
    :param least: the number of kills.
    :returns: how many kills there were, and how many steps were started more than once.
    """
    undisturbed = top / "undisturbed"
    undisturbed.mkdir()
    begin = time.monotonic()
    subprocess.run(words, cwd=undisturbed, check=True)
    whole = time.monotonic() - begin
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")  # shown when the test fails
    chance = random.Random(seed)
    kills = rounds = repeated = 0
    while kills < least:
        rounds += 1
        folder = top / f"round-{rounds}"
        folder.mkdir()
        done_at: dict[str, int] = {}
        longest = whole * 0.3
        while True:
            before = starts(folder)
            process = subprocess.Popen(words, cwd=folder)
            with suppress(subprocess.TimeoutExpired):
                process.wait(chance.uniform(0, longest))
            finished = process.returncode == 0
            if not finished:
                assert process.returncode is None, f"seed {seed}: it failed by itself"
                kill_all(process)
                kills += 1
            count = starts(folder)
            # A machine that has become slower would else never get beyond our own start.
            longest = longest * 1.2 if count == before else whole * 0.3
            for step, times in done_at.items():
                assert count[step] == times, f"seed {seed}: {step} was recorded and ran again"
            for step, status in recorded(folder).items():
                if status == "done":
                    done_at.setdefault(step, count[step])
                    text = (folder / f"out.{step[1:]}").read_text()
                    assert text.endswith(f"full {step[1:]}\n"), f"seed {seed}: {step} is done with {text[-20:]!r}"
            if finished:
                break
        assert results(folder) == results(undisturbed), f"seed {seed}"
        repeated += sum(times - 1 for times in starts(folder).values())
    return kills, repeated


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_recorded_step_runs_again_and_no_half_step_counts(tmp_path: Path, part: int) -> None:
    kills, repeated = kill_again_and_again(tmp_path, command(), KILLS)
    # Each kill can repeat the one step that was running, or had just ended without being recorded.
    assert repeated <= kills


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_same_with_steps_that_run_at_once(tmp_path: Path) -> None:
    kills, repeated = kill_again_and_again(tmp_path, command(AT_ONCE), KILLS_AT_ONCE)
    assert repeated <= kills * AT_ONCE
