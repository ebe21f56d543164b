"""Two machines and one object store, beside ``rclone copy`` of the same archives to and from the same server.

::

    python -m benchmarks.two_machines               10 steps that leave 1 GiB each
    python -m benchmarks.two_machines --size 256    MiB a step
    python -m benchmarks.two_machines --folder DIR  where all of it lies; it takes about five times the size

The server is ``rclone serve s3`` on loopback. Two things are measured. The transfer alone: each archive is saved to and
fetched from the store by our classes, and copied up and down by ``rclone copy``, one after the other in turns. And the
whole: one machine pushes its finished steps (all files are read, checked, compressed and sent), another with an empty
folder pulls them (all is fetched, checked and put in place). Half of each step's bytes cannot be compressed. Prints a
Markdown table.
"""

from __future__ import annotations

import argparse
import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.lines import Line, load_now, speed_at_least
from benchmarks.measure import titled
from checkpoint_action.runner.pulling import AHEAD
from checkpoint_action.store.base import Found
from checkpoint_action.store.resuming import ResumingStore
from checkpoint_action.store.urls import store_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["lines", "main"]

_MIB = 1 << 20
_STEPS = 10
_BUCKET = "bucket"
_JOB = "checkpoint.yml"
_LEAST = 0.8  # of the throughput of rclone, for the archives themselves
_PROGRAM = Path(sys.executable).with_name("checkpoint-run")
_RCLONE = Path(sys.executable).with_name("rclone")


class _Found(NamedTuple):
    """Medians in seconds, and what was sent.

    :param pushed: seconds of the whole `push`; ``pulled``: of the whole `pull`.
    :param mib: of all archives together.
    """

    up: float
    down: float
    their_up: float
    their_down: float
    pushed: float
    pulled: float
    archives: int
    mib: float


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    size, load = (1 if quick else 256), load_now()
    with tempfile.TemporaryDirectory(prefix="two-machines-", dir=folder) as name, _server(Path(name)) as env:
        found = _measure(Path(name), env, size, rounds or (1 if quick else 3))
    what, peer = f"{_STEPS} steps of {size} MiB", f"{titled('rclone', str(_RCLONE), 'version')} copy"
    goal = speed_at_least(_LEAST)
    up, down = found.their_up, found.their_down
    return [
        Line(work=f"archives of {what} to an object store", peer=peer, ours=found.up, theirs=up, goal=goal, load=load),
        Line(work="the same archives from it", peer=peer, ours=found.down, theirs=down, goal=goal, load=load),
        Line(work=f"push of {what}: verify, pack, send", peer=peer, ours=found.pushed, theirs=up, load=load),
        Line(work="pull of the same: fetch, check, put in place", peer=peer, ours=found.pulled, theirs=down, load=load),
    ]


def main() -> int:
    """Measure, and print the table; 1 when the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="MiB that each of the ten steps leaves (1024)")
    parser.add_argument("--rounds", type=int, default=3, help="how often transfers are repeated (3)")
    parser.add_argument("--folder", type=Path, help="a folder with room for all of it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="two-machines-", dir=options.folder) as name, _server(Path(name)) as env:
        found = _measure(Path(name), env, options.size, options.rounds)
    print(f"\n{found.archives} archives, {found.mib:,.0f} MiB, of {_STEPS * options.size:,} MiB of files", end="; ")
    print(f"medians of {options.rounds} rounds\n")
    print("| what | checkpoint-run | rclone copy | throughput, as a ratio |")
    print("|---|---|---|---|")
    _row("archives to the server", found.up, found.their_up)
    _row("archives from the server", found.down, found.their_down)
    _row("`push`: verify, pack, send", found.pushed, found.their_up)
    _row("`pull`: fetch, check, put in place", found.pulled, found.their_down)
    good = all(their >= _LEAST * our for our, their in ((found.up, found.their_up), (found.down, found.their_down)))
    print(f"\nGoal (at least {_LEAST} of the throughput of rclone, for archives): {'met' if good else 'missed'}")
    return 0 if good else 1


@contextmanager
def _set(env: Mapping[str, str]) -> Iterator[None]:
    """Have variables in our own environment, too, where the store looks for them."""
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _measure(folder: Path, env: Mapping[str, str], size: int, rounds: int) -> _Found:
    with _set(env):
        return _measured(folder, env, size, rounds)


def _measured(folder: Path, env: Mapping[str, str], size: int, rounds: int) -> _Found:
    url = f"s3://{_BUCKET}/project"
    first, second = folder / "first", folder / "second"
    _prepare(first, size)
    words = [str(_PROGRAM), "--quiet", "--store", "none"]
    _run(words, first)
    machine = [str(_PROGRAM), "--run-id", "x", "--store", url]
    pushed = _seconds(lambda: _run([machine[0], "push", *machine[1:]], first))
    second.mkdir()
    for name in (_JOB, "make.py"):
        shutil.copyfile(first / name, second / name)
    pulled = _seconds(lambda: _run([machine[0], "pull", *machine[1:]], second))
    same = subprocess.run(["diff", "-rq", "--exclude=.checkpoint-run-*", first, second], check=False)
    if same.returncode:
        raise SystemExit("the second machine has other files")
    for step in range(_STEPS):
        (second / f"out-{step}").unlink()
        (first / f"out-{step}").unlink()

    store = store_for(url)
    rows = store.entries()
    archives = folder / "archives"
    archives.mkdir()
    ours: dict[str, list[float]] = {"up": [], "down": []}
    theirs: dict[str, list[float]] = {"up": [], "down": []}
    whole = sum(row.size for row in rows) / _MIB

    fetched = folder / "fetched"

    def fetch() -> None:
        """As ``pull`` does it."""
        shutil.rmtree(fetched, ignore_errors=True)
        side_by_side = ResumingStore(store, fetched)
        for number, row in enumerate(rows):
            for upcoming in rows[number + 1 : number + 1 + AHEAD]:
                side_by_side.begin_fetch(Found(upcoming.key))
            side_by_side.fetch(Found(row.key), archives / f"{number}.tar.zst")

    def save(round_: int) -> None:
        for number, row in enumerate(rows):
            store.save(re.sub(r"[0-9a-f]{8}$", f"{round_:04x}{number:04x}", row.key), archives / f"{number}.tar.zst")

    fetch()  # so that the archives are there to be copied up
    target = folder / "copied"
    for round_ in range(rounds):
        ours["down"].append(_seconds(fetch))
        shutil.rmtree(target, ignore_errors=True)
        theirs["down"].append(_seconds(lambda: _copy(f"r:{_BUCKET}/project", str(target), env)))
        shutil.rmtree(target)
        ours["up"].append(_seconds(lambda round_=round_: save(round_)))  # type: ignore[misc]  # bound for this round
        theirs["up"].append(_seconds(lambda round_=round_: _copy(str(archives), f"r:{_BUCKET}/copy-{round_}", env)))  # type: ignore[misc]
        for entry in store.entries():
            if entry.key not in {row.key for row in rows}:
                store.delete(entry.key)
        _remove(f"r:{_BUCKET}/copy-{round_}", env)
    up, down, their_up, their_down = (median(times[way]) for times in (ours, theirs) for way in ("up", "down"))
    return _Found(up, down, their_up, their_down, pushed, pulled, len(rows), whole)


def _run(words: list[str], folder: Path) -> None:
    """Run a command whose words are of no interest."""
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _row(title: str, ours: float, theirs: float) -> None:
    print(f"| {title} | {ours:.1f} s | {theirs:.1f} s | {theirs / ours:.2f} |")


def _prepare(folder: Path, size: int) -> None:
    """A job whose steps each leave a file, half of it random."""
    folder.mkdir()
    lines = ["job: large", "steps:"]
    for step in range(_STEPS):
        command = f"python3 make.py out-{step} {size}"
        lines += [f"- {{id: s{step}, run: '{command}', inputs: [], outputs: [out-{step}], needs: []}}"]
    (folder / _JOB).write_text("\n".join(lines) + "\n")
    (folder / "make.py").write_text(
        "import os, sys\n"
        "with open(sys.argv[1], 'wb') as file:\n"
        "    for number in range(int(sys.argv[2])):\n"
        "        block = os.urandom(1 << 19)\n"
        "        file.write(block + (b'%08d the same words again and again\\n' % number) * 12483)\n"
    )


def _copy(source: str, target: str, env: Mapping[str, str]) -> None:
    subprocess.run([str(_RCLONE), "copy", source, target], env={**os.environ, **_remote(env)}, check=True)


def _remove(target: str, env: Mapping[str, str]) -> None:
    subprocess.run([str(_RCLONE), "purge", target], env={**os.environ, **_remote(env)}, check=True)


def _remote(env: Mapping[str, str]) -> dict[str, str]:
    return {
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_CONFIG_R_TYPE": "s3",
        "RCLONE_CONFIG_R_PROVIDER": "Rclone",
        "RCLONE_CONFIG_R_ENDPOINT": env["AWS_ENDPOINT_URL"],
        "RCLONE_CONFIG_R_ACCESS_KEY_ID": env["AWS_ACCESS_KEY_ID"],
        "RCLONE_CONFIG_R_SECRET_ACCESS_KEY": env["AWS_SECRET_ACCESS_KEY"],
    }


@contextmanager
def _server(folder: Path) -> Iterator[dict[str, str]]:
    """rclone's S3 server; what finds it."""
    (folder / "served" / _BUCKET).mkdir(parents=True)
    user, secret = secrets.token_hex(10), secrets.token_hex(20)
    command = [str(_RCLONE), "serve", "s3", "--auth-key", f"{user},{secret}", "--addr", "127.0.0.1:0"]
    command += ["--config", os.devnull, str(folder / "served")]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    reader = threading.Thread(target=process.stderr.read, daemon=True)  # a full pipe would stop it
    try:
        origin = ""
        for line in process.stderr:
            if match := re.search(rb"Starting s3 server on \[(http://[0-9.:]+)", line):
                origin = match[1].decode()
                break
        reader.start()
        yield {
            "AWS_ACCESS_KEY_ID": user,
            "AWS_SECRET_ACCESS_KEY": secret,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL": origin,
            "AWS_ALLOW_HTTP": "true",
        }
    finally:
        process.terminate()
        process.wait()
        if reader.ident is not None:
            reader.join()
        process.stderr.close()


def _seconds(call: Callable[[], object]) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


if __name__ == "__main__":
    sys.exit(main())
