"""Signals while a run keeps its answers: they end that, and nothing else."""

from __future__ import annotations

import signal
import sys

import pytest

from checkpoint_action.runner.signals import interrupted_by_signals

NAMES = ("SIGINT",) if sys.platform == "win32" else ("SIGINT", "SIGTERM", "SIGHUP")


@pytest.mark.parametrize("name", NAMES)
def test_each_interrupts_and_the_handler_from_before_is_back(name: str) -> None:
    number = getattr(signal, name)
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), interrupted_by_signals():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


@pytest.mark.parametrize("name", NAMES)
def test_one_that_is_ignored_stays_so(name: str) -> None:
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with interrupted_by_signals():
            signal.raise_signal(number)
            assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
