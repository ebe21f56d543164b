"""Who gets what the steps hand on, and what of it counts."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoint_action.model import Job, Step, Values
from checkpoint_action.runner.ancestry import Ancestry
from checkpoint_action.runner.handed_on import HandedOn, Seen, check_values

ROOT = Path.cwd()


def job(*needs: tuple[int, ...], in_order: bool = False) -> Job:
    steps = [Step(str(number), "x", "sh", ROOT, needs=tuple(map(str, of))) for number, of in enumerate(needs)]
    return Job("job", ROOT, tuple(steps), in_order=in_order)


def handing(of: Job) -> HandedOn:
    """Each step sets a variable with its own name, and all set one."""
    handed = HandedOn(of, Ancestry(of))
    for position, step in enumerate(of.steps):
        handed.put(position, Values({f"S{step.id}": "1", "LAST": step.id}, (f"/{step.id}",), {"v": step.id}))
    return handed


def seen(of: Job, position: int) -> Seen:
    return handing(of).seen_by(of.steps[position])


def test_a_step_sees_all_that_it_needs_directly_or_through_others() -> None:
    found = seen(job((), (0,), (1,), (), (2, 3)), 2)
    assert found == Seen({"S0": "1", "S1": "1", "LAST": "1"}, ("/0", "/1"), {"0": {"v": "0"}, "1": {"v": "1"}})


def test_a_step_sees_nothing_of_what_it_does_not_need() -> None:
    assert seen(job((), (0,), ()), 2) == Seen()


def test_in_a_job_without_needs_a_step_sees_all_before_it() -> None:
    assert list(seen(job((), (), (), in_order=True), 1).outputs) == ["0"]


def test_of_two_values_of_one_name_the_later_steps_counts() -> None:
    assert seen(job((), (0,), (0,), (1, 2)), 3).env["LAST"] == "2"


def test_a_folder_given_again_moves_to_the_end() -> None:
    of = job((), (0,), (1,))
    handed = HandedOn(of, Ancestry(of))
    handed.put(0, Values(path=("/a", "/b")))
    handed.put(1, Values(path=("/a",)))
    assert handed.seen_by(of.steps[2]).path == ("/b", "/a")


def reached(of: Job, position: int) -> set[str]:
    """The steps that a step needs, directly or through others, found the plain way."""
    found: set[str] = set()
    todo = [str(position)]
    while todo:
        for need in of.steps[int(todo.pop())].needs:
            if need not in found:
                found.add(need)
                todo.append(need)
    return found


@pytest.mark.parametrize("seed", range(40))
def test_whatever_the_graph_exactly_the_needed_steps_are_seen(seed: int) -> None:
    draw = random.Random(seed)
    needs = [
        tuple(sorted(draw.sample(range(number), min(number, draw.randint(0, 3)))))
        if draw.random() < 0.5
        # long stretches in which each needs the one before
        else ((number - 1,) if number else ())
        for number in range(25)
    ]
    of = job(*needs)
    handed = handing(of)
    for position, step in enumerate(of.steps):
        assert set(handed.seen_by(step).outputs) == reached(of, position)


def test_what_a_step_handed_on_before_is_gone_when_it_hands_on_nothing_now() -> None:
    of = job((), (0,))
    handed = handing(of)
    handed.put(0, Values())
    assert handed.seen_by(of.steps[1]) == Seen()


def test_secrets_are_seen_but_do_not_count() -> None:
    of = job((), (0,))
    handed = HandedOn(of, Ancestry(of))
    handed.put(0, Values({"A": "1"}), Values({"A": "1", "TOKEN": "s3cret"}))
    assert handed.seen_by(of.steps[1], secret=True).env == {"A": "1", "TOKEN": "s3cret"}
    assert list(handed.seen_by(of.steps[1]).parts(of.steps[1])) == ["value A"]
    assert handed.of(0, Values()).env["TOKEN"] == "s3cret"


def test_outputs_are_variables_where_the_names_allow_it() -> None:
    found = Seen(outputs={"build-it": {"the.version": "1"}, "a-b": {"c": "1"}, "a_b": {"c": "2"}})
    assert found.variables() == {"STEPS_BUILD_IT_OUTPUTS_THE_VERSION": "1"}
    assert json.loads(found.document())["a_b"] == {"outputs": {"c": "2"}}


def test_each_value_counts_under_its_own_name_and_by_digest() -> None:
    step = Step("b", "x", "sh", ROOT)
    parts = Seen({"A": "s"}, ("/p",), {"a": {"v": "1"}}).parts(step)
    assert set(parts) == {"value A", "value $GITHUB_PATH", "value steps.a.outputs.v"}
    assert all(len(value) == 64 for value in parts.values())


def test_a_variable_that_the_step_sets_itself_does_not_count() -> None:
    step = replace(Step("b", "x", "sh", ROOT), env={"A": "mine"})
    assert Seen({"A": "theirs"}).parts(step) == {}


def test_very_many_values_count_as_one() -> None:
    step = Step("b", "x", "sh", ROOT)
    many = {f"V{number}": "1" for number in range(200)}
    parts = Seen(many).parts(step)
    assert len(parts) == 1
    assert Seen(many | {"V7": "2"}).parts(step) != parts


@pytest.mark.parametrize(
    "values",
    [
        Values(env={"A": "x\0y"}),
        Values(env={"A\0": "x"}),
        Values(env={"A=B": "x"}),
        Values(env={"": "x"}),
        Values(env={"A": "\ud800"}),
        Values(outputs={"v": "\ud800"}),
        Values(path=("/a\0b",)),
        Values(summary="\ud800"),
    ],
)
def test_values_from_elsewhere_that_no_step_can_hand_on_are_refused(values: Values) -> None:
    with pytest.raises(ValueError, match=r"hand on|surrogates"):
        check_values(values)


def test_values_that_a_step_can_hand_on_are_let_through() -> None:
    check_values(Values({"A": "bytes \udcff", "B": ""}, ("/a b",), {"v": "x=y\nz"}, "# done\n"))
