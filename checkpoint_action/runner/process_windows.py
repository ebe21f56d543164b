"""A command's process tree on Windows."""

from __future__ import annotations

import importlib
import os
import queue
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.runner.job_object import JobObject

if TYPE_CHECKING:
    from collections.abc import Callable

    import psutil

    from checkpoint_action.runner.process import Command
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["WindowsTree"]

_CHUNK = 1 << 16
_SLICE = 0.25  # seconds; a Ctrl-C handler only runs between waits


class WindowsTree:
    """See :class:`~checkpoint_action.runner.process.ProcessTree`. The command leads a process group of its own.

    Anonymous pipes cannot be waited for here, so two threads turn output and end into messages.
    """

    def __init__(self, command: Command, write: Callable[[bytes], None], stop: StopRequest) -> None:
        self._psutil = importlib.import_module("psutil")  # the only way to a process's descendants here
        self._write = write
        self._stop = stop
        self._stops_seen = stop.count
        self._messages: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended = False
        flags = 0
        if sys.platform == "win32":
            flags = subprocess.CREATE_NEW_PROCESS_GROUP
        self._process = subprocess.Popen(
            list(command.argv),
            cwd=command.cwd,
            env=dict(command.env),
            stdin=None if command.interactive else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            creationflags=flags,
        )
        self._job: JobObject | None = None
        with suppress(OSError):  # without one, what psutil finds is ended
            self._job = JobObject()
            self._job.add(int(getattr(self._process, "_handle", 0)))
        self._known: dict[int, psutil.Process] = {}
        threading.Thread(target=self._read, name="read-output", daemon=True).start()
        threading.Thread(target=self._await_end, name="wait-for-shell", daemon=True).start()

    def _read(self) -> None:
        stream = self._process.stdout
        while stream is not None:
            try:
                data = os.read(stream.fileno(), _CHUNK)
            except (OSError, ValueError):
                data = b""
            self._messages.put(data)
            if not data:
                return

    def _await_end(self) -> None:
        self._process.wait()
        self._messages.put(None)

    @property
    def returncode(self) -> int | None:
        return self._process.poll()

    @property
    def output_ended(self) -> bool:
        return self._ended

    def wait(self, seconds: float | None) -> None:
        if self._stop.count > self._stops_seen:
            self._stops_seen = self._stop.count
            return
        try:
            message = self._messages.get(timeout=_SLICE if seconds is None else min(seconds, _SLICE))
        except queue.Empty:
            return
        if message:
            self._write(message)
        elif message == b"":
            self._ended = True

    def interrupt(self, signum: int) -> list[str]:
        self.survivors()
        if sys.platform == "win32":
            signum = signal.CTRL_BREAK_EVENT
        if self._process.poll() is None:
            try:
                self._process.send_signal(signum)
            except OSError as error:
                return [f"cannot send Ctrl-Break to process {self._process.pid}: {error}"]
        return []

    def kill(self) -> list[str]:
        notes = []
        self.survivors()
        if self._job is not None:
            self._job.terminate()
        doomed: list[psutil.Process | subprocess.Popen[bytes]] = [*self._known.values(), self._process]
        for process in doomed:
            try:
                process.kill()
            except (self._psutil.NoSuchProcess, ProcessLookupError):
                continue
            except (self._psutil.Error, OSError) as error:
                notes.append(f"cannot kill process {process.pid}: {error}")
        return notes

    def survivors(self) -> list[int]:
        try:
            for child in self._psutil.Process(self._process.pid).children(recursive=True):
                self._known[child.pid] = child
        except self._psutil.Error:
            pass  # the shell has ended: only what was seen before can still be found
        return [pid for pid, process in self._known.items() if process.is_running()]

    def group_is_gone(self) -> bool:
        return False

    def reap(self) -> None:
        """Nothing is ever left to us here."""

    def close(self) -> None:
        if self._job is not None:
            self._job.release()
        if self._ended and self._process.stdout is not None:
            self._process.stdout.close()
