"""Keeps what a plan would say at the end of a run, for as long as nothing changes."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.errors import CheckpointError
from checkpoint_action.model import Action
from checkpoint_action.runner.digest_index import FolderClock, read_index
from checkpoint_action.runner.durable import replace_file
from checkpoint_action.runner.fingerprint import fingerprint
from checkpoint_action.runner.globs import static_prefix
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.ignored import IgnoredFiles
from checkpoint_action.runner.journal import load
from checkpoint_action.runner.outputs import locate
from checkpoint_action.runner.patterns import literal_path
from checkpoint_action.runner.places import place_of
from checkpoint_action.runner.plan import plan_job
from checkpoint_action.runner.recall import Basis, Memory, Question, recalled, stamp
from checkpoint_action.runner.scan import OURS, walk_items

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from checkpoint_action.model import Job, Plan, Record, Step
    from checkpoint_action.runner.journal import StatePaths

__all__ = ["remember"]

_FILE = re.compile(r"[0-7]{4} [0-9a-f]{64}")  # what counts of an input that is a file


def remember(
    question: Question,
    job: Callable[[], Job],
    paths: StatePaths,
    env: Mapping[str, str],
    answers: Callable[[Plan], tuple[str, str]],
) -> None:
    """Keep the answer to a question, if it is that all is done and what it is made of can be told; else nothing.

    An answer is kept only where all that it is made of was at rest from before the deciding to after it, and by the
    clock of the file system any later change must show.

    :param job: reads the job anew, as a plan would. The caller holds its lock.
    :param env: the environment.
    :param answers: a plan in words for people and for programs.
    """
    if sys.platform == "win32" or recalled(question.words(), env, held=True) is not None:
        return
    with suppress(OSError, CheckpointError, _NotKeptError), FolderClock(paths.folder) as clock:
        rest = _Rest(clock, paths.folder)
        index = [str(paths.index)] if paths.index.exists() else []
        rest.expect([os.path.abspath(question.file), os.path.realpath(question.file), *index])
        planned, basis, ignored = _decided(job(), paths, env, question.file, rest)
        seen = basis.look(env, ignored)
        rest.check()
        lines, json = answers(planned)
        if lines.isascii() and json.isascii():
            replace_file(paths.answer, Memory(question.key(), seen, lines, json, basis).to_bytes())


class _NotKeptError(Exception):
    """No answer is kept for such a job, or now."""


class _Rest:
    """Sees that paths stay as they are, from when they are named to when they are looked at again."""

    def __init__(self, clock: FolderClock, folder: Path) -> None:
        self._clock = clock
        self._then: dict[str, str] = {}
        self._device = self._dated(folder)

    def _dated(self, folder: Path) -> int | None:
        """The device on which a folder gets new times when a name comes or goes, as far as one of ours tells."""
        before = folder.stat()
        if not self._clock.passed(before):
            return None
        number, name = tempfile.mkstemp(dir=folder, prefix=OURS)
        os.close(number)
        os.unlink(name)
        after = folder.stat()
        dated = after.st_mtime_ns != before.st_mtime_ns and after.st_ctime_ns != before.st_ctime_ns
        return after.st_dev if dated else None

    def is_dated(self, folder: str) -> bool:
        """Whether the times of a folder tell of each name that comes or goes, and none of ours does so on and on."""
        return os.lstat(folder).st_dev == self._device and not any(name.startswith(OURS) for name in os.listdir(folder))

    def expect(self, paths: list[str]) -> None:
        """These must stay as they are.

        :raises _NotKeptError: one might change now without its times telling.
        """
        for path in paths:
            info = os.lstat(path)
            if not self._clock.passed(info):
                raise _NotKeptError
            self._then[path] = stamp(info)

    def check(self) -> None:
        """See that they did.

        :raises _NotKeptError: one did not.
        """
        for path, then in self._then.items():
            if stamp(os.lstat(path)) != then:
                raise _NotKeptError


def _decided(job: Job, paths: StatePaths, env: Mapping[str, str], file: str, rest: _Rest) -> tuple[Plan, Basis, bytes]:
    """A plan, what it is made of, and what git says it ignores.

    :raises _NotKeptError: not all is done, or not all that the plan is made of can be told.
    """
    loaded = load(paths)
    if loaded.warnings or job.name != paths.job:
        raise _NotKeptError
    basis = _basis(job, loaded.records, paths, file, rest)
    rest.expect([*basis.stamped, *basis.listed, *basis.kept, *basis.links])
    ignored = IgnoredFiles(job.root, env)
    digests = ContentDigests(known=read_index(paths.index))
    planned = plan_job(job, loaded.records, env, digests=digests, ignored=ignored)
    if ignored.said is None or any(one.action is not Action.SKIP or one.detail for one in planned.decisions):
        raise _NotKeptError
    basis.git = ignored.asked
    return planned, basis, ignored.said


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
    inside = os.path.join(job.root, "")
    return Basis(
        file,
        os.path.splitext(paths.answer)[0],
        sorted({name for step in job.steps for name in step.pass_env}),
        git=False,
        stamped=[path.removeprefix(inside) for path in (*files, *dated)],  # shorter ways are faster
        listed=list(folders.keys() - dated),
        kept=list(kept),
        links=list(links),
    )


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
