"""Commands under strace and under valgrind: their system calls, and how many instructions they take."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console import environment

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = [
    "NEW_PROCESS",
    "NEW_THREAD",
    "Call",
    "Trace",
    "counted_instructions",
    "counts",
    "needs_strace",
    "needs_valgrind",
    "per_item",
    "rose",
    "traced",
]

NEW_PROCESS = "new process"
NEW_THREAD = "new thread"
_CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+|\?)", re.DOTALL)
_ENVIRONMENT = {
    "PYTHONHASHSEED": "0",
    "PATH": "/usr/bin:/bin",  # each folder more is a further look for each program
}
_LIMIT = 300.0  # seconds; only ever reached by a run that hangs


def _strace_fault() -> str:
    """Why nothing can be traced here; empty where it can."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        return "strace is not installed"
    done = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    return f"strace may not trace here: {done.stderr.strip()}" if done.returncode else ""


needs_strace = pytest.mark.skipif(bool(_strace_fault()), reason=_strace_fault() or "it can be traced")
needs_valgrind = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("valgrind") is None, reason="valgrind is not installed"
)


@dataclass(frozen=True, slots=True)
class Call:
    """One system call.

    :param words: its arguments, as strace writes them; descriptors with their paths.
    :param result: what it gave; 0 where it gave an address or did not come back.
    """

    name: str
    words: str
    result: int


class Trace:
    """The system calls of a command and its threads, with those of the processes it starts up to their ``execve``:
    what a started program does itself is none of ours. A process that goes on without one is left out, too: what the
    guardian does depends on when it is waited for.

    :ivar calls: all of them.
    """

    def __init__(self, files: Sequence[Path], program: str) -> None:
        of = {int(file.suffix[1:]): list(_calls(file)) for file in files}
        # A process that another one started has made calls before its execve. Numbers tell nothing: they begin anew.
        [first] = [number for number, calls in of.items() if calls[0].words.startswith(f'"{program}", ')]
        self.calls: list[Call] = of.pop(first)
        threads = {call.result for calls in [self.calls, *of.values()] for call in calls if _is_thread(call)}
        for number, calls in of.items():
            end = next((place for place, call in enumerate(calls, 1) if call.name == "execve" and not call.result), 0)
            self.calls += calls if number in threads else calls[:end]


def _is_thread(call: Call) -> bool:
    return call.name in ("clone", "clone3") and "CLONE_THREAD" in call.words


def counts(calls: Iterable[Call]) -> Counter[str]:
    """How often each was made; whatever starts a process or a thread is one name each, and what asks for the state of
    a file, as libraries differ there."""
    return Counter(map(_common_name, calls))


def _common_name(call: Call) -> str:
    if call.name in ("fork", "vfork", "clone", "clone3"):
        return NEW_THREAD if _is_thread(call) else NEW_PROCESS
    if call.name in ("stat", "lstat", "fstat", "newfstatat", "statx"):
        return "stat"
    return {"fdatasync": "fsync", "open": "openat", "unlinkat": "unlink"}.get(call.name, call.name)


def _calls(file: Path) -> Iterator[Call]:
    for line in file.read_text("utf-8", "replace").splitlines():
        if found := _CALL.match(line):
            number = found[3]
            yield Call(found[1], found[2], int(number) if number.lstrip("-").isdigit() else 0)


def traced(argv: Sequence[str | Path], folder: Path, *, only: str = "") -> Trace:
    """The system calls of a command that ends well.

    :param only: names of the calls that are of interest, with commas; all where it is empty.
    """
    with tempfile.TemporaryDirectory() as top:
        words = ["strace", "-ff", "-qq", "-y", "-s", "256", "-o", f"{top}/calls"]
        if only:
            words += ["-e", f"trace={only}"]
        done = subprocess.run(
            [*words, *argv],
            cwd=folder,
            env=environment(_ENVIRONMENT),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return Trace(list(Path(top).iterdir()), str(argv[0]))


def counted_instructions(argv: Sequence[str | Path], folder: Path) -> int:
    """How many instructions a command takes, without those of the processes that it starts."""
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-fd=2"]
    done = subprocess.run(
        [*words, *argv],
        cwd=folder,
        env=environment(_ENVIRONMENT),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
    assert found is not None, done.stderr
    return int(found[1])


def per_item(few: Counter[str], many: Counter[str], more: int) -> dict[str, float]:
    """What each of ``more`` further items costs, by the name of the call: what all have in common is in both."""
    return {name: (many[name] - few[name]) / more for name in sorted({*few, *many})}


def rose(costs: Mapping[str, float], limits: Mapping[str, float]) -> list[str]:
    """What is above its limit, in words; empty where nothing is."""
    return [
        f"{name}: {costs.get(name, 0):g}, which is more than {limit:g}"
        for name, limit in limits.items()
        if costs.get(name, 0) > limit
    ]
