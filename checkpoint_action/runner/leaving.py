"""Done steps whose files are left where they are kept, as nothing that runs needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.errors import TornError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from checkpoint_action.model import Record, Step

__all__ = ["NOT_NEEDED", "LeftAlone"]

NOT_NEEDED = "not put back: nothing that runs needs it"


class LeftAlone:
    """The steps of a run that are left alone, until it turns out that one of them has to run after all.

    :param steps: ids of what was foreseen to be left.
    :param put_back: puts back what a step left; why that cannot be, or an empty text.
    """

    def __init__(self, steps: Collection[str], put_back: Callable[[Record], str]) -> None:
        self._steps = steps
        self._put_back = put_back
        self._left: dict[str, Record] = {}

    def takes(self, step: Step, ran: Collection[str]) -> bool:
        """Whether a step is left alone.

        :param ran: ids of what has run; what needs one of these is looked at, as it may not be what it was.
        """
        return step.id in self._steps and not any(need in ran for need in step.needs)

    def put_off(self, record: Record) -> None:
        """A step is left alone."""
        self._left[record.step] = record

    def make_good(self, step: Step) -> str:
        """Put back all that was left where a step that was to be left is not; why that cannot be, or an empty text."""
        if step.id not in self._steps:
            return ""
        while self._left:
            name, record = next(iter(self._left.items()))
            try:
                fault = self._put_back(record)
            except TornError as error:
                fault = str(error)
            if fault:
                return f"'{name}' cannot be put back: {fault}"
            del self._left[name]
        return ""
