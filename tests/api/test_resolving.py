"""Jobs written in Python: what becomes of them, and what is said of those that cannot be."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from checkpoint_action import Job, Retry, Step, model
from checkpoint_action.api.resolving import resolve_job
from checkpoint_action.errors import UsageError

ROOT = Path("/w").absolute()


def resolved(*steps: Step, **words: Any) -> model.Job:
    return resolve_job(Job("j", steps, **words), ROOT)


def test_a_step_gets_from_its_job_what_it_does_not_say() -> None:
    job = resolved(
        Step("a", "one"),
        Step(
            "b", "two", shell="sh", cwd="sub", env={"B": "2"}, pass_env="Q", timeout="1h", retry=0, wait_online="d.e:2"
        ),
        shell="python",
        cwd="base",
        env={"A": "1"},
        pass_env=["P"],
        timeout=90,
        idle_timeout=timedelta(minutes=2),
        retry=Retry(3, on=["timeout", 7], backoff="2s", backoff_max=0, jitter=True),
        wait_online="b.c:1",
        secrets=["S"],
        budget="2h",
        continue_on_error=True,
        max_failures=2,
    )
    one, two = job.steps
    assert (one.shell, one.cwd, one.timeout, one.idle_timeout) == ("python", ROOT / "base", 90.0, 120.0)
    assert (one.inherited_env, one.env, one.pass_env, one.wait_online) == ({"A": "1"}, {}, ("P",), "b.c:1")
    assert one.retry == model.Retry(3, ("timeout", 7), 2.0, 0.0, jitter=True)
    assert (two.shell, two.cwd, two.timeout, two.idle_timeout) == ("sh", ROOT / "sub", 3600.0, 120.0)
    assert (two.inherited_env, two.env, two.pass_env, two.wait_online) == ({"A": "1"}, {"B": "2"}, ("P", "Q"), "d.e:2")
    assert two.retry.max == 0
    assert (job.root, job.secrets, job.budget, job.continue_on_error, job.max_failures) == (ROOT, ("S",), 7200, True, 2)


def test_what_a_step_leaves_may_be_one_path_several_or_not_told() -> None:
    job = resolved(
        Step("a", "x", outputs="one"),
        Step("b", "x", outputs=[Path("p") / "q", "r"]),
        Step("c", "x", outputs="auto"),
        Step("d", "x", outputs=[]),
        Step("e", "x"),
    )
    assert [step.outputs for step in job.steps] == [("one",), (str(Path("p/q")), "r"), "auto", (), ()]
    assert [step.outputs_assumed for step in job.steps] == [False, False, False, False, True]


def test_steps_form_a_chain_unless_needs_says_otherwise_and_come_after_what_they_need() -> None:
    job = resolved(
        Step("a", "x"), Step("b", "x"), Step("c", "x", needs=()), Step("d", "x", needs="e"), Step("e", "x", needs=["c"])
    )
    assert [(step.id, step.needs) for step in job.steps] == [
        ("a", ()),
        ("b", ("a",)),
        ("c", ()),
        ("e", ("c",)),
        ("d", ("e",)),
    ]


@pytest.mark.parametrize(
    ("steps", "words", "said"),
    [
        ([], {}, "job 'j' has no steps"),
        ([Step("a b", "x")], {}, "step id 'a b' is not valid"),
        ([Step("a", " ")], {}, "step 'a' has an empty command"),
        ([Step("a", "x\0")], {}, "step 'a': the command holds a NUL"),
        ([Step("a", "x"), Step("A", "x")], {}, "step id 'A' is there twice"),
        ([Step("a", "x", needs="z")], {}, "step 'a' needs 'z', which is no step; the ids are a"),
        ([Step("a", "x", needs="b"), Step("b", "x", needs="a")], {}, "steps need each other in a circle"),
        ([Step("a", "x", shell="fish")], {}, "step 'a': shell: unknown shell 'fish'"),
        ([Step("a", "x", timeout="soon")], {}, "step 'a': timeout: 'soon' is not a duration"),
        ([Step("a", "x", timeout=0)], {}, "step 'a': timeout: '0.0' leaves no time at all"),
        ([Step("a", "x", idle_timeout=float("nan"))], {}, "step 'a': idle_timeout: 'nan' is not a duration"),
        ([Step("a", "x", retry=-1)], {}, "step 'a': retry must be a whole number from 0, not '-1'"),
        ([Step("a", "x", retry=Retry(on=["never"]))], {}, "step 'a': retry: on: 'never' is neither"),  # type: ignore[list-item]
        ([Step("a", "x", wait_online="nowhere")], {}, "step 'a': wait_online: 'nowhere' is not HOST:PORT"),
        ([Step("a", "x", env={"A B": "c"})], {}, "step 'a': env: 'A B' cannot be the name of a variable"),
        ([Step("a", "x", pass_env="S")], {"secrets": "S"}, "step 'a': pass_env: 'S' is among the secrets"),
        ([Step("a", "x")], {"secrets": "S", "pass_env": "S"}, "pass_env: 'S' is among the secrets"),
        ([Step("a", "x", outputs="")], {}, "step 'a': outputs: an empty path"),
        ([Step("a", "x", inputs=["!x"])], {}, "step 'a': inputs has only what to leave out"),
        ([Step("a", "x", leftovers="eat")], {}, "step 'a': leftovers must be leave or kill"),  # type: ignore[arg-type]
        ([Step("a", "x", log="l"), Step("b", "x", log="./l")], {}, "steps 'a' and 'b' would write the same log"),
        ([Step("a", "x")], {"max_failures": 0}, "max_failures must be a whole number from 1"),
        ([Step("a", "x")], {"budget": "0"}, "budget: '0' leaves no time at all"),
    ],
    ids=lambda value: repr(value)[:50],
)
def test_a_job_that_cannot_be_is_an_error_that_says_what_to_do(
    steps: list[Step], words: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        resolved(*steps, **words)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)


def test_a_name_that_cannot_be_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"job name '\.\./up' is not valid"):
        resolve_job(Job("../up", [Step("a", "x")]), ROOT)
