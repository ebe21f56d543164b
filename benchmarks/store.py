"""Saving and restoring through the Actions cache, beside the official client and what no client can do without.

::

    python -m benchmarks.store                     1 GiB of mixed files, and 20,000 small ones; three rounds
    python -m benchmarks.store --large             one file of 4 GiB, too
    python -m benchmarks.store --folder /dev/shm   without the disk

The same trees go up to the same loopback server (:mod:`benchmarks.cache_server`) and come down again: ours the way the
runner does it (look at the workspace, hash, pack, upload; look up, download, check, unpack beside, put in place),
theirs as `actions/cache` does it (`saveCache` and `restoreCache` of `@actions/cache`: tar, zstd, upload; download,
zstd, tar). Beside them, as a limit, `tar`, `zstd` and `curl` alone (:mod:`benchmarks.store_limit`), and for the small
files the least that Python can do with so many (:mod:`benchmarks.store_floor`). All alternate. Each restored tree is
compared with the first. Needs node, npm, tar, zstd and curl. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.lines import Line, at_most, load_now
from benchmarks.payloads import MIB, PAYLOADS, mixed, single, small
from benchmarks.store_clients import Floor, Limit, Official, Ours
from tests.actions_service.tokens import make_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from benchmarks.store_clients import Client

__all__ = ["Result", "lines", "main", "measure_pair", "table"]

_ROOT = Path(__file__).resolve().parents[1]
_NPM = Path(tempfile.gettempdir()) / "checkpoint-run-benchmark-npm"
_MOST_OF_OFFICIAL = 0.7
_MOST_OF_LIMIT = 1.25
_SAMPLE = 0.05  # seconds between looks at the memory


@dataclass(frozen=True, slots=True)
class Result:
    """One save or one restore.

    :param seconds: by the wall clock, from the call to its end; starting the interpreter is not in it.
    :param processor: seconds of processor time of all its processes, starting the interpreter included.
    :param memory: peak of what all its processes have in memory together, in MiB.
    :param phases: seconds of its parts, where they are told.
    """

    seconds: float
    processor: float
    memory: float
    phases: Mapping[str, float]


def measure_pair(client: Client, payload: Path, folder: Path) -> tuple[Result, Result, int]:
    """Save ``payload`` and restore it; the two results, and the bytes that the server held between them.

    :param payload: a workspace with a folder ``out``.
    :param folder: an empty one for everything else; emptied again.
    """
    restored = folder / "restored"
    kept = folder / "kept"
    for made in (restored, kept):
        made.mkdir()
    with _server(kept) as origin:
        argv = client.argv("save", payload, folder / "up", kept)
        saved = _measure(argv, _environment(origin, payload), payload)
        stored = sum(file.stat().st_size for file in kept.iterdir())
        argv = client.argv("restore", restored, folder / "down", kept)
        fetched = _measure(argv, _environment(origin, restored), restored)
    _compare(payload / "out", restored / "out")
    for child in folder.iterdir():
        shutil.rmtree(child)
    return saved, fetched, stored


def _environment(origin: str, workspace: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GITHUB_", "ACTIONS_"))}
    return {
        **kept,
        "ACTIONS_RUNTIME_TOKEN": make_token(),
        "ACTIONS_RESULTS_URL": f"{origin}/",
        "ACTIONS_CACHE_SERVICE_V2": "True",
        "GITHUB_WORKSPACE": str(workspace),
        "RUNNER_TEMP": str(workspace.parent),
        "PYTHONPATH": str(_ROOT),
    }


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """Run the server and give its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.cache_server", str(folder)],
        cwd=_ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.communicate()  # its standard input ends, and so does it


class _Memory(threading.Thread):
    """Looks at the memory of a process and all it starts, until it ends."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._process = psutil.Process(pid)
        self.ended = threading.Event()
        self.mib = 0.0

    def run(self) -> None:
        while not self.ended.wait(_SAMPLE):
            total = 0
            try:
                for process in (self._process, *self._process.children(recursive=True)):
                    total += process.memory_info().rss
            except psutil.Error:
                continue
            self.mib = max(self.mib, total / MIB)


def _measure(argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> Result:
    os.sync()  # what others wrote is not to be paid for here
    worked = sum(os.times()[2:4])
    process = subprocess.Popen(argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    memory = _Memory(process.pid)
    memory.start()
    output, _ = process.communicate()
    memory.ended.set()
    memory.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(argv)} failed:\n{output}")
    told: dict[str, Any] = json.loads(output.strip().splitlines()[-1])
    return Result(told["seconds"], sum(os.times()[2:4]) - worked, memory.mib, told.get("phases", {}))


def _compare(one: Path, other: Path) -> None:
    names = [sorted(path.relative_to(top) for path in top.rglob("*")) for top in (one, other)]
    files = [str(name) for name in names[0] if (one / name).is_file()]
    _same, different, faults = filecmp.cmpfiles(one, other, files, shallow=False)
    if names[0] != names[1] or different or faults:
        raise SystemExit(f"what was restored is not what was saved: {(different + faults)[:3]}")


def _rounds(
    clients: Sequence[Client], title: str, make: Callable[[Path], None], rounds: int, top: Path
) -> dict[str, list[tuple[Result, Result, int]]]:
    """What all of them take for a payload, in turns, by their names."""
    workspace, folder = top / "payload", top / "round"
    make(workspace / "out")
    folder.mkdir(exist_ok=True)
    found: dict[str, list[tuple[Result, Result, int]]] = {client.name: [] for client in clients}
    for number in range(rounds):
        for client in clients if number % 2 == 0 else reversed(clients):
            saved, fetched, stored = measure_pair(client, workspace, folder)
            found[client.name].append((saved, fetched, stored))
            print(f"{title}, {client.name}: {saved.seconds:.1f} s, {fetched.seconds:.1f} s", file=sys.stderr)
    shutil.rmtree(workspace)
    return found


def _both(rounds: Sequence[tuple[Result, Result, int]]) -> float:
    """The median of saving and restoring together."""
    return median(saved.seconds + fetched.seconds for saved, fetched, _ in rounds)


def _most_of_small(floor: float) -> float:
    """How many times the official client many small files may take: what holds for all, or a quarter above the floor
    where that is more, and never longer than the official client itself.

    :param floor: how many times it the floor takes.
    """
    return min(1.0, max(_MOST_OF_OFFICIAL, _MOST_OF_LIMIT * floor))


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks: saving and restoring together."""
    official, limit, floor, ours = Official(_NPM), Limit(), Floor(), Ours()
    payloads = {name: make for name, (_, make) in PAYLOADS.items()}
    if quick:
        payloads = {
            "mixed": lambda at: mixed(at, 200_000),
            "small": lambda at: small(at, 20),
            "single": lambda at: single(at, 200_000),
        }
    found = []
    for name, make in payloads.items():
        load = load_now()
        peers = {official.name: official.title(), limit.name: limit.title()}
        goals = {official.name: at_most(_MOST_OF_OFFICIAL), limit.name: at_most(_MOST_OF_LIMIT)}
        clients: list[Client] = [ours, official, limit]
        if name == "small":
            clients.append(floor)
            peers[floor.name] = (
                f"the floor: Python {platform.python_version()} reads, hashes, creates, checks; 2 processes"
            )
            del goals[limit.name]  # it creates files in C
        title = PAYLOADS[name][0] + (", shrunk" if quick else "")
        with tempfile.TemporaryDirectory(dir=folder, prefix="benchmark-store-") as top:
            spent = _rounds(clients, title, make, rounds or (1 if quick else 3), Path(top))
        if name == "small":
            goals[official.name] = at_most(_most_of_small(_both(spent[floor.name]) / _both(spent[official.name])))
        found += [
            Line(
                work=f"save and restore {title}",
                peer=peer,
                ours=_both(spent[ours.name]),
                theirs=_both(spent[which]),
                goal=goals.get(which),
                load=load,
            )
            for which, peer in peers.items()
        ]
    return found


def table(results: Mapping[str, Mapping[str, Sequence[tuple[Result, Result, int]]]]) -> str:
    """The medians as Markdown.

    :param results: payload to client to its rounds, ours first, then the official one; further ones are a line each.
    """
    rows = [
        "| payload | | checkpoint-run | the other | ratio |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for title, clients in results.items():
        names = list(clients)
        ours, theirs = [list(zip(*clients[name], strict=True)) for name in names[:2]]
        rows.append(f"| {title} | beside {names[1]} | | | |")
        for position, verb in enumerate(("save", "restore")):
            pair = [median(result.seconds for result in of[position]) for of in (ours, theirs)]
            rows.append(f"| | {verb} | {pair[0]:.1f} s | {pair[1]:.1f} s | {pair[0] / pair[1]:.2f} |")
            phases = [result.phases for result in ours[position]]
            parts = {name: median(phase[name] for phase in phases) for name in phases[0]}
            rows += [f"| | – {name} | {seconds:.1f} s | | |" for name, seconds in parts.items()]  # noqa: RUF001
        pair = [_both(clients[name]) for name in names[:2]]
        rows.append(f"| | **both** | {pair[0]:.1f} s | {pair[1]:.1f} s | **{pair[0] / pair[1]:.2f}** |")
        for position, verb in enumerate(("save", "restore")):
            pair = [median(result.processor for result in of[position]) for of in (ours, theirs)]
            rows.append(f"| | processor time, {verb} | {pair[0]:.1f} s | {pair[1]:.1f} s | {pair[0] / pair[1]:.2f} |")
        for position, verb in enumerate(("save", "restore")):
            pair = [max(result.memory for result in of[position]) for of in (ours, theirs)]
            words = f"{pair[0]:.0f} MiB | {pair[1]:.0f} MiB | {pair[0] / pair[1]:.2f}"
            rows.append(f"| | peak memory, {verb} | {words} |")
        pair = [median(of[2]) / MIB for of in (ours, theirs)]
        rows.append(f"| | stored | {pair[0]:.0f} MiB | {pair[1]:.0f} MiB | {pair[0] / pair[1]:.2f} |")
        for name in names[2:]:
            rows += _beside(name, clients[names[0]], clients[name])
    return "\n".join(rows)


def _beside(
    name: str, ours: Sequence[tuple[Result, Result, int]], theirs: Sequence[tuple[Result, Result, int]]
) -> list[str]:
    rows = [f"| | beside {name} | | | |"]
    for position, verb in enumerate(("save", "restore")):
        pair = [median(row[position].seconds for row in of) for of in (ours, theirs)]  # type: ignore[union-attr]
        rows.append(f"| | {verb} | {pair[0]:.1f} s | {pair[1]:.1f} s | {pair[0] / pair[1]:.2f} |")
        worked = [median(row[position].processor for row in of) for of in (ours, theirs)]  # type: ignore[union-attr]
        rows.append(
            f"| | processor time, {verb} | {worked[0]:.1f} s | {worked[1]:.1f} s | {worked[0] / worked[1]:.2f} |"
        )
    pair = [_both(ours), _both(theirs)]
    return [*rows, f"| | **both** | {pair[0]:.1f} s | {pair[1]:.1f} s | **{pair[0] / pair[1]:.2f}** |"]


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="one file of 4 GiB, too")
    parser.add_argument("--only", choices=sorted(PAYLOADS), help="this payload alone")
    parser.add_argument("--folder", type=Path, help="where everything lies (default: the folder for temporary files)")
    parser.add_argument(
        "--npm",
        type=Path,
        default=_NPM,
        help="where the official client is installed, or will be (default: %(default)s)",
    )
    options = parser.parse_args(argv)
    chosen = [options.only] if options.only else [name for name in PAYLOADS if name != "single" or options.large]
    clients: list[Client] = [Ours(), Official(options.npm), Limit()]
    results = {}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="benchmark-store-") as name:
        for payload in chosen:
            title, make = PAYLOADS[payload]
            those = [*clients, Floor()] if payload == "small" else clients
            results[title] = _rounds(those, title, make, options.rounds, Path(name))
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
