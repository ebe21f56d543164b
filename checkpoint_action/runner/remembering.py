"""Keeps what a run and a plan would say from the end of a run on, for as long as nothing changes."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.errors import CheckpointError
from checkpoint_action.model import Action
from checkpoint_action.runner.basis import MOST_READ, Basis, is_outside, stamp
from checkpoint_action.runner.digest_index import FolderClock, read_index
from checkpoint_action.runner.durable import replace_file
from checkpoint_action.runner.fingerprint import fingerprint
from checkpoint_action.runner.globs import static_prefix
from checkpoint_action.runner.hashing import ContentDigests, stamp_of
from checkpoint_action.runner.ignored import IgnoredFiles
from checkpoint_action.runner.journal import load
from checkpoint_action.runner.memory import Memory, Sights
from checkpoint_action.runner.outputs import locate
from checkpoint_action.runner.patterns import literal_path
from checkpoint_action.runner.places import place_of
from checkpoint_action.runner.plan import plan_job
from checkpoint_action.runner.recall import recalled
from checkpoint_action.runner.scan import OURS, walk_items
from checkpoint_action.runner.shells import programs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from checkpoint_action.model import Job, Plan, Record, Step
    from checkpoint_action.runner.journal import Loaded, StatePaths
    from checkpoint_action.runner.memory import Answers
    from checkpoint_action.runner.recall import Question

__all__ = ["remember"]

_FILE = re.compile(r"[0-7]{4} [0-9a-f]{64}")  # what counts of an input that is a file


def remember(
    question: Question,
    job: Callable[[], Job],
    paths: StatePaths,
    env: Mapping[str, str],
    answers: Callable[[Job, Plan, Mapping[str, Record]], Answers],
    *,
    known: Loaded | None = None,
) -> None:
    """Keep the answers to a question, if they are that all is done and what they are made of can be told; else nothing.

    They are kept only where all that they are made of was at rest from before the deciding to after it, and by the
    clock of the file system any later change must show. No file is read for it: what is decided on is whether all is
    done as long as each has the content that it is recorded with, and whoever gives the answer reads them.

    :param job: reads the job anew, as a plan would. The caller holds its lock.
    :param env: the environment.
    :param answers: all that is said of a job of which all is done.
    :param known: what the state said last; where its files still say so they are not read into memory once more.
    """
    if sys.platform == "win32" or not is_outside(env):
        return
    if question.trusting and recalled(question.words(), env, held=True) is not None:
        return
    with suppress(OSError, CheckpointError, _NotKeptError), FolderClock(paths.folder) as clock:
        rest = _Rest(clock, paths.folder, trusting=question.trusting)
        own = [str(path) for path in (paths.snapshot, paths.journal, paths.index) if path.exists()]
        rest.expect([os.path.abspath(question.file), os.path.realpath(question.file), *own])
        memory = _decided(question, job(), load(paths, known), paths, env, rest=rest, answers=answers)
        rest.check()
        said = memory.answers
        if all(text.isascii() for text in (said.lines, said.json, said.run, said.rest)):
            _put(paths.answer, memory)


def _put(path: Path, memory: Memory) -> None:
    """Have it in the file; one that a loss of power has damaged counts as none, so nothing waits for the disk."""
    with suppress(OSError), path.open("rb") as file:
        if all(file.read(len(piece)) == piece for piece in memory.pieces()) and not file.read(1):
            return
    replace_file(path, memory.pieces(), sync=False)


class _NotKeptError(Exception):
    """No answer is kept for such a job, or now."""


class _Rest:
    """Sees that paths stay as they are, from when they are named to when they are looked at again."""

    def __init__(self, clock: FolderClock, folder: Path, *, trusting: bool) -> None:
        self.clock = clock
        self._then: dict[str, str] = {}
        self._device = self._dated(folder) if trusting else None

    def _dated(self, folder: Path) -> int | None:
        """The device on which a folder gets new times when a name comes or goes, as far as one of ours tells."""
        before = folder.stat()
        if not self.clock.passed(before):
            return None
        number, name = tempfile.mkstemp(dir=folder, prefix=OURS)
        os.close(number)
        os.unlink(name)
        after = folder.stat()
        dated = after.st_mtime_ns != before.st_mtime_ns and after.st_ctime_ns != before.st_ctime_ns
        return after.st_dev if dated else None

    def is_dated(self, folder: str) -> bool:
        """Whether the times of a folder tell of each name that comes or goes, and none of ours does so on and on."""
        return (
            self._device is not None
            and os.lstat(folder).st_dev == self._device
            and not any(name.startswith(OURS) for name in os.listdir(folder))
        )

    def expect(self, paths: list[str]) -> None:
        """These must stay as they are.

        :raises _NotKeptError: one might change now without its times telling.
        """
        for path in paths:
            info = os.lstat(path)
            if not self.clock.passed(info):
                raise _NotKeptError
            self._then[path] = stamp(info)

    def check(self) -> None:
        """See that they did.

        :raises _NotKeptError: one did not.
        """
        for path, then in self._then.items():
            if stamp(os.lstat(path)) != then:
                raise _NotKeptError


def _decided(
    question: Question,
    job: Job,
    loaded: Loaded,
    paths: StatePaths,
    env: Mapping[str, str],
    *,
    rest: _Rest,
    answers: Callable[[Job, Plan, Mapping[str, Record]], Answers],
) -> Memory:
    """What is to be kept.

    :raises _NotKeptError: not all is done, or not all that the plan is made of can be told.
    """
    if loaded.warnings or not loaded.settled or job.name != paths.job:
        raise _NotKeptError
    basis = _basis(job, loaded.records, paths, question.file, rest)
    rest.expect([*basis.files, *basis.dated, *basis.listed, *basis.kept, *basis.links])
    ignored = IgnoredFiles(job.root, env)
    known = read_index(paths.index) if question.trusting else _recorded(job, loaded.records)
    digests = ContentDigests(known=known, clock=rest.clock)
    planned = plan_job(job, loaded.records, env, digests=digests, ignored=ignored)
    if ignored.said is None or any(one.action is not Action.SKIP or one.detail for one in planned.decisions):
        raise _NotKeptError
    basis.git = ignored.asked
    stamps = contents = ""
    if question.trusting:
        stamps = basis.look(env, trusting=True, ignored=ignored.said)
    if sum(os.lstat(path).st_size for path in basis.files) <= MOST_READ:
        contents = basis.look(
            env,
            trusting=False,
            ignored=ignored.said,
            contents=lambda names: [_content(locate(job.root, name), digests) for name in names],
        )
    if not stamps and not contents:
        raise _NotKeptError
    return Memory(
        question.key(),
        Sights(stamps, contents),
        answers(job, planned, loaded.records),
        basis,
        shells=programs_of(job.steps),
        secrets=job.secrets,
    )


def _recorded(job: Job, records: Mapping[str, Record]) -> dict[str, str]:
    """Files with the content that they are recorded with, in the form of an index.

    Where two steps say two things of a file, one of them is not done, whichever of the two is believed.
    """
    found: dict[str, str] = {}
    for step in job.steps:
        for part, value in records[step.id].parts.items():
            kind, _, name = part.partition(" ")
            if kind == "input":
                found[locate(job.root, name)] = value.partition(" ")[2]
    for step in job.steps:
        entries = records[step.id].layer.entries
        found.update((locate(job.root, entry.path), entry.sha256) for entry in entries if entry.type == "file")
    return {path: stamp_of(os.lstat(path)) + digest for path, digest in found.items()}


def _content(path: str, digests: ContentDigests) -> str:
    """Mode and digest of a file, as whoever reads it finds them.

    :raises _NotKeptError: nobody has read it.
    """
    known = digests.remembered(path)
    if known is None:
        raise _NotKeptError
    return "{:o} {}".format(*known)


def _basis(job: Job, records: Mapping[str, Record], paths: StatePaths, file: str, rest: _Rest) -> Basis:
    """What the answer is made of, where all steps are done: beside the job and its records.

    :raises _NotKeptError: that can not all be told.
    """
    files: dict[str, None] = {}
    kept: dict[str, None] = {}
    links: dict[str, None] = {}
    folders: dict[str, None] = {}
    for step in job.steps:
        record = records.get(step.id)
        if record is None or fingerprint(record.parts) != record.fingerprint or record.layer.deleted:
            raise _NotKeptError
        files.update((locate(job.root, name), None) for name in _input_names(record))
        by_type = {"file": files, "dir": kept, "link": links}
        for entry in record.layer.entries:
            by_type[entry.type][locate(job.root, entry.path)] = None
        _see_patterns(step)
        for start, named in _starts(step):
            if named:
                kept[start] = None
            if start not in folders:
                _walk(start, folders)
    dated = [folder for folder in folders if rest.is_dated(folder)]
    return Basis(
        file,
        os.path.splitext(paths.answer)[0],
        sorted({name for step in job.steps for name in step.pass_env}),
        git=False,
        files=_short(job.root, files),
        dated=_short(job.root, dated),
        listed=_short(job.root, folders.keys() - dated),
        kept=_short(job.root, kept),
        links=_short(job.root, links),
    )


def _short(root: Path, paths: Iterable[str]) -> list[str]:
    """Paths from the current folder on, where they lie in it: looking at those takes less time."""
    inside = os.path.join(root, "")
    return [path.removeprefix(inside) for path in paths]


def _input_names(record: Record) -> list[str]:
    names = []
    for part, value in record.parts.items():
        kind, _, name = part.partition(" ")
        if kind == "unmatched" or (kind == "input" and not _FILE.fullmatch(value)):
            raise _NotKeptError
        if kind == "input":
            names.append(name)
    return names


def _see_patterns(step: Step) -> None:
    """See that where patterns lead does not depend on links above it.

    :raises _NotKeptError: it may.
    """
    outputs = () if isinstance(step.outputs, str) else step.outputs
    for path in (step.cwd.as_posix(), *(step.inputs or ()), *outputs):
        if os.pardir in path.split("/"):
            raise _NotKeptError


def _starts(step: Step) -> Iterable[tuple[str, bool]]:
    """The folders that the step's inputs are looked for in, and whether a pattern names that very folder."""
    for pattern in step.inputs or ():
        plain = pattern.removeprefix("!")
        path = literal_path(plain, step.cwd)
        start = place_of(step.cwd, static_prefix(plain)) if path is None else path
        if os.path.isdir(start):
            yield start, path is not None


def _walk(start: str, folders: dict[str, None]) -> None:
    """Take in a folder and all folders in it.

    :raises _NotKeptError: there is a link, say, whose target would count in some places and not in others.
    """
    if os.path.islink(start):
        raise _NotKeptError
    folders[start] = None
    shut: set[str] = set()
    for item, _name in walk_items(start, "", closed=shut):
        if item.is_dir(follow_symlinks=False):
            folders[item.path] = None
        elif not item.is_file(follow_symlinks=False):
            raise _NotKeptError
    if shut:
        raise _NotKeptError
