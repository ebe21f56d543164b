"""The tries of one step: run, look at what it left, wait, run again."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from checkpoint_action.model import ARTIFACT_MISSING, Layer, Status, Values
from checkpoint_action.runner.entries import UNREADABLE
from checkpoint_action.runner.outputs import MissingOutputError
from checkpoint_action.runner.process import End
from checkpoint_action.runner.stop import StoppedError
from checkpoint_action.runner.value_files import ValueFileError

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.model import Record, Retry
    from checkpoint_action.runner.process import Outcome

__all__ = ["Left", "Try", "backoff_delay", "judge", "recorded", "run_tries"]


_NO_LAYER, _NO_VALUES = Layer(), Values()  # one for all records: there may be many


@dataclass(frozen=True, slots=True)
class Left:
    """What a command that ended well has left.

    :param layer: what it declared.
    :param values: what it handed on, as far as that may be kept.
    :param withheld: names of what it handed on and may not be kept.
    :param secret: all that it handed on, where that is more.
    """

    layer: Layer = Layer()
    values: Values = field(default_factory=Values)
    withheld: tuple[str, ...] = ()
    secret: Values | None = None


@dataclass(frozen=True, slots=True)
class Try:
    """One try of a step, judged.

    :param number: from 1.
    :param started: wall-clock start, seconds since the epoch.
    :param error: why it is not done, empty when it is.
    """

    number: int
    status: Status
    exit_code: int | None
    signal: int | None
    started: float
    duration: float
    error: str = ""
    left: Left = field(default_factory=Left)
    notes: tuple[str, ...] = ()


def recorded(record: Record, tried: Try) -> Record:
    """A step's record, as its last try has left it."""
    return replace(
        record,
        status=tried.status,
        exit_code=tried.exit_code,
        signal=tried.signal,
        tries=tried.number,
        started=tried.started,
        duration=tried.duration,
        error=tried.error,
        layer=_NO_LAYER if tried.left.layer == _NO_LAYER else tried.left.layer,
        values=_NO_VALUES if tried.left.values == _NO_VALUES else tried.left.values,
        withheld=tried.left.withheld,
    )


def backoff_delay(retry: Retry, failed: int) -> float:
    """Seconds to wait after the ``failed``-th failed try: ``backoff * 2^(failed-1)``, never above the cap."""
    if retry.backoff <= 0:
        return 0.0
    try:
        return min(math.ldexp(retry.backoff, failed - 1), retry.backoff_max)
    except OverflowError:
        return retry.backoff_max


def judge(
    outcome: Outcome,
    number: int,
    started: float,
    timeout: float | None,
    collect: Callable[[], Left],
    *,
    idle_timeout: float | None = None,
    stopped_by: str = "",
) -> Try:
    """What a finished process means for its step.

    :param stopped_by: what stopped the run, in a word.
    :param collect: finds what a command that ended well has left; raises :class:`MissingOutputError`,
        :class:`ValueFileError`, or :class:`StoppedError` when it was cut short.
    """

    def ended(status: Status, error: str = "", exit_code: int | None = None, left: Left | None = None) -> Try:
        code = outcome.exit_code if exit_code is None else exit_code
        found = Left() if left is None else left
        return Try(number, status, code, outcome.signal, started, outcome.duration, error, found, outcome.notes)

    if outcome.end is End.NOT_STARTED:
        return replace(ended(Status.FAILED, outcome.notes[0]), notes=outcome.notes[1:])
    if outcome.end is End.STOPPED:
        return ended(Status.INTERRUPTED, f"it was stopped{f' by {stopped_by}' if stopped_by else ''}")
    if outcome.end is End.BUDGET:
        return ended(Status.INTERRUPTED, "the run's budget was used up")
    if outcome.end is End.IDLE:
        return ended(Status.TIMEOUT, f"it gave no output for its {idle_timeout:g} s")
    if outcome.end is End.TIMEOUT:
        return ended(Status.TIMEOUT, f"it took longer than its {timeout:g} s")
    if outcome.signal is not None:
        return ended(Status.FAILED, f"it was ended by signal {outcome.signal}")
    if outcome.exit_code != 0:
        return ended(Status.FAILED, f"it ended with exit code {outcome.exit_code}")
    return _look_at(collect, ended, f" by {stopped_by}" if stopped_by else "")


def _look_at(collect: Callable[[], Left], ended: Callable[..., Try], by: str) -> Try:
    """A command that ended well, once it is known what it has left.

    :param by: what stopped the run, if anything did.
    """
    try:
        left = collect()
    except MissingOutputError as error:
        return ended(Status.FAILED, str(error), ARTIFACT_MISSING)
    except ValueFileError as error:
        return ended(Status.FAILED, f"what it hands on cannot be used: {error}")
    except StoppedError:
        return ended(Status.INTERRUPTED, f"it was stopped{by} before its outputs were recorded")
    except OSError as error:
        return ended(Status.FAILED, f"cannot look at its outputs: {error}")
    done = ended(Status.DONE, left=left)
    told = [entry.path for entry in left.layer.entries if entry.content == UNREADABLE][:1]
    return replace(done, notes=(*done.notes, *(f"{path} cannot be read; it runs again next time" for path in told)))


def _retried(retry: Retry, failed: Try) -> bool:
    if failed.status is Status.TIMEOUT:
        return "timeout" in retry.on
    if failed.status is not Status.FAILED:
        return False
    return "error" in retry.on or failed.exit_code in retry.on


def run_tries(
    retry: Retry,
    attempt: Callable[[int], Try],
    wait: Callable[[float], bool],
    announce: Callable[[Try, float], None],
    draw: Callable[[], float] = lambda: int.from_bytes(os.urandom(4), "big") / 2**32,
) -> Try:
    """Try until it is done, not to be retried, or the tries are used up; the last try counts.

    :param attempt: makes the try of this number.
    :param wait: sleeps for seconds; true when a stop was requested meanwhile.
    :param announce: told of a failed try that another follows, and the wait before it.
    :param draw: a number from 0 to 1, for jitter.
    """
    number = 1
    while True:
        result = attempt(number)
        if result.status is Status.DONE or number > retry.max or not _retried(retry, result):
            return result
        delay = backoff_delay(retry, number)
        if retry.jitter:
            delay *= draw()
        announce(result, delay)
        if wait(delay):
            return result
        number += 1
