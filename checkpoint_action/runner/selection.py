"""What a person asks of a run beyond "what is left", and what it then must not start."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from checkpoint_action.model import Action, Decision, Reason
from checkpoint_action.runner.settled import Settled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.model import Job, Step

__all__ = ["IT_NEEDS", "Held", "Selection"]

IT_NEEDS = "it needs "
"""What the detail of a step begins with that is held back only since one that it needs is."""


_MOST = 10  # steps that are named in one line


@dataclass(frozen=True, slots=True)
class Selection:
    """Which steps run whatever is recorded of them, and whether any other may.

    :param everything: all of them do.
    :param forced: ids of steps that do.
    :param selected: the same; these may be all that runs.
    :param only: whether none but the selected may run.
    :param named: ids that a person has named, each by itself; a step that waits for a person runs only then.
    :param settled: what another machine has done in this try of the run.
    :param left: ids of done steps whose files nothing that runs needs, so that they are not put back.
    :param back: ids of done steps whose files were put back before the run, as others are judged by them.
    """

    everything: bool = False
    forced: frozenset[str] = frozenset()
    selected: frozenset[str] = frozenset()
    only: bool = False
    named: frozenset[str] = frozenset()
    settled: Settled = field(default_factory=Settled)
    left: frozenset[str] = frozenset()
    back: frozenset[str] = frozenset()

    def reason(self, step: str) -> Reason | None:
        """Why a step runs whatever is recorded of it; ``None`` where that is what counts."""
        if step in self.selected:
            return Reason.SELECTED
        return Reason.FORCED if self.everything or step in self.forced else None

    def leaves_out(self, step: str) -> bool:
        """Whether a step must not run: what is left of it can only be skipped or restored."""
        return self.only and step not in self.selected

    def scope(self, job: Job) -> tuple[Step, ...]:
        """The steps that are looked at, in order: all, or the selected and what these need, directly or not."""
        if not self.only:
            return job.steps
        wanted = set(self.selected)
        for step in reversed(job.steps):  # a need is always an earlier step
            if step.id in wanted:
                wanted.update(step.needs)
        return tuple(step for step in job.steps if step.id in wanted)


class Held:
    """The steps that are not done and must not be started: a person has to say so, or to decide first.

    They are those that were running when a run died and say ``on-crash: stop``, those that ``--only`` leaves out and
    that would have to run, and all that need one of them.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        self._causes: dict[str, tuple[Decision, ...]] = {}
        self._doubts: dict[str, tuple[str, ...]] = {}  # what may yet be held, and by which steps left out

    def __contains__(self, step: str) -> bool:
        return step in self._causes

    def forget(self, step: str) -> None:
        """There is something new on record of a step."""
        self._causes.pop(step, None)
        self._doubts.pop(step, None)

    def judge(self, step: Step, decision: Decision, *, assumed: bool = False) -> Decision:
        """What becomes of a decision: the same, or :attr:`Action.STOP`.

        What needs a step that ``--only`` leaves out, and of which it is not known yet whether it would have to run, may
        run, and says in its detail that it may be left after all.

        :param assumed: whether the step may turn out not to run, once what it needs is settled.
        """
        self.forget(step.id)
        held = [need for need in step.needs if need in self._causes]
        causes = list(dict.fromkeys(cause for need in held for cause in self._causes[need]))
        left_out = self._selection.leaves_out(step.id)
        if decision.action is Action.STOP or (left_out and decision.action is Action.RUN and not assumed):
            causes.append(decision)
            if left_out:
                detail = f"{decision.detail}; --only leaves it out" if decision.detail else "--only leaves it out"
                decision = replace(decision, action=Action.STOP, detail=detail)
        elif held and self._selection.only and not left_out:
            decision = Decision(step.id, Action.STOP, Reason.SELECTED, _what_to_add(causes))
        elif held:
            text = f"{IT_NEEDS}'{held[0]}', which is held back"
            decision = Decision(step.id, Action.STOP, Reason.NEEDS_CHANGED, text)
        else:
            return self._doubted(step, decision) if self._selection.only and decision.action is Action.RUN else decision
        self._causes[step.id] = tuple(causes)
        return decision

    def _doubted(self, step: Step, decision: Decision) -> Decision:
        """What becomes of a decision to run where nothing is in the way for all that is known."""
        doubts = list(dict.fromkeys(name for need in step.needs for name in self._doubts.get(need, ())))
        if self._selection.leaves_out(step.id):
            doubts.append(step.id)
            detail = f"{decision.detail}; --only leaves it out"
            decision = replace(decision, action=Action.STOP, detail=detail)
        elif doubts:
            decision = replace(decision, detail=_what_to_add_to_be_sure(doubts))
        else:
            return decision
        self._doubts[step.id] = tuple(doubts)
        return decision


def _what_to_add(causes: Sequence[Decision]) -> str:
    first, *others = causes
    undecided = next((cause for cause in causes if cause.action is Action.STOP), None)
    if undecided is not None:
        return f"{IT_NEEDS}'{undecided.step}', which waits for you ({undecided.detail})"
    why = f"{first.reason.value}: {first.detail}" if first.detail else first.reason.value
    text = f"{IT_NEEDS}'{first.step}', which would have to run ({why})"
    if len(causes) > _MOST:
        return f"{text}, as would {len(others)} more; add them to --only (plan names each), or use --from {first.step}"
    also = f", as would {_listed([cause.step for cause in others])}" if others else ""
    return f"{text}{also}; add {_listed([cause.step for cause in causes])} to --only"


def _what_to_add_to_be_sure(doubts: Sequence[str]) -> str:
    first, *others = doubts
    if len(doubts) > _MOST:
        text = f"left after all if {first} or one of {len(others)} more would have to run"
        return f"{text}; to be sure, add them to --only (plan names each), or use --from {first}"
    return f"left after all if {_listed(doubts, 'or')} would have to run; to be sure, add {_listed(doubts)} to --only"


def _listed(names: Sequence[str], word: str = "and") -> str:
    *most, last = names
    return f"{', '.join(most)} {word} {last}" if most else last
