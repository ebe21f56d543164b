"""What another machine has done in this try of a run is taken as it is, as far as that is right."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.model import Action, ArchiveRef, Reason, Record, Status
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.runner.plan import plan_job
from checkpoint_action.runner.selection import Selection
from checkpoint_action.runner.settled import Settled, everywhere
from tests.runner.jobs import job, record, step

if TYPE_CHECKING:
    from pathlib import Path

KEYS = KeyScheme("content", "j", "10", "2", shared=True)


def told(**where: tuple[str, str]) -> dict[str, str]:
    """By step, the key of an archive of a run and an attempt."""
    return {
        name: replace(KEYS, run=run, attempt=attempt).new(name, 1_000_000) for name, (run, attempt) in where.items()
    }


def test_only_this_try_of_the_run_counts(tmp_path: Path) -> None:
    steps = [step(name, tmp_path) for name in ("a", "b", "c", "d", "e")]
    records = {one.id: record(one, tmp_path) for one in steps}
    records["d"] = record(steps[3], tmp_path, Status.FAILED)
    records["e"] = record(steps[4], tmp_path, Status.INTERRUPTED)
    where = told(a=("10", "2"), b=("10", "1"), c=("11", "2"), d=("10", "2"), e=("10", "2"))
    found = Settled.of(job(tmp_path, *steps), records, where | {"gone": where["a"]}, KEYS)
    assert found.done == {"a"}
    assert found.failed == {"d"}


def test_what_is_never_skipped_is_for_every_machine(tmp_path: Path) -> None:
    steps = [step("a", tmp_path, always=True), step("b", tmp_path), step("c", tmp_path)]
    records = {"b": replace(record(steps[1], tmp_path), withheld=("TOKEN",)), "c": record(steps[2], tmp_path)}
    assert everywhere(job(tmp_path, *steps), records) == {"a", "b"}
    records["b"] = replace(records["b"], status=Status.FAILED)
    assert everywhere(job(tmp_path, *steps), records) == {"a"}


RUN_BEFORE = {
    "input src": "0644 " + "0" * 64,
    "unmatched *.x": "missing",
    "value NAME": "f" * 64,
    "needs login": "of another machine",
}


@pytest.mark.parametrize(
    ("changes", "again"),
    [
        ({"input src": "0644 " + "0" * 64}, None),
        ({"unmatched *.x": "missing"}, None),
        ({"needs login": "of another machine"}, None),
        ({"needs up": "another result"}, Reason.NEEDS_CHANGED),
        ({"env A": "f" * 64}, Reason.ENV_CHANGED),
        ({"command": "f" * 64}, Reason.COMMAND_CHANGED),
    ],
)
def test_what_it_has_read_is_not_judged_again_but_what_it_is(
    tmp_path: Path, changes: dict[str, str], again: Reason | None
) -> None:
    login, up = step("login", tmp_path, always=True), step("up", tmp_path)
    one = step("one", tmp_path, needs=("login", "up"))
    records = {of.id: record(of, tmp_path) for of in (login, up)}
    needs = {name: records[name].result for name in ("login", "up")}
    done = record(one, tmp_path, needs=needs)
    records["one"] = _with_parts(done, changes)
    of = job(tmp_path, replace(login, always=False), up, one)

    def decision(settled: Settled) -> tuple[Action, Reason]:
        found = plan_job(of, records, {}, selection=Selection(settled=settled)).decisions[2]
        return found.action, found.reason

    assert decision(Settled())[0] is Action.RUN
    settled = Settled(done=frozenset({"one"}), everywhere=frozenset({"login"}))
    assert decision(settled) == ((Action.SKIP, Reason.DONE) if again is None else (Action.RUN, again))


def test_what_is_handed_on_counts_unless_it_may_come_from_a_step_for_every_machine(tmp_path: Path) -> None:
    one = step("one", tmp_path)
    records = {"one": _with_parts(record(one, tmp_path), {"value NAME": "f" * 64})}
    settled = Settled(done=frozenset({"one"}))
    kept = replace(records["one"], archive=ArchiveRef("key", "layer"))
    for known, action in ((settled, Action.RUN), (replace(settled, everywhere=frozenset({"login"})), Action.SKIP)):
        [found] = plan_job(job(tmp_path, one), {"one": kept}, {}, selection=Selection(settled=known)).decisions
        assert found.action is action


def _with_parts(done: Record, changes: dict[str, str]) -> Record:
    from checkpoint_action.runner.fingerprint import fingerprint  # noqa: PLC0415  # for this alone

    parts = {**done.parts, **changes}
    return replace(done, parts=parts, fingerprint=fingerprint(parts))
