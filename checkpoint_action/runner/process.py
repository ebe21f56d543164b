"""One command as a process tree of its own: watched, limited in time, and ended whole."""

from __future__ import annotations

import errno
import math
import os
import signal
import sys
import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from checkpoint_action.runner.stop import StopRequest

__all__ = ["Command", "End", "Limits", "Outcome", "ProcessTree", "RunCommand", "run_command"]

_DRAIN = 0.5  # seconds that output is still read for after a shell has ended while something holds its pipe
_BUFFERED = 1 << 21  # bytes; more than a pipe holds, so what was written before the end of the shell is among them
_POLL = 0.05  # seconds between looks at processes that give no notice of their end
_UNKILLABLE = 5.0  # seconds after SIGKILL until we stop waiting and say so
_REAP = 1.0  # seconds between looks for adopted processes that have ended
_HURRY = 1.0  # seconds of grace left once a second stop request came


class End(str, Enum):
    """Why a command ended."""

    EXITED = "exited"
    TIMEOUT = "timeout"
    IDLE = "idle"
    BUDGET = "budget"
    STOPPED = "stopped"
    NOT_STARTED = "not-started"


@dataclass(frozen=True, slots=True)
class Command:
    """What to start.

    :param argv: program and arguments.
    :param env: the whole environment.
    :param terminal: whether its output is a terminal (so that progress bars live), where the platform has one.
    :param interactive: whether it reads our standard input; else its own is empty.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    terminal: bool = False
    interactive: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a command may take.

    :param timeout: seconds in all; ``None`` is no limit.
    :param idle_timeout: seconds without output.
    :param budget: seconds until the run has to stop, grace included.
    :param grace: seconds between asking it to end and killing it.
    :param kill_leftovers: whether background processes that outlive the shell are ended; else they are left alone.
    """

    timeout: float | None = None
    idle_timeout: float | None = None
    budget: float | None = None
    grace: float = 10.0
    kill_leftovers: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended.

    :param exit_code: what its shell returned, ``None`` if a signal ended it or it never started.
    :param signal: the signal that ended its shell.
    :param duration: seconds by the monotonic clock.
    :param notes: lines a person should see (what could not be killed, what was left running).
    :param alone: whether it is known that nothing in its process group outlived it.
    """

    end: End
    exit_code: int | None
    signal: int | None
    duration: float
    notes: tuple[str, ...] = ()
    alone: bool = False


class ProcessTree(Protocol):
    """A started command and all that it started, on one platform."""

    @property
    def returncode(self) -> int | None:
        """What ``Popen.returncode`` says; ``None`` while the shell lives."""
        ...

    @property
    def output_ended(self) -> bool:
        """Whether nothing holds the output any more."""
        ...

    def wait(self, seconds: float | None) -> None:
        """Pump output until something happens: output, an end, a stop request, or ``seconds`` have passed."""
        ...

    def interrupt(self, signum: int) -> list[str]:
        """Ask the tree to end, with SIGTERM for what left the shell's group; what went wrong, as lines."""
        ...

    def kill(self) -> list[str]:
        """End every process of the tree at once; what went wrong, as lines."""
        ...

    def survivors(self) -> list[int]:
        """Ids of the processes of the tree that still live, the shell apart."""
        ...

    def group_is_gone(self) -> bool:
        """Whether it is known that nothing is left of the shell's process group; a cheap look."""
        ...

    def reap(self) -> None:
        """Take the exit status of ended processes that only we can take."""
        ...

    def close(self) -> None:
        """Let go of the output and all handles."""
        ...


class RunCommand(Protocol):
    """What :func:`run_command` is to those that call it."""

    def __call__(
        self,
        command: Command,
        limits: Limits,
        write: Callable[[bytes], None],
        stop: StopRequest,
        /,
        *,
        started: Callable[[], None],
    ) -> Outcome:
        """Run a command to its end."""
        ...


def start_tree(command: Command, write: Callable[[bytes], None], stop: StopRequest) -> ProcessTree:
    """Start a command on this platform.

    :raises OSError: it cannot be started.
    """
    if sys.platform != "win32":
        from checkpoint_action.runner.process_posix import PosixTree  # noqa: PLC0415  # platform's own

        return PosixTree(command, write, stop)
    from checkpoint_action.runner.process_windows import WindowsTree  # noqa: PLC0415  # platform's own

    return WindowsTree(command, write, stop)


def _too_long(command: Command, error: Exception) -> str:
    """What to do where the system refuses to start anything with so large an environment."""
    if not isinstance(error, OSError) or error.errno != errno.E2BIG or not command.env:
        return ""
    name = max(command.env, key=lambda one: len(command.env[one]))
    size = len(os.fsencode(command.env[name]))
    return f" (its largest variable is {name} with {size} bytes; hand large values on in a file)"


def run_command(
    command: Command,
    limits: Limits,
    write: Callable[[bytes], None],
    stop: StopRequest,
    *,
    started: Callable[[], None] = lambda: None,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Run a command to its end.

    Its output is handed on as it comes. It ends when its shell ends; when it takes too long or a stop is requested
    it is asked to end, given the grace, and then killed with everything it started.

    :param write: gets each piece of the output, stdout and stderr as one stream.
    :param started: called once it runs, before anything of its output is handed on.
    :param clock: seconds that never jump.
    """
    begin = clock()
    watch = _Watch(write, clock)
    try:
        tree = start_tree(command, watch.write, stop)
    except (OSError, ValueError) as error:
        note = f"cannot start {command.argv[0]}: {getattr(error, 'strerror', None) or error}{_too_long(command, error)}"
        return Outcome(End.NOT_STARTED, None, None, clock() - begin, (note,))
    try:
        started()
        end, notes = _supervise(tree, limits, stop, begin, watch)
        alone = tree.group_is_gone()
    except BaseException:  # we cannot go on, and nothing may run unwatched
        watch.hush()
        try:
            _end_tree(tree, 0.0, signal.SIGTERM, stop, clock)
        except BaseException:
            tree.kill()
            raise
        raise
    finally:
        tree.close()
    code = tree.returncode
    if code is None:
        return Outcome(end, None, None, clock() - begin, tuple(notes), alone)
    if code < 0:
        return Outcome(end, None, -code, clock() - begin, tuple(notes), alone)
    return Outcome(end, code, None, clock() - begin, tuple(notes), alone)


class _Watch:
    """Hands output on and remembers how much came, and when the last of it did."""

    def __init__(self, write: Callable[[bytes], None], clock: Callable[[], float]) -> None:
        self._write = write
        self.clock = clock
        self.last_output = clock()
        self.size = 0

    def hush(self) -> None:
        """Hand nothing on any more."""
        self._write = _discard

    def write(self, data: bytes) -> None:
        self.last_output = self.clock()
        self.size += len(data)
        self._write(data)


def _discard(_data: bytes) -> None:
    """Nobody reads."""


def _first_limit(limits: Limits, begin: float, watch: _Watch) -> tuple[float, End]:
    """The moment of the limit that comes first, and what it means."""
    moments = [(math.inf, End.TIMEOUT)]
    if limits.timeout is not None:
        moments.append((begin + limits.timeout, End.TIMEOUT))
    if limits.idle_timeout is not None:
        moments.append((watch.last_output + limits.idle_timeout, End.IDLE))
    if limits.budget is not None:
        moments.append((begin + max(limits.budget - limits.grace, 0.0), End.BUDGET))
    return min(moments)


def _supervise(
    tree: ProcessTree, limits: Limits, stop: StopRequest, begin: float, watch: _Watch
) -> tuple[End, list[str]]:
    drain_until: float | None = None
    drain_to = 0
    reap_at = begin + _REAP
    while True:
        if tree.returncode is not None and tree.output_ended:
            return End.EXITED, _leftovers(tree, limits, stop, watch.clock)
        if stop.signum is not None:
            return End.STOPPED, _end_tree(tree, limits.grace, stop.signum, stop, watch.clock)
        now = watch.clock()
        moment, end = _first_limit(limits, begin, watch)
        if tree.returncode is not None:
            if drain_until is None:
                drain_until, drain_to = now + _DRAIN, watch.size + _BUFFERED
            if now < drain_until:
                tree.wait(drain_until - now)
                continue
            # However slow our own reader is: all that the shell wrote is handed on.
            before = watch.size
            tree.wait(0)
            if watch.size == before or watch.size >= drain_to:
                return End.EXITED, _leftovers(tree, limits, stop, watch.clock)
        elif now >= moment:
            # It may have ended in time while we were stopped, or waited for a slow terminal.
            tree.wait(0)
            tree.wait(0)
            if tree.returncode is not None:
                continue
            return end, _end_tree(tree, limits.grace, signal.SIGTERM, stop, watch.clock)
        else:
            tree.wait(min(moment - now, _REAP))
            if watch.clock() >= reap_at:
                tree.reap()
                reap_at = watch.clock() + _REAP


def _leftovers(tree: ProcessTree, limits: Limits, stop: StopRequest, clock: Callable[[], float]) -> list[str]:
    """What the shell left running: ended where that is wanted, else named where it holds the output."""
    if limits.kill_leftovers:
        left = tree.survivors()
        return _end_tree(tree, limits.grace, signal.SIGTERM, stop, clock) if left else []
    if tree.output_ended:
        return []
    named = ", ".join(map(str, tree.survivors()))
    return [f"a background process still runs and was left alone{f' (process {named})' if named else ''}"]


def _end_tree(tree: ProcessTree, grace: float, signum: int, stop: StopRequest, clock: Callable[[], float]) -> list[str]:
    """The ladder: ask, wait, kill, and give up waiting in the end."""
    notes = tree.interrupt(signum)
    seen = stop.count
    kill_at = clock() + grace
    killed = left_behind = False
    while True:
        now = clock()
        if tree.returncode is not None:
            if not tree.survivors():
                return notes
            if not left_behind:
                # What a shell starts in the background ignores SIGINT, and nobody passes a signal on any more.
                left_behind = True
                notes += tree.interrupt(signal.SIGTERM)
        if stop.count > seen:
            # The second request shortens the grace, the third ends it.
            kill_at = min(kill_at, now + _HURRY) if stop.count <= 2 else now
            seen = stop.count
            if not killed:
                notes += tree.interrupt(signal.SIGTERM)
        if killed and now >= kill_at + _UNKILLABLE:
            left: Sequence[int] = tree.survivors()
            return [*notes, f"some of it could not be ended (process {', '.join(map(str, left)) or 'unknown'})"]
        if not killed and now >= kill_at:
            notes += tree.kill()
            killed, kill_at = True, now
        elif killed:
            notes += [note for note in tree.kill() if note not in notes]
        limit = kill_at + _UNKILLABLE if killed else kill_at
        tree.wait(min(max(limit - now, 0.0), _POLL))
