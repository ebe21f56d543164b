"""Steps put after all they need, and otherwise left as they were written."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["CircleError", "in_order"]


class CircleError(Exception):
    """Steps need each other.

    :ivar steps: their ids, each before the one that needs it; the first is also the last.
    """

    def __init__(self, steps: list[str]) -> None:
        super().__init__(f"steps need each other in a circle: {' -> '.join(steps)}; take one 'needs' out")
        self.steps = steps


def in_order(needs: Mapping[str, Sequence[str]]) -> list[str]:
    """The ids as written, except that a step comes after all it needs.

    :param needs: what each step needs, in the order they were written; each of these is a step, too.
    :raises CircleError: there is no such order.
    """
    if _is_in_order(needs):
        return list(needs)
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError as error:
        raise CircleError(error.args[1][::-1]) from None
    position = {step: number for number, step in enumerate(needs)}
    names = list(needs)
    ready: list[int] = []
    ordered = []
    while sorter.is_active():
        for step in sorter.get_ready():
            heappush(ready, position[step])
        name = names[heappop(ready)]
        ordered.append(name)
        sorter.done(name)
    return ordered


def _is_in_order(needs: Mapping[str, Sequence[str]]) -> bool:
    seen: set[str] = set()
    for step, wanted in needs.items():
        if not seen.issuperset(wanted):
            return False
        seen.add(step)
    return True
