"""What happens in a run, told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkpoint_action.model import Decision, Job, Record

__all__ = [
    "Event",
    "Listener",
    "OutputShown",
    "Passing",
    "ProgressRestored",
    "RunEnded",
    "RunStarted",
    "StepBlocked",
    "StepEnded",
    "StepHeld",
    "StepRestored",
    "StepRestoring",
    "StepRetried",
    "StepSkipped",
    "StepStarted",
    "StepWaiting",
    "StepsKept",
    "TryStarted",
    "Warned",
]


@dataclass(frozen=True, slots=True)
class Event:
    """Base of all events."""


@dataclass(frozen=True, slots=True)
class Passing(Event):
    """Base of those that are of interest only for the moment: no record of a run needs them."""


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """The job begins.

    :param steps: ids of the steps that are looked at, where they are not all.
    """

    job: Job
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepSkipped(Event):
    """A step is done already and all it left is there."""

    position: int
    decision: Decision
    record: Record


@dataclass(frozen=True, slots=True)
class StepRestoring(Passing):
    """What a done step left is about to be put back."""

    position: int
    record: Record


@dataclass(frozen=True, slots=True)
class StepRestored(Event):
    """A step is done already and what it left has been put back.

    :param seconds: what putting it back took.
    """

    position: int
    decision: Decision
    record: Record
    seconds: float


@dataclass(frozen=True, slots=True)
class StepStarted(Event):
    """A step's first try begins."""

    position: int
    decision: Decision
    command: str


@dataclass(frozen=True, slots=True)
class OutputShown(Event):
    """All that a step printed follows in one piece, as others ran beside it; its end comes next."""

    position: int


@dataclass(frozen=True, slots=True)
class StepRetried(Event):
    """A try has failed and another will follow.

    :param failed: what is known of the failed try.
    :param wait: seconds until the next.
    """

    position: int
    failed: Record
    wait: float


@dataclass(frozen=True, slots=True)
class StepWaiting(Passing):
    """A step waits for the network before another try.

    :param endpoint: what has to answer.
    """

    position: int
    step: str
    endpoint: str


@dataclass(frozen=True, slots=True)
class TryStarted(Passing):
    """A try of a step begins that is not its first.

    :param number: from 2.
    """

    position: int
    step: str
    number: int


@dataclass(frozen=True, slots=True)
class StepEnded(Event):
    """A step's last try is over and recorded."""

    position: int
    record: Record


@dataclass(frozen=True, slots=True)
class StepBlocked(Event):
    """A step cannot run since one that it needs is not done."""

    position: int
    step: str
    need: str


@dataclass(frozen=True, slots=True)
class StepHeld(Event):
    """A step is not done and is not started: a person has to say so, or to decide first.

    :param wanted: whether the run was to run it; it was not where ``--only`` leaves it out.
    """

    position: int
    decision: Decision
    wanted: bool


@dataclass(frozen=True, slots=True)
class StepsKept(Event):
    """Steps have reached the store.

    :param steps: the finished ones.
    :param store: its name.
    :param size: bytes of the archive.
    :param unfinished: those whose progress has.
    """

    steps: tuple[str, ...]
    store: str
    size: int
    unfinished: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProgressRestored(Event):
    """What an unfinished try on another machine left has been put back for the next one.

    :param size: bytes of it.
    """

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Warned(Event):
    """Something a person should know, which changes nothing in the result."""

    message: str


@dataclass(frozen=True, slots=True)
class RunEnded(Event):
    """The job is over.

    :param exit_code: as documented.
    :param skipped: ids of the steps that were done already; and so on.
    :param signal: the signal that stopped the run.
    :param incomplete: whether it stopped before the end on purpose, and nothing has failed: to be run again.
    :param stopped: ids of the steps that were running when the run was stopped.
    :param held: ids of the steps that were to run and wait for a person; they are pending too.
    :param seconds: by the monotonic clock.
    :param saved: seconds that skipped and restored steps took when they ran.
    """

    job: str
    exit_code: int
    ran: tuple[str, ...]
    skipped: tuple[str, ...]
    restored: tuple[str, ...]
    failed: tuple[str, ...]
    pending: tuple[str, ...]
    signal: int | None
    seconds: float
    saved: float
    incomplete: bool = False
    stopped: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


Listener = Callable[[Event], None]
