"""Finding and ending what a step's shell started, also what left its process group and session."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["MARKER", "Lineage", "adopt_orphans", "disown", "kill_marked", "own", "reap_orphans"]

MARKER = "CHECKPOINT_RUN_STEP_TOKEN"
"""Variable in each step's environment that tells its descendants from those of other steps."""

_PR_SET_CHILD_SUBREAPER = 36  # prctl(2)
_LOOKS = 5  # for what was started between two looks
_roots: set[int] = set()
_adopting = False  # only then can a child of ours that is no step's shell be a step's orphan, and not the caller's own


class _Process(NamedTuple):
    parent: int
    session: int
    started: str
    zombie: bool


def adopt_orphans() -> bool:
    """On Linux: become the parent of descendants that lose theirs, so that none can get away.

    :returns: whether it worked; without it a double-forked daemon may survive the end of its step.
    """
    if sys.platform != "linux":
        return False
    global _adopting  # noqa: PLW0603  # a setting of the process, as what it tells of
    try:
        import ctypes  # noqa: PLC0415  # only a run needs it

        _adopting = bool(ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False
    return _adopting


def own(pid: int) -> None:
    """A child that is no step's: never taken for an orphan of one."""
    _roots.add(pid)


def disown(pid: int) -> None:
    """The child of :func:`own` has ended."""
    _roots.discard(pid)


def kill_marked(tokens: Collection[str]) -> bool:
    """Kill what is left of steps whose runner has died: all that carry their marks, with the sessions they lead.

    :returns: whether anything was left.
    """
    if sys.platform == "win32" or not tokens:  # there a job object ends them
        return False
    doomed: set[int] = set()
    for _ in range(_LOOKS):
        found = _doomed(tokens, doomed)
        if found <= doomed:
            break
        # Stopped, so that none can start another, nor lose the parent that it is known by, before all are found.
        doomed |= found
        _signal(sorted(found), signal.SIGSTOP)
    _signal(sorted(doomed), signal.SIGKILL)
    return bool(doomed)


def _doomed(tokens: Collection[str], known: Collection[int]) -> set[int]:
    """Processes with the marks, those in the sessions they lead, and all below them."""
    table = _table()
    marked = {pid for pid in table if pid in known or _marker(pid) in tokens}
    found = {pid for pid, process in table.items() if pid in marked or process.session in marked}
    children: dict[int, list[int]] = {}
    for pid, process in table.items():
        children.setdefault(process.parent, []).append(pid)
    waiting = list(found)
    while waiting:
        below = [pid for pid in children.get(waiting.pop(), ()) if pid not in found]
        found.update(below)
        waiting += below
    return {pid for pid in found if pid != os.getpid() and not table[pid].zombie}


def reap_orphans() -> None:
    """Take the exit status of adopted processes that have ended, never of a step's own shell or of others' children."""
    if sys.platform != "linux" or not _adopting:
        return
    try:
        if os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:  # none of our children has ended
            return
    except ChildProcessError:
        return
    try:
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_bytes().split()
    except OSError:
        return
    for child in map(int, children):
        if child not in _roots:
            process = _read(child)
            if process is not None and process.zombie:
                with suppress(ChildProcessError):
                    os.waitpid(child, os.WNOHANG)


def _read(pid: int) -> _Process | None:
    """One process from ``/proc``, see proc_pid_stat(5)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat[stat.rindex(b")") + 2 :].split()
    return _Process(int(fields[1]), int(fields[3]), fields[19].decode(), fields[0] in b"ZX")


def _marker(pid: int) -> str | None:
    """The mark that a process carries; ``None`` if it carries none or does not let us look."""
    if sys.platform != "linux":
        return _marker_by_psutil(pid)
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = MARKER.encode() + b"="
    return next((item[len(prefix) :].decode() for item in environ.split(b"\0") if item.startswith(prefix)), None)


def _marker_by_psutil(pid: int) -> str | None:
    try:
        import psutil  # noqa: PLC0415  # only where there is no /proc
    except ImportError:
        return None
    try:
        marker = psutil.Process(pid).environ().get(MARKER)
    except psutil.Error:
        return None
    return None if marker is None else str(marker)


class Lineage:
    """The processes below one step's shell.

    What was once seen to belong is remembered (with its start time, against reused process ids), since a process
    whose parent has died no longer shows where it came from.

    :param root: the shell's process id, which is also its session's.
    :param token: the value of :data:`MARKER` in the shell's environment.
    """

    def __init__(self, root: int, token: str) -> None:
        self._root = root
        self._token = token
        self._known: dict[int, str] = {}
        _roots.add(root)

    def forget(self) -> None:
        """The step is over: stop treating its shell as a child that somebody waits for."""
        _roots.discard(self._root)

    def alive(self) -> list[int]:
        """Ids of the descendants that still live, the shell apart."""
        table = _table()
        for pid, process in table.items():
            if pid != self._root and pid not in self._known and self._belongs(pid, process, table):
                self._known[pid] = process.started
        return [
            pid
            for pid, started in self._known.items()
            if pid in table and table[pid].started == started and not table[pid].zombie
        ]

    def group_lives(self) -> bool:
        """Whether the shell's process group still has members, so that its number cannot mean another group."""
        return any(_group(pid) == self._root for pid in self.alive())

    def signal_all(self, signum: int) -> list[str]:
        """Send a signal to each descendant that still lives; what went wrong, as lines."""
        return _signal(self.alive(), signum)

    def signal_strays(self, signum: int) -> list[str]:
        """Send a signal to each descendant outside the shell's process group; what went wrong, as lines."""
        return _signal([pid for pid in self.alive() if _group(pid) != self._root], signum)

    def _belongs(self, pid: int, process: _Process, table: dict[int, _Process]) -> bool:
        if process.session == self._root or self._below_root(process, table):
            return True
        if not _adopting:  # in a process of somebody else's, whose own children are no orphans: the mark alone tells
            return sys.platform == "linux" and bool(self._token) and pid != os.getpid() and _marker(pid) == self._token
        if process.parent != os.getpid() or pid in _roots:
            return False
        # An orphan that we adopted: ours unless it carries another step's mark.
        return _marker(pid) in (None, self._token)

    def _below_root(self, process: _Process, table: dict[int, _Process]) -> bool:
        seen = set()
        parent = process.parent
        while parent > 1 and parent not in seen:
            if parent == self._root or parent in self._known:
                return True
            seen.add(parent)
            above = table.get(parent)
            parent = above.parent if above else 0
        return False


def _table() -> dict[int, _Process]:
    if sys.platform == "linux":
        pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208  # names only
        return {pid: process for pid in pids if (process := _read(pid)) is not None}
    return _table_by_psutil()


def _table_by_psutil() -> dict[int, _Process]:
    try:
        import psutil  # noqa: PLC0415  # only where there is no /proc, and only to end a step
    except ImportError:
        return {}
    table = {}
    for process in psutil.process_iter(["pid", "ppid", "create_time", "status"]):
        info = process.info
        table[info["pid"]] = _Process(
            info["ppid"] or 0,
            _session(info["pid"]),
            repr(info["create_time"]),
            info["status"] == psutil.STATUS_ZOMBIE,
        )
    return table


def _session(pid: int) -> int:
    if sys.platform == "win32":
        return 0
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _group(pid: int) -> int | None:
    if sys.platform == "win32":
        return None
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _signal(pids: list[int], signum: int) -> list[str]:
    notes = []
    for pid in pids:
        try:
            os.kill(pid, signum)
        except ProcessLookupError:
            pass
        except OSError as error:
            notes.append(f"cannot send {signal.Signals(signum).name} to process {pid}: {error.strerror}")
    return notes
