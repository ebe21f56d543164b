"""curl and wget as steps, over a line that breaks again and again, with the tool killed besides."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING

from tests.console import Console, environment
from tests.torture.dropping import DroppingServer, content
from tests.torture.staged import end_all

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from tests.torture.outcome import Outcome

__all__ = ["COMMANDS", "downloaded"]

COMMANDS = {
    "curl": "curl -sS -f -C - -o file http://127.0.0.1:{port}/file",
    "wget": "wget -q -c --tries=1 -O file http://127.0.0.1:{port}/file",
}
"""How each of them goes on from what there is."""

_JOB = """\
job: download
steps:
- id: fetch
  partial: [file]
  outputs: [file]
  wait-online: 127.0.0.1:{port}
  retry: {{max: 100000, backoff: 0}}
  run: |
    echo try >> "$TRIES"
    {command}
- id: size
  run: wc -c < file > size
  outputs: [size]
"""
_MIB = 1 << 20
_LOST = 8 * _MIB
"""Bytes that a reset or a kill can throw away: what both ends' system holds of a connection."""
_LONGEST = 3600.0
_LOOK = 0.01


def downloaded(
    tool: str,
    size: int,
    every: int,
    folder: Path,
    chance: random.Random,
    outcome: Outcome,
    *,
    rate: float | None = None,
) -> None:
    """Download ``size`` bytes over a line that breaks after each ``every``; twice the tool and all it runs are killed.

    :param rate: bytes a second.
    """
    if shutil.which(tool) is None:
        outcome.tried[f"{tool} is not here"] += 1
        return
    work, tries = folder / "work", folder / "tries"
    work.mkdir()
    with DroppingServer(size, every, rate) as server:
        command = COMMANDS[tool].format(port=server.port)
        (work / "checkpoint.yml").write_text(_JOB.format(port=server.port, command=command))
        kills = _run(Console(work), folder, server, [size * chance.uniform(*span) for span in ((0.1, 0.4), (0.5, 0.9))])
        said = (folder / "said").read_text(errors="replace")[-500:]
        begun = len(tries.read_text().splitlines())
        what = f"{tool}, {size >> 20} MiB"
        if not _is_whole(work / "file", size):
            outcome.faults.append(f"{what}: the file is not the one that was served: {said}")
        if server.sent > size + (server.resets + kills) * _LOST:
            outcome.faults.append(f"{what}: {server.sent} bytes sent")
        if begun > server.drops + kills + 1:
            outcome.faults.append(f"{what}: {begun} tries for {server.drops} breaks and {kills} kills")
        outcome.tried[f"{what}: breaks of the line"] += server.drops
        outcome.tried[f"{what}: kill -9"] += kills
        outcome.tried[f"{what}: tries"] += begun
        outcome.tried[f"{what}: KiB sent beyond the file's size"] += max(0, server.sent - size) >> 10
    shutil.rmtree(work)
    tries.unlink()


def _run(console: Console, folder: Path, server: DroppingServer, kill_at: list[float]) -> int:
    """Run until it is done; kill when so many bytes have been sent. How often that was."""
    kills = 0
    deadline = time.monotonic() + _LONGEST
    while time.monotonic() < deadline:
        with (folder / "said").open("wb") as said:
            process = console.start(
                "--quiet", stdout=said, stderr=said, env=environment({"TRIES": str(folder / "tries")})
            )
        while process.poll() is None and (kills == len(kill_at) or server.sent < kill_at[kills]):
            time.sleep(_LOOK)
        if process.poll() is not None:
            return kills
        end_all(process.pid)
        process.wait()
        kills += 1
    return kills


def _is_whole(file: Path, size: int) -> bool:
    if not file.exists() or file.stat().st_size != size:
        return False
    with file.open("rb") as stream:
        return all(stream.read(_MIB) == content(at, min(size, at + _MIB)) for at in range(0, size, _MIB))
