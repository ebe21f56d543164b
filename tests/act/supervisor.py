"""Runs one command and ends every process that comes of it, also those that left its session. Linux only.

``python supervisor.py LEFTOVERS COMMAND…``: what still ran when the command ended is named in the file LEFTOVERS.
SIGINT goes on to the command. SIGTERM is the machine's death: SIGKILL for all, at once.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def main(leftovers: str, *command: str) -> int:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    child = subprocess.Popen(command, start_new_session=True, preexec_fn=unblock)  # noqa: PLW1509  # no threads

    def die(*_: object) -> None:
        end_all()
        os._exit(137)

    def interrupt(*_: object) -> None:
        child.send_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, die)
    signal.signal(signal.SIGINT, interrupt)
    unblock()
    code = child.wait()
    Path(leftovers).write_text(json.dumps(end_all()))
    return code if code >= 0 else 128 - code


def unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGINT})


def end_all() -> list[str]:
    """Kill all descendants until there are none, and say which there were."""
    found: dict[int, str] = {}
    while children := psutil.Process().children(recursive=True):
        for process in children:
            with suppress(psutil.Error):
                if process.status() != psutil.STATUS_ZOMBIE:
                    found[process.pid] = " ".join(process.cmdline())
                process.kill()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    return list(found.values())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
