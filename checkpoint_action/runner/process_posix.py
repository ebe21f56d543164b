"""A command's process tree on Linux, macOS and the like."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from checkpoint_action.runner import descendants
from checkpoint_action.runner.programs import program_in

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from checkpoint_action.runner.process import Command
    from checkpoint_action.runner.stop import StopRequest

__all__ = ["PosixTree"]

assert sys.platform != "win32"  # noqa: S101  # by which a type checker for Windows knows that the rest is not for it

# Of the system's ways to wait, the one that takes no call for each descriptor; not every system has it for terminals.
_Selector = selectors.PollSelector if sys.platform == "linux" else selectors.DefaultSelector
_CHUNK = 1 << 16  # of larger pieces each is new memory from the system
_PIPE_SIZE = 1 << 20
_F_SETPIPE_SZ = 1031  # fcntl(2), Linux


class PosixTree:
    """See :class:`~checkpoint_action.runner.process.ProcessTree`. The command leads a session of its own."""

    def __init__(self, command: Command, write: Callable[[bytes], None], stop: StopRequest) -> None:
        self._write = write
        self._closing = ExitStack()
        self._ended = False
        self._size = _terminal_size() if command.terminal else b""
        self._mode = _terminal_mode() if command.interactive else None
        self._was_ended = False
        self._selector = self._closing.enter_context(_Selector())
        try:
            notice = stop.notice()
            # It stays readable: whoever has seen it looks at the request by itself from then on.
            self._selector.register(notice, selectors.EVENT_READ, lambda: self._selector.unregister(notice))
            self._small = not command.terminal  # a pipe is made larger once there is something in it
            self._output, write_end = _terminal() if command.terminal else os.pipe()
            try:
                os.set_blocking(self._output, False)
                self._selector.register(self._output, selectors.EVENT_READ, self._pump)
                self._process = subprocess.Popen(
                    command.argv,
                    executable=_program(command),
                    cwd=command.cwd,
                    env=dict(command.env),
                    stdin=None if command.interactive else subprocess.DEVNULL,
                    stdout=write_end,
                    stderr=write_end,
                    # Who reads our terminal has to stay in its session.
                    start_new_session=not command.interactive,
                )
            except BaseException:
                os.close(self._output)
                raise
            finally:
                os.close(write_end)
        except BaseException:
            self._closing.close()
            raise
        self._leads_group = not command.interactive
        try:
            self._lineage = descendants.Lineage(self._process.pid, command.env.get(descendants.MARKER, ""))
            self._exit_notice = self._watch_exit()
        except BaseException:  # nobody is going to watch it
            self._kill_unwatched()
            self._close_output()
            self._closing.close()
            raise

    def _kill_unwatched(self) -> None:
        if self._leads_group:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def _watch_exit(self) -> int | None:
        """A descriptor that becomes readable once the shell has ended."""
        if sys.platform == "linux":
            with suppress(OSError):  # a kernel or sandbox without pidfd: a thread waits instead
                pidfd = os.pidfd_open(self._process.pid)
                self._closing.callback(os.close, pidfd)
                self._selector.register(pidfd, selectors.EVENT_READ, self._reap)
                return pidfd
        read_end, write_end = os.pipe()
        self._closing.callback(os.close, read_end)

        def wait() -> None:
            self._process.wait()
            os.close(write_end)

        threading.Thread(target=wait, name="wait-for-shell", daemon=True).start()
        self._selector.register(read_end, selectors.EVENT_READ, self._reap)
        return read_end

    def _reap(self) -> None:
        if self._exit_notice is not None:
            self._selector.unregister(self._exit_notice)
            self._exit_notice = None
            self._process.wait()

    def _pump(self) -> None:
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # how a terminal says that nobody holds its other side any more
            data = b""
        if data:
            if self._small:
                self._small = False
                _enlarge(self._output)
            self._write(data)
            return
        self._ended = True
        self._close_output()
        if self._process.poll() is not None:  # both come together mostly: no need to wait once more
            self._reap()

    def _close_output(self) -> None:
        if self._output >= 0:
            self._selector.unregister(self._output)
            os.close(self._output)
            self._output = -1

    @property
    def returncode(self) -> int | None:
        return self._process.returncode

    @property
    def output_ended(self) -> bool:
        return self._ended

    def wait(self, seconds: float | None) -> None:
        for key, _ in self._selector.select(seconds):
            key.data()

    def interrupt(self, signum: int) -> list[str]:
        self._was_ended = True
        notes = self._signal_group(signum)
        if self._leads_group or self._process.returncode is not None:
            notes += self._lineage.signal_strays(signal.SIGTERM)
        return notes

    def kill(self) -> list[str]:
        return self._signal_group(signal.SIGKILL) + self._lineage.signal_all(signal.SIGKILL)

    def _signal_group(self, signum: int) -> list[str]:
        # Looked at first: once the shell is gone, only living members keep its number from meaning another group.
        lives = self._lineage.group_lives()
        try:
            if not self._leads_group:
                if signum != signal.SIGINT or not os.isatty(0):  # the terminal's own Ctrl-C has reached it already
                    self._process.send_signal(signum)
            elif self._process.returncode is None or lives:
                os.killpg(self._process.pid, signum)
                with suppress(OSError):
                    os.killpg(self._process.pid, signal.SIGCONT)  # a stopped process would not notice
        except ProcessLookupError:
            pass
        except OSError as error:
            name = signal.Signals(signum).name
            return [f"cannot send {name} to process group {self._process.pid}: {error.strerror}"]
        return []

    def survivors(self) -> list[int]:
        return self._lineage.alive()

    def group_is_gone(self) -> bool:
        if not self._leads_group:
            return False
        try:
            os.killpg(self._process.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

    def reap(self) -> None:
        descendants.reap_orphans()
        if self._size and self._output >= 0:
            self._follow_size()

    def _follow_size(self) -> None:
        """Give the step's terminal the size that ours has now, and have the step look."""
        size = _terminal_size()
        if size in (b"", self._size):
            return
        import fcntl  # noqa: PLC0415  # not on Windows
        import termios  # noqa: PLC0415

        self._size = size
        with suppress(OSError):  # it has ended meanwhile
            fcntl.ioctl(self._output, termios.TIOCSWINSZ, size)
            if self._leads_group and self._process.returncode is None:
                os.killpg(self._process.pid, signal.SIGWINCH)

    def close(self) -> None:
        self._close_output()
        if self._mode is not None and (self._was_ended or (self._process.returncode or 0) < 0):
            _set_terminal_mode(self._mode)
        self._closing.close()
        self._lineage.forget()
        descendants.reap_orphans()


def _program(command: Command) -> str | None:
    """Where the program is that the command's ``PATH`` finds; ``None`` where only the system can tell."""
    name = command.argv[0]
    return None if os.sep in name else program_in(os.get_exec_path(command.env), name)


def _enlarge(pipe: int) -> None:
    if sys.platform == "linux":
        import fcntl  # noqa: PLC0415  # not on Windows

        with suppress(OSError):  # over the user's limit for pipe buffers: the usual size does too
            fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE_SIZE)


def _terminal() -> tuple[int, int]:
    """A pseudo-terminal of the size of ours. It changes no byte, so that logs are exact."""
    import fcntl  # noqa: PLC0415  # not on Windows
    import termios  # noqa: PLC0415

    read_end, write_end = os.openpty()
    attributes = termios.tcgetattr(write_end)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(write_end, termios.TCSANOW, attributes)
    if size := _terminal_size():
        with suppress(OSError):
            fcntl.ioctl(write_end, termios.TIOCSWINSZ, size)
    return read_end, write_end


def _terminal_size() -> bytes:
    """Rows and columns of our own terminal as the system has them; nothing where there is none."""
    import fcntl  # noqa: PLC0415  # not on Windows
    import termios  # noqa: PLC0415

    try:
        return fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8))
    except OSError:
        return b""


def _terminal_mode() -> list[Any] | None:
    """How the terminal that a command reads from works; nothing where there is none."""
    import termios  # noqa: PLC0415  # not on Windows

    try:
        return termios.tcgetattr(0)
    except (OSError, termios.error):
        return None


def _set_terminal_mode(mode: list[Any]) -> None:
    """Put right what a command that was ended cannot put right itself, as a shell does; not from the background."""
    import termios  # noqa: PLC0415  # not on Windows

    with suppress(OSError, termios.error):
        if os.tcgetpgrp(0) == os.getpgrp() and termios.tcgetattr(0) != mode:
            termios.tcsetattr(0, termios.TCSANOW, mode)
