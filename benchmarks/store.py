"""Saving and restoring through the Actions cache, beside the official client.

::

    python -m benchmarks.store                     1 GiB of mixed files, and 20,000 small ones; three rounds
    python -m benchmarks.store --large             one file of 4 GiB, too
    python -m benchmarks.store --folder /dev/shm   without the disk

The same trees go up to the same loopback server (:mod:`benchmarks.cache_server`) and come down again: ours the way the
runner does it (look at the workspace, hash, pack, upload; look up, download, check, unpack beside, put in place),
theirs as `actions/cache` does it (`saveCache` and `restoreCache` of `@actions/cache`: tar, zstd, upload; download,
zstd, tar). The two alternate. Each restored tree is compared with the first. Needs node, npm, tar and zstd. Prints a
Markdown table.
"""

from __future__ import annotations

import argparse
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.payloads import MIB, PAYLOADS
from tests.actions_service.tokens import make_token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["Official", "Ours", "Result", "main", "measure_pair", "table"]

_ROOT = Path(__file__).resolve().parents[1]
_PEERS = _ROOT / "tests" / "peers"
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


class Ours:
    """The runner's own classes, in a process of their own."""

    name = "checkpoint-run"

    def argv(self, verb: str, workspace: Path, folder: Path) -> list[str]:
        """The command line of a save or a restore."""
        folder.mkdir()
        return [sys.executable, "-m", "benchmarks.store_ours", verb, str(workspace), str(folder), "job"]


class Official:
    """`@actions/cache`, as it is pinned for the tests.

    :param folder: where it is installed, with its script beside it.
    """

    name = "@actions/cache"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not (folder / "node_modules" / "@actions" / "cache").exists():
            folder.mkdir(parents=True, exist_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_PEERS / name, folder)
            subprocess.run(["npm", "ci", "--ignore-scripts", "--loglevel=error"], cwd=folder, check=True)
        shutil.copy(_ROOT / "benchmarks" / "store_official.mjs", folder)

    def argv(self, verb: str, _workspace: Path, _folder: Path) -> list[str]:
        """The command line of a save or a restore."""
        return ["node", str(self._folder / "store_official.mjs"), verb, "job", "out"]


def measure_pair(client: Ours | Official, payload: Path, folder: Path) -> tuple[Result, Result, int]:
    """Save ``payload`` and restore it; the two results, and the bytes that the server held between them.

    :param payload: a workspace with a folder ``out``.
    :param folder: an empty one for everything else; emptied again.
    """
    restored = folder / "restored"
    restored.mkdir()
    (folder / "server").mkdir()
    with _server(folder / "server") as origin:
        saved = _measure(client.argv("save", payload, folder / "up"), _environment(origin, payload), payload)
        stored = sum(file.stat().st_size for file in (folder / "server").iterdir())
        fetched = _measure(client.argv("restore", restored, folder / "down"), _environment(origin, restored), restored)
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


def table(results: Mapping[str, Mapping[str, Sequence[tuple[Result, Result, int]]]]) -> str:
    """The medians as Markdown.

    :param results: payload to client to its rounds, ours first.
    """
    lines = [
        "| payload | | checkpoint-run | @actions/cache | ratio |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for title, clients in results.items():
        ours, theirs = [list(zip(*rounds, strict=True)) for rounds in clients.values()]
        for position, verb in enumerate(("save", "restore")):
            pair = [median(result.seconds for result in of[position]) for of in (ours, theirs)]
            first = f"| {title} |" if position == 0 else "| |"
            lines.append(f"{first} {verb} | {pair[0]:.1f} s | {pair[1]:.1f} s | {pair[0] / pair[1]:.2f} |")
            phases = [result.phases for result in ours[position]]
            parts = {name: median(phase[name] for phase in phases) for name in phases[0]}
            lines += [f"| | – {name} | {seconds:.1f} s | | |" for name, seconds in parts.items()]  # noqa: RUF001
        both = [[sum(result.seconds for result in row[:2]) for row in rounds] for rounds in clients.values()]
        pair = [median(of) for of in both]
        lines.append(f"| | **both** | {pair[0]:.1f} s | {pair[1]:.1f} s | **{pair[0] / pair[1]:.2f}** |")
        for position, verb in enumerate(("save", "restore")):
            pair = [median(result.processor for result in of[position]) for of in (ours, theirs)]
            lines.append(f"| | processor time, {verb} | {pair[0]:.1f} s | {pair[1]:.1f} s | {pair[0] / pair[1]:.2f} |")
        for position, verb in enumerate(("save", "restore")):
            pair = [max(result.memory for result in of[position]) for of in (ours, theirs)]
            words = f"{pair[0]:.0f} MiB | {pair[1]:.0f} MiB | {pair[0] / pair[1]:.2f}"
            lines.append(f"| | peak memory, {verb} | {words} |")
        pair = [median(of[2]) / MIB for of in (ours, theirs)]
        lines.append(f"| | stored | {pair[0]:.0f} MiB | {pair[1]:.0f} MiB | {pair[0] / pair[1]:.2f} |")
    return "\n".join(lines)


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
        default=Path(tempfile.gettempdir()) / "checkpoint-run-benchmark-npm",
        help="where the official client is installed, or will be (default: %(default)s)",
    )
    options = parser.parse_args(argv)
    chosen = [options.only] if options.only else [name for name in PAYLOADS if name != "single" or options.large]
    clients = (Ours(), Official(options.npm))
    results: dict[str, dict[str, list[tuple[Result, Result, int]]]] = {}
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="benchmark-store-") as name:
        for payload in chosen:
            title, make = PAYLOADS[payload]
            workspace = Path(name, "payload")
            make(workspace / "out")
            rounds: dict[str, list[tuple[Result, Result, int]]] = defaultdict(list)
            for number in range(options.rounds):
                for client in clients if number % 2 == 0 else reversed(clients):
                    folder = Path(name, "round")
                    folder.mkdir(exist_ok=True)
                    rounds[client.name].append(measure_pair(client, workspace, folder))
                    saved, fetched, _ = rounds[client.name][-1]
                    print(f"{title}, {client.name}: {saved.seconds:.1f} s, {fetched.seconds:.1f} s", file=sys.stderr)
            results[title] = {client.name: rounds[client.name] for client in clients}
            shutil.rmtree(workspace)
    print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
