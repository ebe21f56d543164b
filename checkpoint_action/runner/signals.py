"""Signals turned into stop requests for as long as a job runs."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from checkpoint_action.runner.stop import BlockedWriteError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checkpoint_action.runner.stop import StopRequest

__all__ = ["interrupted_by_signals", "stop_on_signals"]

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")


@contextmanager
def stop_on_signals(stop: StopRequest, *, ignore_hangup: bool = False) -> Iterator[None]:
    """Within the context SIGINT, SIGTERM and SIGHUP (Ctrl-Break on Windows) become requests.

    :param ignore_hangup: whether SIGHUP is ignored, by the steps too, so that they outlive their terminal.

    A signal that was ignored when we started (``nohup``) stays so. Main thread only.
    """
    previous = {}
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            if ignore_hangup and name == "SIGHUP":
                previous[number] = signal.signal(number, signal.SIG_IGN)
            else:
                previous[number] = signal.signal(number, lambda received, _frame: _received(stop, received))
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Within the context each of these signals raises ``KeyboardInterrupt``, as SIGINT does. Main thread only."""
    previous = {}
    for name in _NAMES:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            previous[number] = signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _received(stop: StopRequest, number: int) -> None:
    stop.request(number)
    if stop.breaks_writes:
        stop.breaks_writes = False
        raise BlockedWriteError
