"""What goes on in a run at the moment, in a few short lines."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import TYPE_CHECKING

from checkpoint_action.model import Status
from checkpoint_action.report.clock import clock, fitted
from checkpoint_action.report.estimate import seconds_left
from checkpoint_action.report.words import size
from checkpoint_action.runner import events

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checkpoint_action.model import Step
    from checkpoint_action.report.estimate import Known
    from checkpoint_action.report.style import Style
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store.metered import Moved

__all__ = ["Board"]

_FEW = 6  # lines at most, however tall the terminal is
_KEPT_FOR = 5.0  # seconds for which it is shown that something has reached the store


@dataclass(frozen=True, slots=True)
class _Doing:
    """What a step does.

    :param word: instead of how long it has run.
    :param since: when the word, or the running, began.
    :param until: when the next try begins.
    """

    position: int
    since: float
    word: str = ""
    until: float | None = None
    number: int = 1


class Board:
    """Listens to a run and says in few words how it stands. From any thread.

    :param known: what earlier runs tell.
    :param jobs: how many steps may run at once.
    :param stop: tells when the run is to stop.
    """

    def __init__(
        self,
        known: Known,
        style: Style,
        *,
        jobs: int = 1,
        stop: StopRequest | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._known = known
        self._style = style
        self._jobs = jobs
        self._stop = stop
        self._now = now
        self._lock = threading.Lock()
        self._steps: tuple[Step, ...] = ()
        self._all: tuple[Step, ...] = ()
        self._doing: dict[str, _Doing] = {}
        self._good: set[str] = set()
        self._ran: set[str] = set()
        self._failed: set[str] = set()
        self._left_alone: set[str] = set()
        self._kept = ("", 0.0)
        self._moving: dict[tuple[bool, str], Moved] = {}
        self._ended = False

    def __call__(self, event: events.Event) -> None:
        """Note an event."""
        with self._lock:
            self._note(event)

    def moved(self, moved: Moved) -> None:
        """Note how far a transfer is."""
        with self._lock:
            if moved.ended:
                self._moving.pop((moved.up, moved.key), None)
            else:
                self._moving[moved.up, moved.key] = moved

    @singledispatchmethod
    def _note(self, event: events.Event) -> None:
        pass  # the rest changes nothing of this

    @_note.register
    def _(self, event: events.RunStarted) -> None:
        looked_at = set(event.steps or (step.id for step in event.job.steps))
        self._all = event.job.steps
        self._steps = tuple(step for step in event.job.steps if step.id in looked_at)
        self._ended = False

    @_note.register
    def _(self, event: events.StepSkipped) -> None:
        self._good.add(event.decision.step)

    @_note.register
    def _(self, event: events.StepRestoring) -> None:
        amount = sum(entry.size for entry in event.record.layer.entries)
        self._doing[event.record.step] = _Doing(event.position, self._now(), f"putting back {size(amount)}")

    @_note.register
    def _(self, event: events.StepRestored) -> None:
        self._doing.pop(event.decision.step, None)
        self._good.add(event.decision.step)

    @_note.register
    def _(self, event: events.StepStarted) -> None:
        self._doing[event.decision.step] = _Doing(event.position, self._now())

    @_note.register
    def _(self, event: events.StepRetried) -> None:
        now = self._now()
        number = event.failed.tries + 1
        self._doing[event.failed.step] = _Doing(event.position, now, until=now + event.wait, number=number)

    @_note.register
    def _(self, event: events.StepWaiting) -> None:
        self._doing[event.step] = _Doing(event.position, self._now(), f"waiting for {event.endpoint}")

    @_note.register
    def _(self, event: events.TryStarted) -> None:
        self._doing[event.step] = _Doing(event.position, self._now(), number=event.number)

    @_note.register
    def _(self, event: events.StepEnded) -> None:
        record = event.record
        self._doing.pop(record.step, None)
        self._ran.add(record.step)
        (self._good if record.status is Status.DONE else self._failed).add(record.step)

    @_note.register
    def _(self, event: events.StepBlocked) -> None:
        self._left_alone.add(event.step)

    @_note.register
    def _(self, event: events.StepHeld) -> None:
        self._doing.pop(event.decision.step, None)
        self._left_alone.add(event.decision.step)

    @_note.register
    def _(self, event: events.StepsKept) -> None:
        named = ", ".join((*event.steps, *event.unfinished))
        self._kept = (f"{named} kept ({size(event.size)})", self._now())

    @_note.register
    def _(self, _event: events.RunEnded) -> None:
        self._ended = True

    def lines(self, columns: int, rows: int) -> list[str]:
        """The lines, none longer than ``columns`` as it is shown, at most ``rows``; none after the run."""
        with self._lock:
            if self._ended:
                return []
            now = self._now()
            doing = sorted(self._doing.items(), key=lambda one: one[1].position)
            sums = self._sums(now)
            if self._stop is not None and self._stop.signum is not None:
                return [self._paint(fitted(self._stopping(), columns, self._style.dots), "", columns)]
            if len(doing) > 1 and rows > 2:
                return self._several(doing, sums, columns, min(rows, _FEW), now)
            if not doing:
                return [self._one(("", self._between()), sums, columns)]
            rest = "" if len(doing) == 1 else f"{len(doing)} at once"
            step, what = doing[0]
            return [self._one(self._words(step, what, now), [rest, *sums] if rest else sums, columns)]

    def _between(self) -> str:
        """What goes on while no step does anything."""
        if not self._all:
            return "asking the store" if self._moving else "getting ready"
        return "looking at what is done" if self._open() else "finishing"

    def _transfers(self) -> list[str]:
        """What goes to the store and comes from it at the moment."""
        parts = []
        for up, word in ((False, "fetching"), (True, "sending")):
            those = [moved for (is_up, _), moved in self._moving.items() if is_up is up]
            if those:
                amount = sum(max(moved.size, moved.total or 0) for moved in those)
                parts.append(f"{word} {size(amount)}" if amount else word)
        return parts

    def _open(self) -> list[Step]:
        settled = self._good | self._failed | self._left_alone
        return [step for step in self._steps if step.id not in settled]

    def _stopping(self) -> str:
        waits = f", waiting for {', '.join(self._doing)} to end" if self._doing else ""
        hint = ", ^C again to hurry" if self._stop is not None and self._stop.name == "SIGINT" else ""
        return f"stopping{waits}{hint}"

    def _words(self, step: str, what: _Doing, now: float) -> tuple[str, str]:
        """A step's place and name, and what it does."""
        head = f"[{what.position + 1}/{len(self._all)}] {step}"
        number = f"try {what.number}, " if what.number > 1 else ""
        if what.until is not None and what.until > now:
            return head, f"try {what.number} in {clock(what.until - now + 0.999)}"
        if what.word:
            return head, f"{what.word}, {clock(now - what.since)}"
        since = what.since if what.until is None else what.until
        took = self._known.took.get(step)
        usual = "" if took is None else f" of {self._style.about}{clock(took + 0.5)}"
        return head, f"{number}{clock(now - since)}{usual}"

    def _sums(self, now: float) -> list[str]:
        """Counts and the time left, what matters most last."""
        parts = self._transfers()
        text, at = self._kept
        if text and now < at + _KEPT_FOR:
            parts.append(text)
        if self._good:
            parts.append(f"{len(self._good)} done")
        if self._failed:
            parts.append(f"{len(self._failed)} failed")
        still = self._open()
        waiting = [step for step in still if step.id not in self._doing]
        if waiting:
            parts.append(f"{len(waiting)} left")
        running = {step: self._run_for(what, now) for step, what in self._doing.items()}
        left = seconds_left(
            self._steps,
            self._known,
            settled=self._good | self._failed | self._left_alone,
            ran=self._ran,
            running=running,
            jobs=self._jobs,
        )
        if left is not None and self._doing and still:
            parts.append(f"{self._style.about}{clock(left + 0.5)} to go")
        return parts

    def _run_for(self, what: _Doing, now: float) -> float:
        if what.word:
            return 0.0
        return max(now - (what.since if what.until is None else what.until), 0.0)

    def _several(
        self, doing: Sequence[tuple[str, _Doing]], sums: list[str], columns: int, rows: int, now: float
    ) -> list[str]:
        """A line for each of several steps, and one for the whole."""
        shown = doing if len(doing) < rows else doing[: rows - 2]
        out = [self._one(self._words(step, what, now), [], columns) for step, what in shown]
        if len(shown) < len(doing):
            more = f"and {len(doing) - len(shown)} more"
            out.append(self._paint("", fitted(more, columns, self._style.dots), columns))
        if sums:
            out.append(self._one(("", ""), sums, columns))
        return out

    def _one(self, words: tuple[str, str], sums: list[str], columns: int) -> str:
        """A line of a step and of the sums, as much of these as fits."""
        head, what = words
        if head and len(head) + 2 + len(what) > columns:
            head = head.partition(" ")[2]  # the name is more than its place
        if head and len(head) + 2 + len(what) > columns:
            head = fitted(head, max(columns - len(what) - 2, 4), self._style.dots)
        text = fitted(f"{head}  {what}" if head else what, columns, self._style.dots)
        for first in range(len(sums)):
            rest = ", ".join(sums[first:])
            joined = f" {self._style.bar} {rest}" if text else rest
            if len(text) + len(joined) <= columns:
                return self._paint(text, joined, columns)
        return self._paint(text, "", columns)

    def _paint(self, text: str, rest: str, columns: int) -> str:
        shown = text[:columns]
        return self._style.paint(shown, "head") + self._style.paint(rest[: columns - len(shown)], "soft")
