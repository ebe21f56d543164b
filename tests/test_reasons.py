"""Every reason of the closed list: the smallest change that causes it, what a plan says, and that a run does so."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import TornError
from checkpoint_action.model import Action, Reason
from checkpoint_action.runner import events, uploads
from checkpoint_action.runner.checkpoints import Checkpoints
from checkpoint_action.runner.engine import Engine
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.runner.plan import plan_job
from checkpoint_action.runner.run_options import RunOptions
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.runner.stop import StopRequest
from tests.console import Console, lines_of
from tests.runner.jobs import job, step
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from checkpoint_action.model import Step

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(90),
]

# `b` needs `a`; `c` is independent of both and leaves a file. Whatever runs leaves its letter in `ran`.
JOB = """\
job: j
pass-env: [OUTSIDE]
steps:
- {id: a, run: echo a >>ran, inputs: [in.txt], env: {V: '1'}}
- {id: b, run: echo b >>ran}
- id: c
  needs: []
  run: |
    echo c >>ran
    if test -e fails; then exit 3; fi
    if test -e hangs; then sleep 60; fi
    echo made >c.out
  outputs: [c.out]
"""


class World:
    """The job, and what a change does to it.

    :ivar words: of the plan and of the run that follow the change.
    :ivar env: of both.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.root = console.folder
        self.words: tuple[str, ...] = ()
        self.env: dict[str, str] = {}
        (self.root / "in.txt").write_text("1")
        (self.root / "checkpoint.yml").write_text(JOB)

    def edit(self, old: str, new: str) -> None:
        """Change the job file."""
        text = (self.root / "checkpoint.yml").read_text()
        assert text.count(old) == 1
        (self.root / "checkpoint.yml").write_text(text.replace(old, new))

    def move_to_a_folder(self, name: str) -> None:
        """Have a step run in a folder of its own."""
        (self.root / "sub").mkdir()
        (self.root / "sub/ran").symlink_to("../ran")
        self.edit(f"id: {name},", f"id: {name}, working-directory: sub,")

    def first_run(self, *words: str) -> None:
        """Run it as it is."""
        self.console.run("--quiet", *words, env=self.env)
        (self.root / "ran").unlink()

    def first_run_with(self, file: str, *words: str) -> None:
        """Run it with a file that makes `c` fail or hang."""
        (self.root / file).touch()
        self.first_run(*words)
        (self.root / file).unlink()

    def plan(self) -> list[dict[str, str]]:
        shown = self.console.run("plan", "--json", *self.words, env=self.env)
        assert (shown.returncode, shown.stderr) == (0, "")
        steps: list[dict[str, str]] = json.loads(shown.stdout)["steps"]
        return steps

    def run(self) -> list[dict[str, Any]]:
        ended = self.console.run("--json", "--quiet", *self.words, env=self.env)
        assert ended.returncode == 0, ended.stderr
        return lines_of(ended.stdout)

    def ran(self) -> str:
        file = self.root / "ran"
        return file.read_text().replace("\n", "") if file.exists() else ""


SKIP = ("skip", "done", "")


@dataclass(frozen=True, slots=True)
class Row:
    """One change.

    :param name: of the test.
    :param reason: what it is about.
    :param step: the step that has this reason; all others are skipped, unless ``others`` says more.
    :param detail: what the plan says of it, in full or (with an ellipsis) by its beginning.
    :param action: what becomes of it.
    :param change: made after a first run, or instead of it where ``first`` says so.
    :param first: the first run; the usual one ends well.
    :param others: reasons of other steps that the change reaches.
    """

    name: str
    reason: Reason
    step: str
    detail: str
    action: Action = Action.RUN
    change: Callable[[World], object] = lambda _world: None
    first: Callable[[World], object] = World.first_run
    others: dict[str, Reason] = field(default_factory=dict)


def set_words(*words: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.words = words

    return change


def set_outside(value: str) -> Callable[[World], None]:
    def change(world: World) -> None:
        world.env["OUTSIDE"] = value

    return change


def hand_on_a_secret(world: World) -> None:
    world.edit("steps:", "secrets: [TOKEN]\nsteps:")
    world.edit("    echo made >c.out", '    echo made >c.out\n    echo "T=$TOKEN" >>"$GITHUB_OUTPUT"')
    world.env["TOKEN"] = "hunter2hunter2"
    world.first_run()


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


WAVE = {"b": Reason.NEEDS_CHANGED}
ONE, TWO = "6b86b273ff34", "d4735e3a265e"  # SHA-256 of "1" and "2"

ROWS = [
    Row("nothing", Reason.DONE, "a", "", Action.SKIP),
    Row(
        "a new step",
        Reason.NEVER_RAN,
        "d",
        "",
        change=lambda w: append(w.root / "checkpoint.yml", "- {id: d, needs: [], run: echo d >>ran}\n"),
    ),
    Row(
        "a failure",
        Reason.FAILED_BEFORE,
        "c",
        "it ended with exit code 3",
        first=lambda w: w.first_run_with("fails"),
    ),
    Row(
        "a time limit",
        Reason.TIMED_OUT_BEFORE,
        "c",
        "it took longer than its 0.5 s",
        first=lambda w: w.first_run_with("hangs", "--step-timeout", "c:0.5"),
    ),
    Row(
        "a used-up budget",
        Reason.INTERRUPTED_BEFORE,
        "c",
        "the run's budget was used up",
        first=lambda w: w.first_run_with("hangs", "--budget", "4"),
    ),
    Row(
        "the command",
        Reason.COMMAND_CHANGED,
        "a",
        "echo a >>ran → echo a >> ran",
        change=lambda w: w.edit("echo a >>ran", "echo a >> ran"),
        others=WAVE,
    ),
    Row(
        "white space in the command",
        Reason.COMMAND_CHANGED,
        "a",
        "echo a >>ran → the same with other white space",
        change=lambda w: w.edit("echo a >>ran", "echo  a >>ran"),
        others=WAVE,
    ),
    Row(
        "the shell",
        Reason.COMMAND_CHANGED,
        "a",
        "shell: bash → sh",
        change=lambda w: w.edit("id: a,", "id: a, shell: sh,"),
        others=WAVE,
    ),
    Row(
        "the folder",
        Reason.COMMAND_CHANGED,
        "b",
        "working-directory: . → sub",
        change=lambda w: w.move_to_a_folder("b"),
    ),
    Row(
        "a declared variable",
        Reason.ENV_CHANGED,
        "a",
        f"V: value {ONE[:8]} → value {TWO[:8]}",
        change=lambda w: w.edit("V: '1'", "V: '2'"),
        others=WAVE,
    ),
    Row(
        "an outside variable",
        Reason.ENV_CHANGED,
        "a",
        f"OUTSIDE: unset → value {ONE[:8]}",
        change=set_outside("1"),
        others={"b": Reason.ENV_CHANGED, "c": Reason.ENV_CHANGED},
    ),
    Row(
        "an input's content",
        Reason.INPUTS_CHANGED,
        "a",
        f"in.txt: 0644 sha256 {ONE} → 0644 sha256 {TWO}",
        change=lambda w: (w.root / "in.txt").write_text("2"),
        others=WAVE,
    ),
    Row(
        "an input's mode",
        Reason.INPUTS_CHANGED,
        "a",
        "in.txt: mode 0644 → 0755",
        change=lambda w: (w.root / "in.txt").chmod(0o755),
        others=WAVE,
    ),
    Row(
        "an input that is gone",
        Reason.INPUTS_CHANGED,
        "a",
        f"in.txt: 0644 sha256 {ONE} → not there, or no input any more",
        change=lambda w: (w.root / "in.txt").unlink(),
        others=WAVE,
    ),
    Row(
        "what a need leaves",
        Reason.NEEDS_CHANGED,
        "b",
        "a: …",
        change=lambda w: (w.root / "in.txt").write_text("2"),
        others={"a": Reason.INPUTS_CHANGED},
    ),
    Row(
        "one need fewer",
        Reason.NEEDS_CHANGED,
        "b",
        "a: …",
        change=lambda w: w.edit("id: b,", "id: b, needs: [],"),
    ),
    Row("an output that is gone", Reason.OUTPUT_MISSING, "c", "c.out", change=lambda w: (w.root / "c.out").unlink()),
    Row(
        "an output's content",
        Reason.OUTPUT_CHANGED,
        "c",
        "c.out: sha256 9ccbd3f1b19a → sha256 a7c6a98c9782",
        change=lambda w: append(w.root / "c.out", "x"),
    ),
    Row(
        "an output's mode",
        Reason.OUTPUT_CHANGED,
        "c",
        "c.out: mode 0644 → 0755",
        change=lambda w: (w.root / "c.out").chmod(0o755),
    ),
    Row(
        "an output that was not declared",
        Reason.OUTPUT_CHANGED,
        "b",
        "in.txt: not declared → declared",
        change=lambda w: w.edit("id: b,", "id: b, outputs: [in.txt],"),
    ),
    Row("always", Reason.ALWAYS, "c", "", change=lambda w: w.edit("id: c\n", "id: c\n  always: true\n")),
    Row("always, and what needs it", Reason.ALWAYS, "a", "", change=lambda w: w.edit("id: a,", "id: a, always: true,")),
    Row("forced", Reason.FORCED, "a", "", change=set_words("--force", "a")),
    Row("named", Reason.SELECTED, "b", "", change=set_words("--only", "b")),
    Row("from here on", Reason.SELECTED, "c", "", change=set_words("--from", "c")),
    Row("a secret that nobody may keep", Reason.HANDS_ON_SECRET, "c", "outputs.T", first=hand_on_a_secret),
]
WITH_A_STORE = {Reason.RESTORED, Reason.ARCHIVE_MISSING}


def test_the_table_has_every_reason() -> None:
    assert {row.reason for row in ROWS} | WITH_A_STORE == set(Reason)


def fits(detail: str, wanted: str) -> bool:
    return detail.startswith(wanted[:-1]) if wanted.endswith("…") else detail == wanted


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    previous = os.umask(0o022)  # details name modes
    yield World(Console(tmp_path))
    os.umask(previous)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_the_smallest_change(world: World, row: Row) -> None:
    row.first(world)
    row.change(world)
    plan = world.plan()
    decisions = {one["id"]: one for one in plan}
    one = decisions[row.step]
    assert (one["action"], one["reason"]) == (row.action.value, row.reason.value)
    assert fits(one["detail"], row.detail), one["detail"]
    for name, other in decisions.items():
        if name in row.others:
            assert (other["action"], other["reason"]) == ("run", row.others[name].value)
            assert " → " in other["detail"]
        elif name != row.step:
            assert (other["action"], other["reason"], other["detail"]) == SKIP
    # And a run does just that.
    told = world.run()
    assert [{name: one[name] for name in plan[0]} for one in told if "action" in one] == plan
    going = {action: [one["id"] for one in plan if one["action"] == action] for action in ("run", "skip")}
    assert (told[-1]["ran"], told[-1]["skipped"], told[-1]["restored"]) == (going["run"], going["skip"], [])
    assert world.ran() == "".join(going["run"])
    # Once it is done, nothing of the reason is left.
    if row.reason in (Reason.ALWAYS, Reason.FORCED, Reason.SELECTED, Reason.HANDS_ON_SECRET):
        return
    assert {one["action"] for one in world.plan()} == {"skip"}


# ---------------------------------------------------------------------------------------------- with a store


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_APART", 0.0)


class Machine:
    """A fresh machine with a workspace of its own and one store for all."""

    def __init__(self, folder: Path, store: MemoryStore) -> None:
        self.root = folder / "work"
        self.root.mkdir(parents=True)
        (folder / "state").mkdir()
        (folder / "archives").mkdir()
        self.paths = StatePaths(folder / "state", "demo")
        self.store = store
        self.folder = folder
        self.told: list[events.Event] = []

    def steps(self) -> list[Step]:
        return [
            step("a", self.root, command="echo a >>ran; echo made >a.out", outputs=("a.out",)),
            step("b", self.root, command="echo b >>ran; cat a.out >b.out", outputs=("b.out",), needs=("a",)),
        ]

    def plan_and_run(self, *, code: int = 0) -> tuple[list[tuple[str, str, str]], list[tuple[str, str, str]]]:
        """Decisions of a plan on what the store tells, and those of the run that follows.

        :param code: what the run is to end with.
        """
        self.told.clear()
        stop = StopRequest()
        checkpoints = Checkpoints(
            self.store,
            KeyScheme("run1", "demo", "1", "1"),
            self.folder / "archives",
            Workspace.at(self.root, Excludes(())),
            warn=lambda _text: None,
            stop=stop,
        )
        journal = Journal(self.paths, load(self.paths))
        of = job(self.root, *self.steps())
        journal.merge(checkpoints.learn([one.id for one in of.steps]))
        plan = plan_job(of, journal.records, os.environ)
        journal.open()
        engine = Engine(
            of,
            journal,
            dict(os.environ),
            listener=self.told.append,
            write=lambda _data: None,
            stop=stop,
            options=RunOptions(),
            checkpoints=checkpoints,
        )
        assert engine.run().exit_code == code
        journal.close()
        decided = [
            one.decision
            for one in self.told
            if isinstance(one, (events.StepStarted, events.StepSkipped, events.StepRestored, events.StepHeld))
        ]
        return [(one.action.value, one.reason.value, one.detail) for one in plan.decisions], [
            (one.action.value, one.reason.value, one.detail) for one in decided
        ]

    @property
    def ended(self) -> events.RunEnded:
        last = self.told[-1]
        assert isinstance(last, events.RunEnded)
        return last


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    """What a first machine has left: both steps are done and kept."""
    store = MemoryStore()
    first = Machine(tmp_path / "first", store)
    assert first.plan_and_run()[1] == [("run", "never-ran", "")] * 2
    return store


def test_restored(tmp_path: Path, store: MemoryStore) -> None:
    second = Machine(tmp_path / "second", store)
    plan, run = second.plan_and_run()
    assert plan == run == [("restore", "restored", "a.out"), ("restore", "restored", "b.out")]
    assert (second.ended.ran, second.ended.skipped, second.ended.restored) == ((), (), ("a", "b"))
    assert not (second.root / "ran").exists()
    assert (second.root / "b.out").read_text() == "made\n"


def test_archive_missing(tmp_path: Path, store: MemoryStore) -> None:
    """Nobody knows before the run that an archive is gone: the plan can only say that its files will be put back."""
    oldest, *newer = store.entries
    assert newer, "each step has an archive of its own"
    del store.entries[oldest]
    second = Machine(tmp_path / "second", store)
    plan, run = second.plan_and_run()
    assert [one[:2] for one in plan] == [("restore", "restored")] * 2
    assert run[0][:2] == ("run", "archive-missing")
    assert oldest in run[0][2]
    assert run[1] == ("restore", "restored", "b.out")
    assert (second.ended.ran, second.ended.skipped, second.ended.restored) == (("a",), (), ("b",))
    assert (second.root / "ran").read_text() == "a\n"


def test_files_that_were_put_back_half_way(tmp_path: Path, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs on half of what a step left: what comes of that would be kept as what the step leaves."""

    def torn(*_given: object) -> None:
        raise TornError("half of it is there")

    second = Machine(tmp_path / "second", store)
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "restore", torn)
        _plan, run = second.plan_and_run(code=1)
    assert run == [
        ("stop", "archive-missing", "half of it is there; the next run puts that right"),
        ("stop", "needs-changed", "it needs 'a', which is held back"),
    ]
    assert second.plan_and_run()[1] == [("restore", "restored", "a.out"), ("restore", "restored", "b.out")]


class Unfinished(Machine):
    """One whose only step goes on from what its last try has left."""

    def steps(self) -> list[Step]:
        return [step("a", self.root, command="echo x >>part; test -e go", partial=("part",))]


def test_a_step_whose_last_try_cannot_be_put_back_whole_is_left_and_goes_on_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = MemoryStore()
    Unfinished(tmp_path / "first", store).plan_and_run(code=1)

    def torn(*_given: object) -> None:
        raise TornError("half of it is there")

    second = Unfinished(tmp_path / "second", store)
    (second.root / "go").touch()
    with monkeypatch.context() as patched:
        patched.setattr(Checkpoints, "restore_progress", torn)
        _plan, run = second.plan_and_run(code=1)
    assert run == [("stop", "failed-before", "half of it is there; the next run puts that right")]
    assert not (second.root / "part").exists()
    assert not any(isinstance(one, events.StepStarted) for one in second.told)
    assert second.plan_and_run()[1][0][:2] == ("run", "failed-before")
    assert (second.root / "part").read_text() == "x\nx\n"
