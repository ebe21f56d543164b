"""A small process that ends the running steps when we die without being able to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress

from checkpoint_action.runner import descendants
from checkpoint_action.runner.shells import forget_scripts

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

    Not on Windows, where a job object does the same.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._watched: set[str] = set()
        self._replacements = 0

    def start(self) -> None:
        """Start watching; where no process can be started, steps go unwatched."""
        if sys.platform == "win32":
            return
        python = getattr(sys, "_base_executable", sys.executable)
        try:
            self._process = subprocess.Popen(
                [python, "-I", "-S", "-c", _BOOT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                bufsize=0,
                start_new_session=True,
            )
        except (OSError, ValueError):
            return
        descendants.own(self._process.pid)
        self._tell(json.dumps([os.path.abspath(path) for path in sys.path]))  # noqa: PTH100  # an empty one is here
        self._tell(json.dumps(__name__))
        self._tell(tempfile.gettempdir())

    def watch(self, token: str) -> None:
        """A step's shell is about to start.

        :param token: the mark that it and its descendants carry in their environment.
        """
        self._watched.add(token)
        self._tell(f"+{token}")

    def unwatch(self, token: str) -> None:
        """A step is over; what it left running on purpose stays."""
        self._watched.discard(token)
        self._tell(f"-{token}")

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.stdin is None:
            return
        try:
            self._process.stdin.write(f"{line}\n".encode())
        except (OSError, ValueError):
            self._replace()

    def _replace(self) -> None:
        """Somebody has killed the guardian: the running steps get another."""
        old, self._process = self._process, None
        if old is not None:
            with suppress(subprocess.TimeoutExpired):
                old.wait(_PAUSE)
            descendants.disown(old.pid)
        self._replacements += 1
        if self._replacements > _MOST_REPLACEMENTS:
            return
        self.start()
        for token in sorted(self._watched):
            self._tell(f"+{token}")

    def stop(self) -> None:
        """End the watch; nothing is killed."""
        if self._process is None or self._process.stdin is None:
            return
        self._tell("end")
        with suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        descendants.disown(self._process.pid)
        self._process = None


def guard() -> None:
    """The guardian's own life: hear which steps run until the pipe closes, then end what is left of them."""
    if sys.platform == "win32":  # where nobody starts one
        return
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    temporary = sys.stdin.buffer.readline().decode().rstrip("\n")
    watched: set[str] = set()
    for line in sys.stdin.buffer:
        word = line.decode().rstrip("\n")
        if word == "end":
            return
        if word.startswith("+"):
            watched.add(word[1:])
        else:
            watched.discard(word[1:])
    for _ in range(_ROUNDS):
        if not descendants.kill_marked(watched):
            break
        time.sleep(_PAUSE)
    for token in watched:
        forget_scripts(temporary, token)
