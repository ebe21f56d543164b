"""The steps as text and as Mermaid."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkpoint_action.model import Action, Decision, Job, Plan, Reason, Step
from checkpoint_action.report.graph import MARKS, Node, graph_lines, mermaid_lines, nodes_of, shortened, summary

ROOT = Path("/r")


def nodes(needs: dict[str, tuple[str, ...]], actions: dict[str, Action] | None = None) -> list[Node]:
    steps = tuple(Step(name, "x", "sh", ROOT, needs=needed) for name, needed in needs.items())
    decisions = tuple(Decision(name, (actions or {}).get(name, Action.RUN), Reason.NEVER_RAN) for name in needs)
    return nodes_of(Job("j", ROOT, steps), Plan("j", decisions))


DIAMOND: dict[str, tuple[str, ...]] = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "e": ()}


def test_levels_marks_and_what_is_needed() -> None:
    found = nodes(DIAMOND, {"a": Action.SKIP, "b": Action.RESTORE, "d": Action.STOP})
    assert graph_lines("demo", found) == [
        "job demo, 5 steps: 1 skip, 1 restore, 2 run, 1 stop",
        "1  = a  skip",
        "1  > e  run",
        "2  + b  restore < a",
        "2  > c  run     < a",
        "3  ! d  stop    < b c",
    ]
    assert set(MARKS) == set(Action)


def test_a_plan_of_some_steps_shows_those() -> None:
    steps = tuple(Step(name, "x", "sh", ROOT, needs=needed) for name, needed in DIAMOND.items())
    plan = Plan("j", (Decision("b", Action.RUN, Reason.SELECTED), Decision("d", Action.RUN, Reason.SELECTED)))
    assert [(node.id, node.needs, node.level) for node in nodes_of(Job("j", ROOT, steps), plan)] == [
        ("b", (), 1),
        ("d", ("b",), 2),
    ]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    names = [f"{number:03d}-{'x' * 96}" for number in range(60)]
    needs = {name: tuple(names[:number]) for number, name in enumerate(names)}
    lines = graph_lines("j" * 100, nodes(needs), width)
    assert max(map(len, lines)) <= width
    assert any("and" in line and "more" in line for line in lines)
    assert len(lines) <= 1 + 3 * 60


def test_a_thousand_steps_are_a_line_each() -> None:
    chain: dict[str, tuple[str, ...]] = {f"step-{n}": (f"step-{n - 1}",) if n else () for n in range(1000)}
    lines = graph_lines("j", nodes(chain))
    assert len(lines) == 1001
    assert lines[-1] == "1000  > step-999  run < step-998"


def test_shortened_texts_keep_both_ends() -> None:
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghijk", 10) == "abcd..hijk"
    assert [len(shortened("x" * 50, width)) for width in (0, 1, 7, 8, 49)] == [0, 1, 7, 8, 49]


def test_mermaid_numbers_its_nodes_so_that_no_id_is_a_word_of_its_own() -> None:
    assert mermaid_lines(nodes({"end": (), "b.c": ("end",)}, {"end": Action.SKIP})) == [
        "flowchart TD",
        '  s1["end<br/>skip: never-ran"]:::skip',
        '  s2["b.c<br/>run: never-ran"]:::run',
        "  s1 --> s2",
        "  classDef skip fill:#e6e9ed,stroke:#6e7781,color:#1f2328",
        "  classDef run fill:#dcfce7,stroke:#15803d,color:#052e16",
    ]


def test_one_step_is_one_step() -> None:
    assert summary(nodes({"a": ()})) == "1 step: 1 run"
