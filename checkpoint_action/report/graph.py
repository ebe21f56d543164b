"""The steps of a job and what each needs, with what a run would do with each: as text and as Mermaid."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkpoint_action.model import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.model import Decision, Job, Plan

__all__ = ["MARKS", "Node", "graph_lines", "mermaid_lines", "nodes_of", "shortened", "summary"]

MARKS = {Action.SKIP: "=", Action.RESTORE: "+", Action.RUN: ">", Action.STOP: "!"}
"""One character for each action, where colours alone would not do."""

_LEAST, _MOST_LINES = 40, 3

_MERMAID = {
    Action.SKIP: "fill:#e6e9ed,stroke:#6e7781,color:#1f2328",
    Action.RESTORE: "fill:#dbeafe,stroke:#2563eb,color:#172554",
    Action.RUN: "fill:#dcfce7,stroke:#15803d,color:#052e16",
    Action.STOP: "fill:#fee2e2,stroke:#b91c1c,color:#450a0a",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A step of the picture.

    :param needs: the steps it needs that are in the picture too.
    :param level: 1 for what needs nothing, else one more than the highest of what it needs.
    """

    id: str
    needs: tuple[str, ...]
    level: int
    decision: Decision


def nodes_of(job: Job, plan: Plan) -> list[Node]:
    """The steps that the plan decides on, in the job's order."""
    decisions = {decision.step: decision for decision in plan.decisions}
    levels: dict[str, int] = {}
    nodes = []
    for step in job.steps:
        if step.id not in decisions:
            continue
        needs = tuple(need for need in step.needs if need in levels)
        levels[step.id] = 1 + max((levels[need] for need in needs), default=0)
        nodes.append(Node(step.id, needs, levels[step.id], decisions[step.id]))
    return nodes


def summary(nodes: Sequence[Node]) -> str:
    """How many steps there are, and what a run would do with them."""
    counts = Counter(node.decision.action for node in nodes)
    steps = f"{len(nodes)} step" + ("s" if len(nodes) != 1 else "")
    return f"{steps}: " + ", ".join(f"{counts[action]} {action.value}" for action in Action if counts[action])


def graph_lines(job: str, nodes: Sequence[Node], width: int = 80) -> list[str]:
    """The steps by level, each with its mark, what a run would do and what it needs.

    :param width: columns of the terminal; a line is never longer. Ids that do not fit lose their middle.
    """
    width = max(width, _LEAST)
    place = len(str(max((node.level for node in nodes), default=1)))
    widest = max((len(node.id) for node in nodes), default=0)
    action = max((len(node.decision.action.value) for node in nodes), default=0)
    # Level, mark, action and three gaps besides; at least a third of the line is for what is needed.
    column = min(widest, max((width - place - action - 9) * 2 // 3, 8))
    rest = width - place - column - action - 9
    lines = [shortened(f"job {job}, {summary(nodes)}", width)]
    for node in sorted(nodes, key=lambda node: node.level):
        name, what = shortened(node.id, column), node.decision.action
        before = f"{node.level:>{place}}  {MARKS[what]} {name:<{column}}  {what.value:<{action}}"
        needs = _wrapped(node.needs, rest)
        lines.append(f"{before} < {needs[0]}" if needs else before.rstrip())
        lines += [" " * (len(before) + 3) + more for more in needs[1:]]
    return lines


def _wrapped(needs: Sequence[str], width: int) -> list[str]:
    """The ids in few lines; how many more there are, where they are too many."""
    shown = [shortened(need, width) for need in needs]
    text = " ".join(shown)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    if len(lines) <= _MOST_LINES:
        return lines
    kept = lines[: _MOST_LINES - 1]
    left = len(shown) - sum(len(line.split()) for line in kept)
    return [*kept, shortened(f"and {left} more", width)]


def shortened(text: str, width: int) -> str:
    """A text without its middle, where it is longer than ``width``."""
    if len(text) <= width:
        return text
    if width < 8:
        return text[:width]
    head = (width - 2) // 2
    return f"{text[:head]}..{text[len(text) - (width - 2 - head) :]}"


def mermaid_lines(nodes: Sequence[Node]) -> list[str]:
    """A Mermaid flowchart, as GitHub and many editors render it inside Markdown."""
    # An id may be a word of Mermaid's own ("end"), so its nodes are numbered.
    names = {node.id: f"s{number}" for number, node in enumerate(nodes, 1)}
    lines = ["flowchart TD"]
    for node in nodes:
        what = node.decision
        lines.append(
            f'  {names[node.id]}["{node.id}<br/>{what.action.value}: {what.reason.value}"]:::{what.action.value}'
        )
    lines += [f"  {names[need]} --> {names[node.id]}" for node in nodes for need in node.needs]
    used = {node.decision.action for node in nodes}
    return lines + [f"  classDef {action.value} {style}" for action, style in _MERMAID.items() if action in used]
