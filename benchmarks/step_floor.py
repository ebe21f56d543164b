"""The least that running and recording steps takes in Python: `python step_floor.py COUNT`, in an empty folder.

Each step is a shell with an output, a log, and files that it may hand values on in; that it starts and how it ended is
on the disk, the one while its shell starts and the other before the next is told of. There is no job file, no decision,
no limit, no report and nobody who watches: whatever a tool does for its users comes on top.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
import zlib

_ROOM = 1 << 20  # bytes of the journal that are made ahead
_COMMAND = "true;"


def _line(step: str, status: str, **more: object) -> bytes:
    row = {"step": step, "status": status, "command": _COMMAND, "at": time.time(), **more}
    text = json.dumps(row, separators=(",", ":")).encode()
    return b'{"crc":"%08x",%b\n' % (zlib.crc32(text), text[1:])


def _wait(shell: subprocess.Popen[bytes], output: int) -> int:
    """Read the output to its end; the shell's exit code."""
    poll = select.poll()
    poll.register(output, select.POLLIN)
    ended = os.pidfd_open(shell.pid) if sys.platform == "linux" else -1
    if ended >= 0:
        poll.register(ended, select.POLLIN)
    more = True
    while more:
        poll.poll()
        more = bool(os.read(output, 1 << 16))
    code = shell.wait()
    os.close(output)
    if ended >= 0:
        os.close(ended)
    return code


def main(count: int) -> None:
    """Run as many steps."""
    journal = os.open("journal", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.write(journal, bytes(max(_ROOM, 1024 * count)))
    os.fsync(journal)
    os.mkdir("logs")
    values = [os.path.abspath(name) for name in ("env", "path", "output", "summary")]
    for name in values:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT))
    at = 0
    for number in range(count):
        step = f"s{number}"
        row = _line(step, "running") * 2
        at += os.pwrite(journal, row, at)
        output, end = os.pipe()
        shell = subprocess.Popen(
            ["/bin/sh", "-c", _COMMAND],
            stdin=subprocess.DEVNULL,
            stdout=end,
            stderr=end,
            start_new_session=True,
            env={**os.environ, "STEP": step, "VALUES": values[0]},
        )
        os.close(end)
        os.fdatasync(journal)
        os.close(os.open(f"logs/{step}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        code = _wait(shell, output)
        handed_on = any(os.lstat(name).st_size for name in values)
        at += os.pwrite(journal, _line(step, "done", code=code, handed_on=handed_on), at)
    os.fdatasync(journal)
    os.close(journal)


if __name__ == "__main__":
    main(int(sys.argv[1]))
