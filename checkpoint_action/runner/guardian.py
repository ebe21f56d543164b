"""A small process that ends the running steps when we die without being able to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.runner import descendants
from checkpoint_action.runner.shells import forget_scripts

if TYPE_CHECKING:
    from checkpoint_action.runner.watch_board import WatchBoard

__all__ = ["Guardian", "guard"]

_ROUNDS = 100
_MOST_REPLACEMENTS = 3
_PAUSE = 0.05  # seconds between rounds; what was being forked in one is found in the next

# Nothing in its command line says whose it is: who kills all processes of a name kills us and not our guardian.
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.stdin.buffer.readline());"
    "from importlib import import_module; import_module(json.loads(sys.stdin.buffer.readline())).guard()"
)


class Guardian:
    """Waits at the other end of a pipe until it closes, which it does when our process is gone, however it went.

    It sleeps all that time: which steps run stands on a board that it reads only then. Not on Windows, where a job
    object does the same.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._board: WatchBoard | None = None
        self._waiting: threading.Thread | None = None
        self._stopping = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start watching; where no process can be started, steps go unwatched."""
        if sys.platform == "win32":
            return
        from checkpoint_action.runner.watch_board import WatchBoard  # noqa: PLC0415  # not on Windows

        try:
            self._board = WatchBoard()
        except OSError:
            return
        self._process = self._launch(self._board)
        if self._process is not None:
            self._waiting = threading.Thread(target=self._replace_killed, name="guardian", daemon=True)
            try:
                self._waiting.start()
            except RuntimeError:  # there is no thread to be had: a killed one is not replaced
                self._waiting = None

    def _launch(self, board: WatchBoard) -> subprocess.Popen[bytes] | None:
        python = getattr(sys, "_base_executable", sys.executable)
        try:
            process = subprocess.Popen(
                [python, "-I", "-S", "-c", _BOOT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                bufsize=0,
                start_new_session=True,
                pass_fds=(board.number,),
            )
        except (OSError, ValueError):
            return None
        descendants.own(process.pid)
        paths = json.dumps([os.path.abspath(path) for path in sys.path])  # noqa: PTH100  # an empty one is here
        _tell(process, paths, json.dumps(__name__), tempfile.gettempdir(), str(board.number))
        return process

    def watch(self, token: str) -> None:
        """A step's shell is about to start.

        :param token: the mark that it and its descendants carry in their environment.
        """
        if self._board is not None:
            self._board.put(token)

    def unwatch(self, token: str) -> None:
        """A step is over; what it left running on purpose stays."""
        if self._board is not None:
            self._board.remove(token)

    def _replace_killed(self) -> None:
        """Wait for the guardian's end. Where somebody has killed it, another finds the running steps on the board."""
        for _ in range(1 + _MOST_REPLACEMENTS):
            process = self._process
            if process is None:
                return
            process.wait()
            descendants.disown(process.pid)
            with self._lock:
                if self._stopping or self._board is None:
                    return
                if process.stdin is not None:
                    process.stdin.close()
                self._process = self._launch(self._board)

    def stop(self) -> None:
        """End the watch; no step is killed."""
        with self._lock:
            self._stopping = True
            process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.kill()  # before its pipe closes; it may not have come further than to load Python
            process.wait()
            process.stdin.close()
            descendants.disown(process.pid)
        if self._waiting is not None:
            self._waiting.join()
        if self._board is not None:
            self._board.close()
            self._board = None


def _tell(process: subprocess.Popen[bytes], *lines: str) -> None:
    with suppress(OSError, ValueError):  # it is gone, which whoever waits for it sees
        if process.stdin is not None:
            process.stdin.write("".join(f"{line}\n" for line in lines).encode())


def guard() -> None:
    """The guardian's own life: hear which steps run until the pipe closes, then end what is left of them."""
    if sys.platform == "win32":  # where nobody starts one
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    temporary = sys.stdin.buffer.readline().decode().rstrip("\n")
    board = sys.stdin.buffer.readline()
    sys.stdin.buffer.read()
    if not board:  # the run was over, or dead, before it could tell
        return
    from checkpoint_action.runner.watch_board import tokens_on  # noqa: PLC0415  # not on Windows

    watched = tokens_on(int(board))
    for _ in range(_ROUNDS):
        if not descendants.kill_marked(watched):
            break
        time.sleep(_PAUSE)
    for token in watched:
        forget_scripts(temporary, token)
