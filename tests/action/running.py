"""A use of the action: while it goes on, and what came of it."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from tests.action.manifest import handed_out

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tests.action.machine import Machine

__all__ = ["Ended", "Running"]

_LONGEST = 300.0  # seconds; only ever reached by a run that hangs
_LOOK = 0.02
_LADDER = (("SIGINT", 7.5), ("SIGTERM", 2.5))
"""What the runner sends to the entry process when a job is cancelled, and how long it then waits for its end."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """What came of one use of the action.

    :ivar code: exit code of the entry process; negative when a signal ended it.
    :ivar log: its output, as it was printed.
    :ivar outputs: of the composite action, JSON ones as values.
    :ivar env: what the workflow's later steps find in their environment.
    :ivar path: folders that they find in front of ``PATH``, as they were added.
    :ivar asked: the signals that it took to end a cancelled one: ``SIGKILL`` is the last, for the whole tree.
    """

    code: int
    log: str
    machine: Machine
    outputs: Mapping[str, Any]
    env: Mapping[str, str]
    path: Sequence[str]
    summary: str
    asked: Sequence[str] = ()

    @property
    def workspace(self) -> Path:
        """What is left of the workspace."""
        return self.machine.workspace

    @property
    def warnings(self) -> list[str]:
        return self.annotations("warning")

    @property
    def errors(self) -> list[str]:
        return self.annotations("error")

    def annotations(self, kind: str) -> list[str]:
        """The texts of one kind."""
        found = re.findall(rf"^::{kind}(?: [^:]*)?::(.*)$", self.log, re.MULTILINE)
        return [text.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%") for text in found]

    def why(self, step: str) -> str:
        """What the log says of a step that runs: the reason, and what differs."""
        match = re.search(rf"^::group::\[\d+/\d+\] {step}: runs \((.*)\)$", self.log, re.MULTILINE)
        return match[1] if match else ""


class Running:
    """A use of the action that goes on."""

    def __init__(self, process: subprocess.Popen[bytes], machine: Machine, number: int) -> None:
        self.process = process
        self._machine = machine
        self._number = number

    @property
    def _files(self) -> Path:
        return self._machine.command_files(self._number)

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return (self._files / "log").read_text("utf-8", "replace")

    def hear(self, fifo: Path) -> str:
        """Wait until somebody writes to a named pipe, and take what it is.

        :raises AssertionError: the run is over, and nobody has.
        """
        number = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        end = time.monotonic() + _LONGEST
        try:
            while time.monotonic() < end:
                over = self.process.poll() is not None
                ready, _, _ = select.select([number], [], [], _LOOK)
                if ready and (text := os.read(number, 4096)):
                    return text.decode()
                if over:
                    break
                time.sleep(_LOOK if ready else 0)  # nobody has opened it yet: that reads as its end
        finally:
            os.close(number)
        raise AssertionError(f"nobody wrote to {fifo.name}:\n{self.log}")

    def until(self, text: str) -> None:
        """Wait until the log has a text.

        :raises AssertionError: the run is over, and it has not.
        """
        self.wait_until(lambda: text in self.log, f"'{text}' is not in the log")

    def wait_until(self, there: Callable[[], bool], otherwise: str) -> None:
        """Wait until something is so.

        :raises AssertionError: the run is over, and it is not.
        """
        end = time.monotonic() + _LONGEST
        while not there():
            over = self.process.poll() is not None or time.monotonic() > end
            assert not over or there(), f"{otherwise}:\n{self.log}"
            time.sleep(_LOOK)

    def wait(self) -> Ended:
        """Wait for the end.

        :raises AssertionError: there is none.
        """
        try:
            self.process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            self.die()
            raise AssertionError(f"it did not end:\n{self.log}") from None
        return self._ended(())

    def cancel(self, ladder: Sequence[tuple[str, float]] = _LADDER) -> Ended:
        """Cancel the job as the runner does: signals to the entry process alone, and SIGKILL to the tree at last."""
        asked = []
        for name, seconds in ladder:
            asked.append(name)
            self.process.send_signal(getattr(signal, name))
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds)
                break
        else:
            asked.append("SIGKILL")
            self.die()
        return self._ended(asked)

    def die(self) -> Ended:
        """Let the machine lose its power: all that runs on it ends at once."""
        _end_tree(self.process.pid)
        self.process.wait()
        return self._ended(("SIGKILL",))

    def _ended(self, asked: Sequence[str]) -> Ended:
        outputs = handed_out(_values_in(self._files / "output"))
        return Ended(
            code=self.process.returncode,
            log=self.log,
            machine=self._machine,
            outputs={
                name: text if name in ("result", "state", "artifact") else json.loads(text or "null")
                for name, text in outputs.items()
            },
            env=_values_in(self._files / "env"),
            path=(self._files / "path").read_text().splitlines(),
            summary=(self._files / "summary").read_text(),
            asked=asked,
        )


def _end_tree(pid: int) -> None:
    """SIGKILL for a process and all below it; none of them sees another one end."""
    found: dict[int, psutil.Process] = {}
    while True:
        with suppress(psutil.NoSuchProcess):
            top = psutil.Process(pid)
            new = [one for one in (top, *top.children(recursive=True)) if one.pid not in found]
            if new:
                for process in new:
                    found[process.pid] = process
                    with suppress(psutil.Error):
                        process.suspend()
                continue
        break
    for process in found.values():
        with suppress(psutil.Error):
            process.kill()


def _values_in(file: Path) -> dict[str, str]:
    """What the runner reads from a file of names and values; ours are all between delimiters."""
    found = {}
    lines = iter(file.read_text("utf-8", "surrogateescape").split("\n"))
    for line in lines:
        if line:
            name, _, delimiter = line.partition("<<")
            value = []
            while (next_line := next(lines)) != delimiter:
                value.append(next_line)
            found[name] = "\n".join(value)
    return found
