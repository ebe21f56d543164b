"""One job on several machines: each runs a step, finds what it needs of the others, and adds its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.action.archives import Held
    from tests.action.machine import Workflow
    from tests.action.running import Ended

pytestmark = pytest.mark.slow  # each has several machines

STEPS = """\
- {id: a, needs: [], run: 'mkdir -p out; echo a > out/a; echo ran >> "$KEEP/a"; echo "NAME=from a" >> "$GITHUB_ENV"'}
- id: b
  needs: []
  run: |
    mkdir -p out; echo b > out/b; rm README
    echo ran >> "$KEEP/b"; echo "n=1" >> "$GITHUB_OUTPUT"
- id: edit
  needs: [a]
  run: |
    test "$NAME" = "from a"
    ! test -e out/b || test $GITHUB_JOB != leg
    echo more >> out/a; echo ran >> "$KEEP/edit"
- {id: drop, needs: [b], run: 'rm out/b; echo b > kept; echo ran >> "$KEEP/drop"'}
- id: all
  needs: [edit, drop]
  run: |
    cat out/a kept > all; test ! -e out/b; test ! -e README
    test "$STEPS_B_OUTPUTS_N" = 1; echo ran >> "$KEEP/all"
"""


class Fan:
    """A job that is run as the reusable workflow does."""

    def __init__(self, workflow: Workflow, steps: str = STEPS, **inputs: str) -> None:
        workflow.sources = {"README": "read me\n", "src/main.c": "int main;\n"}
        self.workflow = workflow
        self.steps = steps
        self.inputs = {"share": "demo"} | inputs
        self.attempt = 1

    def use(self, job: str, **inputs: str) -> Ended:
        """A workflow job of its own, on a machine of its own."""
        machine = self.workflow.machine()
        machine.attempt = self.attempt
        return machine.run(self.steps, env={"GITHUB_JOB": job}, use=job, **self.inputs, **inputs)

    def plan(self) -> Ended:
        return self.use("plan", mode="plan")

    def leg(self, step: str, **inputs: str) -> Ended:
        return self.use("leg", only=step, matrix=json.dumps({"step": step}), **inputs)

    def gather(self, **inputs: str) -> Ended:
        return self.use("gather", **inputs)

    def level(self) -> list[str]:
        """Plan, and run what it tells; the steps."""
        planned = self.plan()
        assert planned.code == 0, planned.log
        steps = legs(planned)
        for step in steps:
            leg = self.leg(step)
            assert leg.code == 0, leg.log
            assert leg.outputs["ran"] == [step], leg.log
        return steps


def legs(planned: Ended) -> list[str]:
    matrix: Any = planned.outputs["matrix"]
    assert list(matrix) == ["include"]
    assert planned.outputs["pending"] is bool(matrix["include"])
    return [one["step"] for one in matrix["include"]]


def test_a_graph_is_run_level_by_level_and_gathered(workflow: Workflow) -> None:
    fan = Fan(workflow)
    first = fan.plan()
    assert (legs(first), first.outputs["levels"], first.outputs["result"]) == (["a", "b"], 3, "success")
    assert "\n".join(line for line in first.log.splitlines() if "matrix" in line) == ""
    assert [fan.level() for _ in range(4)] == [["a", "b"], ["edit", "drop"], ["all"], []]
    last = fan.gather()
    assert last.code == 0, last.log
    assert (last.outputs["result"], last.outputs["ran"]) == ("success", [])
    assert last.outputs["restored"] == ["a", "b", "edit", "drop", "all"]
    assert last.outputs["outputs"] == {"b": {"n": "1"}}
    assert last.env == {"NAME": "from a"}
    assert (last.workspace / "all").read_text() == "a\nmore\nb\n"
    assert not (last.workspace / "out/b").exists()
    assert not (last.workspace / "README").exists()
    for step in ("a", "b", "edit", "drop", "all"):
        assert workflow.kept(step) == ["ran"]


def test_a_plan_runs_fetches_and_stores_nothing(workflow: Workflow) -> None:
    fan = Fan(workflow)
    assert fan.level() == ["a", "b"]
    before = len(workflow.service.requests)
    planned = fan.plan()
    asked = [one.target.rpartition("/")[2] for one in workflow.service.requests[before:]]
    assert asked.count("CreateCacheEntry") == 0
    assert planned.outputs["skipped"] == ["a", "b"]
    assert not (planned.workspace / "out").exists()
    assert (planned.workspace / "README").exists()


def test_jobs_that_do_not_share_never_meet(workflow: Workflow) -> None:
    fan = Fan(workflow)
    fan.leg("a")
    fan.inputs["share"] = "another"
    assert legs(fan.plan()) == ["a", "b"]


def test_a_failed_step_is_not_tried_again_before_the_next_attempt(workflow: Workflow) -> None:
    steps = STEPS.replace("rm out/b;", "test $GITHUB_RUN_ATTEMPT -gt 1; rm out/b;")
    fan = Fan(workflow, steps)
    assert fan.level() == ["a", "b"]
    assert legs(fan.plan()) == ["edit", "drop"]
    failed = fan.leg("drop")
    assert (failed.code, failed.outputs["failed"]) == (1, ["drop"])
    assert fan.leg("edit").code == 0
    assert legs(fan.plan()) == [], "'all' needs it"
    fan.attempt = 2
    again = fan.leg("drop")  # "Re-run failed jobs": its level is not planned again
    assert (again.code, again.outputs["ran"], again.outputs["restored"]) == (0, ["drop"], ["b"])
    assert [fan.level() for _ in range(2)] == [["all"], []]
    assert fan.gather().outputs["ran"] == []
    for step in ("a", "b", "edit", "drop", "all"):
        assert workflow.kept(step) == ["ran"]


def test_a_leg_that_is_started_again_runs_nothing_twice(workflow: Workflow) -> None:
    fan = Fan(workflow)
    assert fan.leg("a").outputs["ran"] == ["a"]
    again = fan.leg("a")
    assert (again.code, again.outputs["ran"], again.outputs["restored"]) == (0, [], ["a"])


def test_what_a_leg_needs_and_cannot_have_runs_there(workflow: Workflow, held: Held) -> None:
    fan = Fan(workflow)
    fan.leg("a")
    fan.leg("b")
    for entry in held.entries:
        if held.header(entry)["records"].keys() == {"a"}:
            held.evict(entry)
    leg = fan.leg("edit")
    assert leg.code == 0, leg.log
    assert leg.outputs["ran"] == ["a", "edit"]
    assert workflow.kept("a") == ["ran", "ran"]
    assert legs(fan.plan()) == ["drop"]


def test_a_plan_sees_that_an_archive_is_gone(workflow: Workflow, held: Held) -> None:
    fan = Fan(workflow)
    fan.leg("a")
    fan.leg("edit")
    first = next(entry for entry in held.entries if held.header(entry)["records"].keys() == {"a"})
    held.evict(first)
    fan.attempt = 2
    assert "a" in legs(fan.plan())


ALWAYS = """\
- {id: login, needs: [], always: true, outputs: [], run: 'echo "TOKEN=$RANDOM$RANDOM" >> "$GITHUB_ENV"'}
- {id: one, needs: [login], run: 'test -n "$TOKEN"; echo 1 > one; echo ran >> "$KEEP/one"'}
- {id: two, needs: [login, one], run: 'test -n "$TOKEN"; cat one > two; echo ran >> "$KEEP/two"'}
"""


def test_what_runs_always_runs_on_each_machine_that_needs_it_and_has_none_of_its_own(workflow: Workflow) -> None:
    fan = Fan(workflow, ALWAYS)
    for step in ("one", "two"):
        assert legs(fan.plan()) == [step]
        leg = fan.leg(step)
        assert (leg.code, leg.outputs["ran"]) == (0, ["login", step]), leg.log
    assert legs(fan.plan()) == []
    last = fan.gather()
    assert (last.outputs["ran"], last.outputs["restored"]) == (["login"], ["one", "two"]), last.log
    assert (workflow.kept("one"), workflow.kept("two")) == (["ran"], ["ran"])


SECRET = """\
- id: login
  needs: []
  outputs: []
  run: |
    echo ran >> "$KEEP/login"
    echo "::add-mask::hidden-$GITHUB_JOB"
    echo "TOKEN=hidden-$GITHUB_JOB" >> "$GITHUB_ENV"
- {id: one, needs: [login], run: 'test "$TOKEN" = "hidden-leg"; echo 1 > one; echo ran >> "$KEEP/one"'}
- {id: two, needs: [one, login], run: 'test "$TOKEN" = "hidden-leg"; cat one > two; echo ran >> "$KEEP/two"'}
"""


def test_what_hands_on_a_secret_runs_again_where_it_is_needed(workflow: Workflow) -> None:
    fan = Fan(workflow, SECRET)
    assert legs(fan.plan()) == ["login"]
    assert fan.leg("login").code == 0
    for step in ("one", "two"):
        assert legs(fan.plan()) == [step]
        assert fan.leg(step).outputs["ran"] == ["login", step]
    assert legs(fan.plan()) == []
    assert (workflow.kept("one"), workflow.kept("two")) == (["ran"], ["ran"])


READS = """\
- {id: gen, needs: [], run: 'mkdir gen; echo 1 > gen/x; echo ran >> "$KEEP/gen"'}
- {id: other, needs: [], run: 'mkdir gen; echo 2 > gen/y; echo ran >> "$KEEP/other"'}
- {id: use, needs: [gen], inputs: ['gen/**'], run: 'cat gen/* > used; echo ran >> "$KEEP/use"'}
- {id: last, needs: [use, other], run: 'cat used gen/* > last; echo ran >> "$KEEP/last"'}
"""


def test_inputs_that_other_steps_make_count_as_they_were(workflow: Workflow) -> None:
    fan = Fan(workflow, READS)
    assert [fan.level() for _ in range(4)] == [["gen", "other"], ["use"], ["last"], []]
    assert fan.gather().outputs["ran"] == [], "use reads what 'other' leaves without needing it: there was none of it"
    fan.attempt = 2
    planned = fan.plan()
    assert legs(planned) == [], planned.log
    assert (planned.workspace / "gen/x").read_text() == "1\n", "what is read has to be there for the plan"
    assert not (planned.workspace / "gen/y").exists()
    last = fan.gather()
    assert (last.outputs["ran"], last.outputs["restored"]) == ([], ["gen", "other", "use", "last"]), last.log
    for step in ("gen", "other", "use", "last"):
        assert workflow.kept(step) == ["ran"]


def test_a_changed_step_runs_again_with_what_follows_it(workflow: Workflow) -> None:
    fan = Fan(workflow)
    for _ in range(3):
        fan.level()
    fan.attempt = 2
    fan.steps = STEPS.replace("echo more", "echo much more")
    assert [fan.level() for _ in range(3)] == [["edit"], ["all"], []]
    assert (fan.gather().workspace / "all").read_text() == "a\nmuch more\nb\n"


def test_what_levels_did_not_reach_runs_in_order_where_all_is_gathered(workflow: Workflow) -> None:
    fan = Fan(workflow)
    assert fan.level() == ["a", "b"]
    last = fan.gather()
    assert (last.code, last.outputs["restored"], last.outputs["ran"]) == (0, ["a", "b"], ["edit", "drop", "all"]), (
        last.log
    )
    assert (last.workspace / "all").read_text() == "a\nmore\nb\n"
    assert legs(fan.plan()) == []


def test_without_a_store_everything_runs_in_the_last_job(workflow: Workflow) -> None:
    fan = Fan(workflow, store="none")
    planned = fan.plan()
    assert (planned.code, legs(planned), planned.outputs["levels"]) == (0, [], 0)
    assert any("without a store" in text for text in planned.warnings)


def test_other_runs_with_other_contents_do_not_take_a_steps_place(workflow: Workflow) -> None:
    """Case: scope content, and a run of another commit ends a step between this run's levels."""
    steps = """\
- {id: a, needs: [], inputs: [src/main.c], run: 'cp src/main.c a; echo ran >> "$KEEP/a"'}
- {id: b, needs: [a], inputs: [], run: 'cat a > b; echo ran >> "$KEEP/b"'}
"""
    fan = Fan(workflow, steps, scope="content", store="cache")
    assert fan.level() == ["a"]
    workflow.run_id = "78"
    workflow.sources = {"src/main.c": "another\n"}
    assert fan.level() == ["a"]
    workflow.run_id = "77"
    workflow.sources = {"src/main.c": "int main;\n"}
    assert fan.level() == ["b"]
    assert (fan.gather().workspace / "b").read_text() == "int main;\n"
    assert workflow.kept("a") == ["ran", "ran"]


def test_needed_alone_is_put_back_where_that_is_asked_for(workflow: Workflow) -> None:
    steps = """\
- {id: big, needs: [], run: 'echo big > big; echo ran >> "$KEEP/big"'}
- {id: lib, needs: [], run: 'echo lib > lib; echo ran >> "$KEEP/lib"; echo "LIB=1" >> "$GITHUB_ENV"'}
- {id: doc, needs: [big], run: 'echo doc > doc; echo ran >> "$KEEP/doc"'}
- {id: use, needs: [lib], run: 'cat lib; test ! -e big; test "$LIB" = 1; test $GITHUB_RUN_ATTEMPT -gt 1'}
"""
    first = workflow.run(steps.replace("test ! -e big; ", ""), store="cache")
    assert first.outputs["failed"] == ["use"]
    second = workflow.run(steps, store="cache", restore="needed")
    assert second.code == 0, second.log
    assert (second.outputs["restored"], second.outputs["skipped"]) == (["lib"], ["big", "doc"])
    assert not (second.workspace / "big").exists()
    third = workflow.run(steps, store="cache", restore="needed")
    assert (third.code, third.outputs["restored"], third.outputs["ran"]) == (0, [], [])
    assert third.outputs["skipped"] == ["big", "lib", "doc", "use"]
    assert third.env == {"LIB": "1"}
    fourth = workflow.run(steps, store="cache")
    assert fourth.outputs["restored"] == ["big", "lib", "doc"]
    for step in ("big", "lib", "doc"):
        assert workflow.kept(step) == ["ran"]


BUMP = """\
- {id: bump, needs: [], run: 'echo 2 >> VERSION; echo ran >> "$KEEP/bump"'}
- {id: rest, needs: [], run: 'cp VERSION rest; echo ran >> "$KEEP/rest"'}
- {id: pack, needs: [bump], run: 'cp VERSION pack; echo ran >> "$KEEP/pack"'}
- {id: all, needs: [pack, rest], run: 'cat rest pack > all; echo ran >> "$KEEP/all"'}
"""


def test_a_step_is_judged_by_what_it_can_see_and_not_by_what_others_made_of_the_sources(workflow: Workflow) -> None:
    """Case: all that git tracks counts, and a step that most do not need changes some of it."""
    fan = Fan(workflow, BUMP, scope="content", store="cache")
    workflow.sources = {"VERSION": "1\n"}
    workflow.commit_sources()
    assert [fan.level() for _ in range(4)] == [["bump", "rest"], ["pack"], ["all"], []]
    assert fan.gather().outputs["ran"] == []
    workflow.run_id = "78"
    planned = fan.plan()
    assert legs(planned) == [], planned.log
    last = fan.gather()
    assert last.outputs["ran"] == [], last.log
    assert (last.workspace / "all").read_text() == "1\n1\n2\n"
    assert (last.workspace / "VERSION").read_text() == "1\n2\n"
    workflow.sources = {"VERSION": "1.1\n"}
    workflow.commit_sources()
    workflow.run_id = "79"
    assert [fan.level() for _ in range(4)] == [["bump", "rest"], ["pack"], ["all"], []]


def test_a_step_that_was_stopped_by_the_budget_is_on_the_next_level_again(workflow: Workflow) -> None:
    steps = """\
- id: long
  needs: []
  partial: [half]
  run: if [ -e half ]; then cp half whole; else echo half > half; sleep 60; fi
"""
    fan = Fan(workflow, steps)
    assert legs(fan.plan()) == ["long"]
    leg = fan.leg("long", budget="4s")
    assert (leg.code, leg.outputs["result"]) == (0, "incomplete"), leg.log
    assert legs(fan.plan()) == ["long"]
    assert fan.leg("long").outputs["ran"] == ["long"]
    assert legs(fan.plan()) == []


def test_of_two_steps_that_change_one_file_the_later_counts(workflow: Workflow) -> None:
    steps = """\
- {id: one, needs: [], run: 'echo one >> README; echo ran >> "$KEEP/one"'}
- {id: two, needs: [], run: 'echo two >> README; echo ran >> "$KEEP/two"'}
"""
    fan = Fan(workflow, steps)
    assert fan.level() == ["one", "two"]
    last = fan.gather()
    assert (last.code, last.outputs["ran"]) == (0, []), last.log
    assert (last.workspace / "README").read_text() == "read me\ntwo\n"


def test_in_a_store_of_ones_own_too(workflow: Workflow) -> None:
    fan = Fan(workflow, store=(workflow.folder / "own").as_uri())
    assert [fan.level() for _ in range(4)] == [["a", "b"], ["edit", "drop"], ["all"], []]
    assert (fan.gather().workspace / "all").read_text() == "a\nmore\nb\n"


def test_in_artifacts_too(workflow: Workflow) -> None:
    fan = Fan(workflow, store="artifact")
    assert [fan.level() for _ in range(4)] == [["a", "b"], ["edit", "drop"], ["all"], []]
    assert (fan.gather().workspace / "all").read_text() == "a\nmore\nb\n"


SURPRISE = """\
- {id: y, needs: [], run: 'echo y > y; echo ran >> "$KEEP/y"'}
- {id: a, needs: [], run: 'echo "$GITHUB_RUN_ATTEMPT" > a'}
- {id: z, needs: [a, y], run: 'cat a y > z'}
- {id: p, needs: [a], run: 'cat a; test $GITHUB_RUN_ATTEMPT -gt 1'}
"""


def not_what_it_says(held: Held, *steps: str) -> None:
    """Let what is kept of steps be something else than is on record."""

    def change(header: dict[str, Any]) -> None:
        for step in steps:
            header["records"][step]["layer"]["entries"][0]["sha256"] = "0" * 64

    held.forge(change)


def test_what_was_left_is_put_back_where_it_is_needed_after_all(workflow: Workflow, held: Held) -> None:
    assert workflow.run(SURPRISE, store="cache").outputs["failed"] == ["p"]
    not_what_it_says(held, "a")
    second = workflow.run(SURPRISE, store="cache", restore="needed")
    assert second.code == 0, second.log
    assert second.outputs["ran"] == ["a", "z", "p"]
    assert (second.workspace / "z").read_text() == "2\ny\n"
    assert workflow.kept("y") == ["ran"]


def test_a_step_does_not_run_without_what_it_needs_and_the_next_run_puts_that_right(
    workflow: Workflow, held: Held
) -> None:
    assert workflow.run(SURPRISE, store="cache").outputs["failed"] == ["p"]
    not_what_it_says(held, "a", "y")
    second = workflow.run(SURPRISE, store="cache", restore="needed")
    assert (second.code, second.outputs["ran"]) == (1, ["a", "p"]), second.log
    assert "'y' cannot be put back" in second.log
    third = workflow.run(SURPRISE, store="cache", restore="needed")
    assert third.code == 0, third.log
    assert third.outputs["ran"] == ["y", "z"]
    assert (third.workspace / "z").read_text() == "2\ny\n"


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({"mode": "plan"}, "input mode: plan needs the input share"),
        ({"only": "a"}, "input only needs the input share"),
        ({"mode": "plan", "only": "a", "share": "x"}, "leave one of them out"),
        ({"only": "al", "share": "x"}, "no step has this id; did you mean 'all'?"),
        ({"mode": "plam"}, "did you mean 'plan'?"),
        ({"only": "a", "share": "x", "force": "true"}, "input force"),
        ({"only": "a", "share": "x", "cleanup": "on-success"}, "input cleanup"),
        ({"restore": "some"}, "input restore"),
    ],
)
def test_inputs_that_do_not_go_together_are_refused(workflow: Workflow, inputs: dict[str, str], said: str) -> None:
    ended = workflow.run(STEPS, **inputs)
    assert ended.code == 2
    assert said in ended.errors[0]
    assert (ended.outputs["pending"], ended.outputs["matrix"]) == (False, {"include": []})
