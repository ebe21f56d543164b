"""Where jobs run: the product's engine with commands that are interpreted, or the installed program with real ones."""

from __future__ import annotations

import json
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from checkpoint_action.model import Job
from checkpoint_action.runner.engine import Engine
from checkpoint_action.runner.events import StepEnded, StepSkipped
from checkpoint_action.runner.journal import Journal, StatePaths, load
from checkpoint_action.runner.plan import plan_job
from checkpoint_action.runner.process import End, Outcome
from checkpoint_action.runner.run_options import RunOptions
from checkpoint_action.runner.stop import StopRequest
from tests.console import Console, lines_of
from tests.resume.disk import RealDisk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checkpoint_action.runner.events import Event
    from checkpoint_action.runner.process import Command, Limits
    from tests.resume.drafts import SoundStep
    from tests.resume.story import Cut

__all__ = ["EngineMachine", "Machine", "Planned", "ProgramMachine", "Ran"]


@dataclass(frozen=True, slots=True)
class Planned:
    """What a plan says of a step."""

    step: str
    action: str
    reason: str
    detail: str


@dataclass(slots=True)
class Ran:
    """A run, as somebody outside sees it.

    :ivar started: ids of the steps whose commands were started, in order.
    :ivar code: the exit code; nothing of a run that was killed.
    :ivar errors: why steps were not done.
    """

    started: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    code: int | None = None
    errors: list[str] = field(default_factory=list)


class Machine(Protocol):
    """One folder in which a job runs again and again."""

    @property
    def disk(self) -> RealDisk:
        """The workspace."""
        ...

    def plan(self, steps: Sequence[SoundStep], outside: Mapping[str, str]) -> list[Planned]:
        """What the product says that a run would do."""
        ...

    def run(
        self,
        steps: Sequence[SoundStep],
        outside: Mapping[str, str],
        cut: tuple[str, Cut] | None = None,
        *,
        jobs: int = 1,
        continue_on_error: bool = False,
    ) -> Ran:
        """One run.

        :param cut: a step, and how the run is cut short in it.
        """
        ...


class KilledError(BaseException):
    """Stands for ``kill -9``."""


class EngineMachine:
    """Runs jobs with the engine, in this process; commands are interpreted instead of started.

    :param folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = folder / "work"
        self._root.mkdir()
        self.disk = RealDisk(self._root)
        self._states = 0
        self._state = self._new_state()
        self._state.mkdir()
        self._steps: Mapping[str, SoundStep] = {}
        self._cut: tuple[str, Cut] | None = None
        self._started: list[str] = []

    def _new_state(self) -> Path:
        self._states += 1
        return self._folder / f"state-{self._states}"

    def _job(self, steps: Sequence[SoundStep], *, continue_on_error: bool = False) -> Job:
        made = tuple(step.step(self._root) for step in steps)
        return Job("story", self._root, made, continue_on_error=continue_on_error)

    def plan(self, steps: Sequence[SoundStep], outside: Mapping[str, str]) -> list[Planned]:
        """See :class:`Machine`."""
        plan = plan_job(self._job(steps), load(StatePaths(self._state, "story")).records, outside)
        return [Planned(one.step, one.action.value, one.reason.value, one.detail) for one in plan.decisions]

    def run(
        self,
        steps: Sequence[SoundStep],
        outside: Mapping[str, str],
        cut: tuple[str, Cut] | None = None,
        *,
        jobs: int = 1,
        continue_on_error: bool = False,
    ) -> Ran:
        """See :class:`Machine`."""
        self._steps, self._cut, self._started = {step.name: step for step in steps}, cut, []
        told: list[Event] = []
        code = None
        paths = StatePaths(self._state, "story")
        journal = Journal(paths, load(paths))
        journal.open()
        engine = Engine(
            self._job(steps, continue_on_error=continue_on_error),
            journal,
            dict(outside),
            listener=told.append,
            write=lambda _data: None,
            stop=StopRequest(),
            options=RunOptions(jobs=jobs),
            run=self._interpret,
        )
        try:
            code = engine.run().exit_code
        except KilledError:
            after = self._new_state()
            shutil.copytree(self._state, after)  # what a dead run leaves, before ours tidies up
            self._state = after
        finally:
            journal.close()
        ends = [event.record for event in told if isinstance(event, StepEnded)]
        skipped = [event.record.step for event in told if isinstance(event, StepSkipped)]
        return Ran(self._started, skipped, code, [f"{end.step}: {end.error}" for end in ends if end.error])

    def _interpret(
        self,
        command: Command,
        _limits: Limits,
        _write: Callable[[bytes], None],
        stop: StopRequest,
        *,
        started: Callable[[], None],
    ) -> Outcome:
        name = command.env["CHECKPOINT_STEP"]
        step = self._steps[name]
        assert step.shell != "system" or command.argv == ("sh", "-c", step.recipe.text())
        assert command.cwd == self._root / step.recipe.where
        started()
        self._started.append(name)
        cut = self._cut[1] if self._cut is not None and self._cut[0] == name else None
        code = step.recipe.perform(self.disk, command.env, cut.trip if cut else None)
        if cut is not None and cut.stops:
            if cut.how.startswith("die"):
                raise KilledError
            stop.request(signal.SIGTERM)
            if cut.how == "stop":
                return Outcome(End.STOPPED, None, signal.SIGTERM, 1.0)
        return Outcome(End.EXITED, code, None, 1.0)


class ProgramMachine:
    """Runs jobs with the installed program, a job file and real shells. Its runs are not stopped or killed.

    :param folder: an empty one.
    """

    def __init__(self, folder: Path) -> None:
        root = folder / "work"
        root.mkdir()
        self.disk = RealDisk(root)
        self._console = Console(root)
        self._beside = folder
        (folder / "trips").mkdir()

    def _words(self, steps: Sequence[SoundStep], *, continue_on_error: bool = False) -> list[str]:
        job = {
            "job": "story",
            "env": dict(steps[0].inherited),
            "continue-on-error": continue_on_error,
            "steps": [_in_file(step) for step in steps],
        }
        (self._beside / "job.yml").write_text(json.dumps(job, indent=1))
        return ["-f", "../job.yml", "--state-dir", "../state", "--json"]

    def _env(self, outside: Mapping[str, str]) -> dict[str, str]:
        return {**outside, "RUNS": str(self._beside / "runs"), "TRIPS": str(self._beside / "trips")}

    def plan(self, steps: Sequence[SoundStep], outside: Mapping[str, str]) -> list[Planned]:
        """See :class:`Machine`."""
        shown = self._console.run("plan", *self._words(steps), env=self._env(outside))
        assert shown.returncode == 0, shown.stderr
        return [
            Planned(one["id"], one["action"], one["reason"], one["detail"]) for one in json.loads(shown.stdout)["steps"]
        ]

    def run(
        self,
        steps: Sequence[SoundStep],
        outside: Mapping[str, str],
        cut: tuple[str, Cut] | None = None,
        *,
        jobs: int = 1,
        continue_on_error: bool = False,
    ) -> Ran:
        """See :class:`Machine`."""
        runs = self._beside / "runs"
        runs.write_text("")
        trip = self._beside / "trips" / (f"{cut[0]}.{cut[1].trip}" if cut else "none")
        trip.touch()
        words = self._words(steps, continue_on_error=continue_on_error)
        ended = self._console.run(*words, "--quiet", "-j", str(jobs), env=self._env(outside))
        trip.unlink()
        told = lines_of(ended.stdout)
        skipped = [event["id"] for event in told if event["event"] == "step-skipped"]
        errors = [f"{event['id']}: {event['error']}" for event in told if event.get("error")]
        return Ran(runs.read_text().split(), skipped, ended.returncode, [*errors, ended.stderr])


def _in_file(step: SoundStep) -> dict[str, Any]:
    made = step.step(Path())
    whole = {
        "id": made.id,
        "run": made.command,
        "shell": made.shell,
        "needs": list(made.needs),
        "working-directory": made.cwd.as_posix(),
        "env": dict(made.env),
        "pass-env": list(made.pass_env),
        "outputs": list(made.outputs),
        "always": made.always,
    }
    return whole if made.inputs is None else {**whole, "inputs": list(made.inputs)}
