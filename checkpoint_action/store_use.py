"""What a command line does with a store: which one, under which keys, and what a job then keeps there."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from checkpoint_action.ci import recognise
from checkpoint_action.errors import Kind, StateWriteError, UsageError, kind_of_write
from checkpoint_action.intent import SIGNING_KEY, STORE
from checkpoint_action.model import AUTO, Status
from checkpoint_action.runner.checkpoints import Checkpoints
from checkpoint_action.runner.entries import entry_of
from checkpoint_action.runner.events import StepsKept, Warned
from checkpoint_action.runner.git_words import GIT, git_environment
from checkpoint_action.runner.globs import Excludes, escaped
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.keys import KeyScheme, job_slug, shared_slug
from checkpoint_action.runner.log_places import log_of
from checkpoint_action.runner.merging import choosing
from checkpoint_action.runner.outputs import locate
from checkpoint_action.runner.progress import discard
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.runner.tracked import changed_files, tracked_files
from checkpoint_action.store.resuming import ResumingStore
from checkpoint_action.store.urls import patterns_of, store_for

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping

    from checkpoint_action.model import Job, Record
    from checkpoint_action.runner.events import Listener
    from checkpoint_action.runner.journal import Journal, StatePaths
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store.base import Store

__all__ = [
    "StoreUse",
    "archives_folder",
    "kept",
    "keys_of",
    "signing_key_of",
    "store_use_of",
    "url_of",
]

_NONE = "none"
LOCAL = "local"
"""The run in the keys of whoever is in no CI system."""

_RESTORE_SECONDS = 6 * 3600.0
_RUN = re.compile(r"[a-z0-9._]{1,60}")
_SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}
_MACHINES = {"x86_64": "X64", "amd64": "X64", "aarch64": "ARM64", "arm64": "ARM64", "i686": "X86", "armv7l": "ARM"}


@dataclass(frozen=True, slots=True)
class StoreUse:
    """A store, and what of a job goes there and comes from there.

    :param by_content: whether a checkpoint may serve other commits, so that all files that git tracks count.
    :param read_only: whether nothing is put into it.
    :param required: whether its failure is the run's.
    :param exclude: globs of what is never kept.
    :param max_size: bytes that the files of a step may have together to be kept, or ``None``.
    :param signing_key: what archives are signed with, or ``None``.
    """

    store: Store
    keys: KeyScheme
    by_content: bool
    read_only: bool
    required: bool
    exclude: tuple[str, ...]
    max_size: int | None
    signing_key: bytes | None = field(repr=False)

    def reading(self, store: Store) -> StoreUse:
        """The same with another way to read, without which nothing can be done, and nothing put into it."""
        return replace(self, store=store, read_only=True, required=True)

    def prepared(self, job: Job, env: Mapping[str, str]) -> Job:
        """The job as it is where other machines are to go on with it: what its steps leave is looked at.

        :raises UsageError: git cannot tell what counts.
        """
        steps = tuple(
            replace(
                step,
                outputs=cast("Literal['auto']", AUTO) if step.outputs_assumed else step.outputs,
                tracked_inputs=self.by_content and step.inputs is None,
            )
            for step in job.steps
        )
        if any(step.tracked_inputs for step in steps):
            try:
                tracked_files(job.root, env)
            except UsageError as error:
                raise UsageError(
                    f"--scope content: {error}; or tie the tries together by a name of your own: --run-id NAME",
                    Kind.NO_GIT,
                ) from None
        return replace(job, steps=steps, movable=True)

    def trusted(
        self, job: Job, records: Mapping[str, Record], env: Mapping[str, str], warn: Callable[[str], None]
    ) -> StoreUse:
        """The same, but with nothing put into the store that others would take for made from a commit and is not.

        :param records: the job's; what its own done steps have left does not count as somebody's edit.
        """
        by_commit = self.keys.scope.startswith("commit") and self.keys.run == LOCAL
        if self.read_only or not by_commit or all(step.inputs is not None for step in job.steps):
            return self
        edited = [path for path in changed_files(job.root, env) if not _is_left(job, records, path)]
        if not edited:
            return self
        more = f" and {len(edited) - 1} more" if len(edited) > 1 else ""
        warn(
            f"--scope commit: {edited[0]!r}{more} is not as in the commit, so nothing is put into the store; "
            "commit it, or use --scope content"
        )
        return replace(self, read_only=True)

    def checkpoints(
        self,
        job: Job,
        paths: StatePaths,
        *,
        folder: Path | None = None,
        warn: Callable[[str], None],
        kept: Callable[[tuple[str, ...], tuple[str, ...], int], None] = lambda _done, _unfinished, _size: None,
        missed: Callable[[str], None] = lambda _reach: None,
        stop: StopRequest | None = None,
    ) -> Checkpoints:
        """The job's checkpoints in the store.

        :param folder: an empty one of our own for archives, instead of the one beside the state.
        """
        fetched = ResumingStore(self.store, paths.fetched)
        logs = (Path(log) for step in job.steps if (log := log_of(job, step)))
        own = (escaped(log.relative_to(job.root).as_posix()) for log in logs if log.is_relative_to(job.root))
        excludes = Excludes((*self.exclude, *(f"/{name}" for name in own), *patterns_of(self.store, job.root)))
        return Checkpoints(
            self.store,
            self.keys,
            folder or paths.archives,
            Workspace.at(job.root, excludes),
            warn=warn,
            kept=kept,
            missed=missed,
            required=self.required,
            stop=stop,
            restore_seconds=_RESTORE_SECONDS,
            signing_key=self.signing_key,
            max_size=self.max_size,
            read_only=self.read_only,
            at_hand=lambda where: fetched.at_hand(where.key),
        )


def _is_left(job: Job, records: Mapping[str, Record], path: str) -> bool:
    """Whether a file is as some done step has left it."""
    try:
        present = entry_of(locate(job.root, path), path, ContentDigests())
    except OSError:
        return False
    layers = [record.layer for record in records.values() if record.status is Status.DONE]
    if present is None:
        return any(path in layer.deleted for layer in layers)
    return any((entry.path, entry.content) == (path, present.content) for layer in layers for entry in layer.entries)


@contextmanager
def archives_folder(paths: StatePaths) -> Iterator[None]:
    """Have an empty folder for archives beside the state; what a run that died has left in it goes.

    :raises StateWriteError: it cannot be made.
    """
    try:
        discard(paths.archives)
        paths.archives.mkdir(mode=0o700)
    except OSError as error:
        raise StateWriteError(
            f"cannot make {paths.archives}: {error.strerror}; choose another --state-dir", kind_of_write(error)
        ) from None
    try:
        yield
    finally:
        discard(paths.archives)


@contextmanager
def kept(
    use: StoreUse,
    job: Job,
    paths: StatePaths,
    journal: Journal,
    env: Mapping[str, str],
    *,
    listen: Listener,
    stop: StopRequest,
    fresh: bool,
) -> Iterator[Checkpoints]:
    """A run's checkpoints, and what the store tells of the job in the journal.

    :param journal: the job's, which is held and open.
    :param env: the outside environment.
    :param fresh: whether the run starts from nothing.
    :raises StoreError: the store fails, and it is required.
    """
    use = use.trusted(job, journal.records, env, lambda text: listen(Warned(text)))
    with archives_folder(paths):
        checkpoints = use.checkpoints(
            job,
            paths,
            warn=lambda text: listen(Warned(text)),
            kept=lambda done, unfinished, size: listen(StepsKept(done, use.store.name, size, unfinished)),
            stop=stop,
        )
        if fresh:
            discard(paths.progress)
            checkpoints.pass_over()
        else:
            ids, choose = [step.id for step in job.steps], choosing(job, env)
            journal.merge(checkpoints.learn(ids, journal.records, choose=choose))
        yield checkpoints


def url_of(options: argparse.Namespace, env: Mapping[str, str]) -> str:
    """The URL of the store that is to be used; empty for none."""
    url = options.store or env.get(STORE, "")
    return "" if url == _NONE else url


def store_use_of(options: argparse.Namespace, job: Job, env: Mapping[str, str]) -> StoreUse | None:
    """What the words of a command line ask for, ``None`` where that is no store.

    :param env: the environment, which may name a store and tells of the CI system around.
    :raises UsageError: they ask for what cannot be.
    """
    url = url_of(options, env)
    if not url:
        _check_unused(options)
        return None
    keys = keys_of(options, job, env)
    by_run = keys.scope.startswith("run")
    return StoreUse(
        store=store_for(url, order=keys.origin) if by_run else store_for(url),
        keys=keys,
        by_content=keys.scope == "content",
        read_only=options.read_only,
        required=options.fail_on_store_error,
        exclude=tuple(options.exclude),
        max_size=options.max_size,
        signing_key=signing_key_of(env),
    )


def signing_key_of(env: Mapping[str, str]) -> bytes | None:
    """The key that archives are signed with, or ``None``.

    :raises UsageError: it is set to nothing.
    """
    key = env.get(SIGNING_KEY)
    if key is None:
        return None
    if not key:
        raise UsageError(f"{SIGNING_KEY} is set but empty; unset it to use no key", Kind.BAD_VALUE)
    return key.encode("utf-8", "surrogateescape")


def _check_unused(options: argparse.Namespace) -> None:
    for flag in ("scope", "run_id", "exclude", "max_size", "read_only", "fail_on_store_error"):
        if getattr(options, flag):
            raise UsageError(f"--{flag.replace('_', '-')} is for a store; give one with --store URL", Kind.EXCLUSIVE)


def keys_of(options: argparse.Namespace, job: Job, env: Mapping[str, str]) -> KeyScheme:
    """The keys of a job's archives.

    In a CI system a checkpoint serves the tries of one run, unless something else is asked for. Elsewhere it serves
    whoever knows the store and the job's name.

    :raises UsageError: what the scope is bound to is not known.
    """
    around = recognise(env)
    run = options.run_id.lower() if options.run_id else around.run if around is not None else ""
    scope: Literal["run", "commit", "content"] = options.scope or ("run" if run else "content")
    if options.run_id and scope != "run":
        raise UsageError(f"--run-id is for --scope run, not {scope}; leave one of them out", Kind.EXCLUSIVE)
    attempt = around.attempt if around is not None else "1"
    shared = shared_slug(job.name, *this_machine(env))
    if scope == "run":
        if not run:
            raise UsageError(
                "--scope run: no CI system tells which run this is; name it with --run-id NAME", Kind.SCOPE
            )
        if not _RUN.fullmatch(run):
            raise UsageError(
                f"--run-id '{options.run_id}' is not valid; use letters, digits, '.' and '_', at most 60", Kind.BAD_NAME
            )
        if options.run_id or around is None:
            return KeyScheme(f"run{run}", shared, run, attempt, shared=True)
        return KeyScheme(f"run{run}", job_slug(job.name, {"name": job.name, "ci": list(around.parts)}), run, attempt)
    writer = around.run if around is not None else LOCAL
    if scope == "content":
        return KeyScheme("content", shared, writer, attempt, shared=True)
    commit = around.commit if around is not None else ""
    return KeyScheme(f"commit{commit or _commit_at(job.root, env)}", shared, writer, attempt, shared=True)


def this_machine(env: Mapping[str, str]) -> tuple[str, str]:
    """Operating system and processor, as GitHub's runners call them."""
    machine = platform.machine()
    system = env.get("RUNNER_OS") or _SYSTEMS.get(sys.platform, sys.platform)
    return system, env.get("RUNNER_ARCH") or _MACHINES.get(machine.lower(), machine)


def _commit_at(root: Path, env: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            [*GIT, "rev-parse", "--verify", "HEAD"],
            cwd=root,
            env=git_environment(env),
            check=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError):
        raise UsageError(
            f"--scope commit: git tells no commit for {root}; use --scope content or --run-id", Kind.SCOPE
        ) from None
    return done.stdout.decode("ascii", "replace").strip()
