"""Jobs whose every call is recorded, and what must be so at each moment of them."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tests.console import environment
from tests.torture import syscalls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.torture.syscalls import Call

_PARTIAL = "work/deep/part"

__all__ = ["STORIES", "Phase", "Site", "Story", "Work"]

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "checkpoint_action")


@dataclass(frozen=True, slots=True)
class Work:
    """A step: it says that it begins, writes half of its file, then all of it, and says that it ends.

    :param before: the step whose file is the beginning of its own.
    :param lines: how many lines it adds.
    :param fails: whether it fails until it is allowed to work.
    :param changed: counts the changes of its command.
    :param saves: whether it saves its progress before it may fail.
    """

    name: str
    before: str = ""
    lines: int = 1
    fails: bool = False
    changed: int = 0
    saves: bool = False

    @property
    def file(self) -> str:
        """What it makes."""
        return f"out.{self.name}"

    @property
    def command(self) -> str:
        """For ``sh``, of commands that the shell itself has."""
        read = f"t=$(cat out.{self.before}; echo .); t=${{t%.}}; " if self.before else "t=; "
        fail = '[ -e "$KEEP/allowed" ] || exit 1; ' if self.fails else ""
        if self.saves:
            kept = f'mkdir -p work/deep; printf kept > {_PARTIAL}; printf kept > "$CHECKPOINT_DIR/own"; '
            fail = f'{kept}checkpoint-run save; echo {self.name} >> "$KEEP/saved"; {fail}'
        return (
            f'echo {self.name} >> "$KEEP/begun"; printf half > {self.file}; {fail}{read}n={self.lines}; '
            f'while [ $n -gt 0 ]; do t="${{t}}full {self.name} {self.changed}\n"; n=$((n-1)); done; '
            f'printf "$t" > {self.file}; echo {self.name} >> "$KEEP/ended"'
        )

    def content(self, works: Sequence[Work]) -> bytes:
        """What its file holds in the end."""
        before = next((work.content(works) for work in works if work.name == self.before), b"")
        return before + f"full {self.name} {self.changed}\n".encode() * self.lines


@dataclass(frozen=True, slots=True)
class Phase:
    """One command line of a story.

    :param words: of the program, without those of the job.
    :param works: the job as it is then.
    :param again: steps that it is to start though they are done.
    :param gone: steps of which nothing is to be recorded once it has returned.
    :param accepted: steps that it takes as done.
    :param allowed: whether steps that fail until they are allowed to work are.
    :param machine: the folder in which it is given.
    :param uses_store: whether the story's store is used.
    :param stored: steps that are in the store once it has returned.
    """

    works: tuple[Work, ...]
    words: tuple[str, ...] = ("--json",)
    code: int = 0
    again: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()
    allowed: bool = True
    machine: str = "first"
    uses_store: bool = True
    stored: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Story:
    """Some command lines, one after the other.

    :param flags: whether the job is given by the original flags, instead of a job file.
    :param store: whether there is one.
    :param options: words of each command line.
    """

    name: str
    phases: tuple[Phase, ...]
    flags: bool = False
    store: bool = False
    options: tuple[str, ...] = ()


@dataclass(slots=True)
class Known:
    """What must be so, and what may be, once so many calls have taken place.

    :param done: steps that somebody was told are done, with their command: they must stay so.
    :param possible: commands of which a step may be recorded as done.
    :param stored: steps that somebody was told are in the store.
    :param saved: files that were saved by a step that has not ended, with their content.
    """

    done: dict[str, str] = field(default_factory=dict)
    possible: dict[str, set[str]] = field(default_factory=dict)
    stored: set[str] = field(default_factory=set)
    saved: dict[str, bytes] = field(default_factory=dict)

    def copy(self) -> Known:
        """As it is now."""
        possible = {step: set(those) for step, those in self.possible.items()}
        return Known(dict(self.done), possible, set(self.stored), dict(self.saved))


class Site:
    """Where a story takes place: what is below ``disk`` loses its power, ``keep`` does not."""

    def __init__(self, folder: Path, story: Story) -> None:
        self.story = story
        self.disk = folder / "disk"
        self.keep = folder / "keep"
        self.again = folder / "again"
        for place in (*(self.disk / name for name in ("first", "second")), self.keep, self.again):
            place.mkdir(parents=True)

    def words(self, phase: Phase, words: Sequence[str] | None = None, *, store: bool = True) -> list[str]:
        """A command line for the job of a phase, without the program.

        :param words: instead of its own.
        :param store: whether the store is used, where the story has one.
        """
        given = phase.words if words is None else words
        verb = [given[0]] if given and not given[0].startswith("-") else []
        rest = [*given[len(verb) :], *self.story.options]
        if self.story.store and store and phase.uses_store:
            rest += ["--store", f"file://{self.disk}/store", "--run-id", "story"]
        if not self.story.flags:
            return [*verb, *rest, "-f", str(self._job_file(phase.works))]
        rest += ["--job", "story"]
        for work in phase.works:
            rest += ["--step", f"{work.name}:{work.command}", "--step-artifact", f"{work.name}:{work.file}"]
        return [*verb, *rest]

    def _job_file(self, works: Sequence[Work]) -> Path:
        """The job as a file, on a disk that never fails."""
        steps = [
            {
                "id": work.name,
                "run": work.command,
                "shell": "sh",
                "outputs": [work.file],
                "partial": [_PARTIAL] if work.saves else [],
                "inputs": [],
                "needs": [work.before] if work.before else [],
            }
            for work in works
        ]
        text = json.dumps({"job": "story", "working-directory": ".", "steps": steps})
        path = self.keep / f"job-{hashlib.sha256(text.encode()).hexdigest()[:12]}.yml"
        if not path.exists():
            path.write_text(text)
        return path

    def env(self, keep: Path | None = None) -> dict[str, str]:
        """The environment of a command line."""
        return environment({"PYTHONPATH": str(REPOSITORY), "KEEP": str(keep or self.keep), "PYTHONUNBUFFERED": "1"})

    def play(self) -> Iterator[tuple[Phase, list[Call]]]:
        """Carry out the story; each phase with what it did.

        :raises AssertionError: a phase did not end as it should.
        """
        for phase in self.story.phases:
            allowed = self.keep / "allowed"
            allowed.touch() if phase.allowed else allowed.unlink(missing_ok=True)
            code, calls, said = syscalls.recorded(
                [*PROGRAM, *self.words(phase)],
                cwd=self.disk / phase.machine,
                env=self.env(),
                stdout=self.keep / "told",
                log=self.keep / "strace",
            )
            assert code == phase.code, f"{self.story.name}: {phase.words} ended with {code}: {said}"
            yield phase, calls

    def disk_holds(self, call: Call) -> bool:
        """Whether a call is about what loses its power."""
        return call.path == str(self.disk) or call.path.startswith(f"{self.disk}/")

    def happened(self, call: Call, phase: Phase, known: Known) -> bool:
        """Take over what a call tells of how far steps are; whether it tells anything."""
        folder, _, name = call.path.rpartition("/")
        if call.name != "write" or folder != str(self.keep):
            return False
        command = {work.name: work.command for work in phase.works}
        lines = call.data.decode().splitlines()
        for line in lines if name == "begun" else ():
            known.possible[line] = set()
            known.done.pop(line, None)
            known.saved.clear()
        for line in lines if name == "saved" else ():
            own = f".checkpoint-run-story.progress/_{line}.progress/own"
            known.saved = dict.fromkeys((_PARTIAL, own), b"kept")
        for line in lines if name == "ended" else ():
            known.saved.clear()
            known.possible[line] = {command[line]}
        for line in lines if name == "told" else ():
            told = json.loads(line) if line.startswith('{"event"') else {}
            if told.get("event") == "step-restored" or told.get("status") == "done":
                known.done[told["id"]] = command[told["id"]]
            if told.get("event") == "steps-kept":
                known.stored.update(told["steps"])
        return True

    def begins(self, phase: Phase, known: Known) -> None:
        """What changes as a phase begins."""
        command = {work.name: work.command for work in phase.works}
        for step in (*phase.again, *phase.gone):
            known.done.pop(step, None)
            known.stored.discard(step)
        for step in phase.accepted:
            known.possible.setdefault(step, set()).add(command[step])

    def returned(self, phase: Phase, known: Known) -> None:
        """What changes once a phase has returned."""
        command = {work.name: work.command for work in phase.works}
        for step in phase.gone:
            known.possible[step] = set()
        known.stored |= phase.stored
        for step in phase.accepted:
            known.done[step] = command[step]
            known.possible[step] = {command[step]}


def _works(*, chain: bool, fails: bool = False) -> tuple[Work, ...]:
    names = ("a", "b", "c", "d")
    before = dict(zip(names[1:], names, strict=False)) if chain else {}
    return tuple(
        Work(name, before.get(name, ""), lines=900 if name == "b" else 1, fails=fails and name == "c") for name in names
    )


def _changed(works: tuple[Work, ...], name: str) -> tuple[Work, ...]:
    return tuple(replace(work, changed=work.changed + 1) if work.name == name else work for work in works)


_FLAGS = _works(chain=False, fails=True)
_CHAIN = _works(chain=True, fails=True)
_ALL = frozenset("abcd")
_SAVING = tuple(replace(work, saves=work.name == "c") for work in _CHAIN)
_FAILING = Phase(_CHAIN, code=1, allowed=False)

STORIES = (
    Story(
        "flags",
        (
            Phase(_FLAGS, code=1, allowed=False),
            Phase(_FLAGS),
            Phase(_changed(_FLAGS, "b"), again=frozenset("b")),
            Phase(_changed(_FLAGS, "b"), ("--json", "--force"), again=_ALL),
        ),
        flags=True,
        options=("--state-dir", "state/deep"),
    ),
    Story(
        "verbs",
        (
            Phase(_CHAIN),
            Phase(_CHAIN, ("reset", "b"), gone=frozenset("b")),
            Phase(_CHAIN, ("accept", "b"), accepted=frozenset("b")),
            Phase(_CHAIN, ("reset",), gone=_ALL),
            Phase(_CHAIN, ("--json", "--jobs", "2"), again=_ALL),
        ),
    ),
    Story(
        "store",
        (
            _FAILING,
            Phase(_CHAIN),
            Phase(_CHAIN, machine="second"),
            Phase(_changed(_CHAIN, "b"), again=frozenset("bcd"), machine="second"),
        ),
        store=True,
    ),
    Story(
        "pull and push",
        (
            Phase(_CHAIN, code=1, allowed=False, uses_store=False),
            Phase(_CHAIN, ("push", "--json"), stored=frozenset("ab")),
            Phase(_CHAIN, ("pull", "--json"), accepted=frozenset("ab"), machine="second"),
            Phase(_CHAIN, machine="second"),
            Phase(_CHAIN, ("pull", "--json", "--overwrite"), accepted=_ALL),
        ),
        store=True,
    ),
    Story("save", (Phase(_SAVING, code=1, allowed=False), Phase(_SAVING))),
)
