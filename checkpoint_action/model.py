"""The vocabulary: what a job, a step, a record and a plan are. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "ARTIFACT_MISSING",
    "AUTO",
    "SYSTEM_SHELL",
    "Action",
    "ArchiveRef",
    "Decision",
    "Entry",
    "Job",
    "Layer",
    "Partial",
    "Plan",
    "Reason",
    "Record",
    "Retry",
    "Status",
    "Step",
    "Values",
]

AUTO = "auto"
"""The ``outputs`` word for "all that changed in the workspace"."""

SYSTEM_SHELL = "system"
"""The shell of ``--step`` commands: ``sh -c`` (``cmd /c`` on Windows)."""

ARTIFACT_MISSING = -2
"""Exit code recorded for a command that exited 0 without leaving what it declared."""


class Status(str, Enum):
    """How a step last ended; ``running`` in a state at rest means that we died in it."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


class Action(str, Enum):
    """What a plan does with a step."""

    SKIP = "skip"
    RESTORE = "restore"
    RUN = "run"
    STOP = "stop"  # a person has to say so first: see `on-crash: stop` and `--only`


class Reason(str, Enum):
    """Why: the closed list. A member is part of the documented ``--json`` output."""

    DONE = "done"
    RESTORED = "restored"
    NEVER_RAN = "never-ran"
    FAILED_BEFORE = "failed-before"
    TIMED_OUT_BEFORE = "timed-out-before"
    INTERRUPTED_BEFORE = "interrupted-before"
    COMMAND_CHANGED = "command-changed"
    ENV_CHANGED = "env-changed"
    INPUTS_CHANGED = "inputs-changed"
    NEEDS_CHANGED = "needs-changed"
    OUTPUT_MISSING = "output-missing"
    OUTPUT_CHANGED = "output-changed"
    ARCHIVE_MISSING = "archive-missing"
    HANDS_ON_SECRET = "hands-on-secret"  # noqa: S105  # a reason, no secret
    ALWAYS = "always"
    FORCED = "forced"
    SELECTED = "selected"


@dataclass(frozen=True, slots=True)
class Retry:
    """Extra tries of a step.

    :param max: extra tries after the first.
    :param on: what is retried: ``error`` (any other non-zero end), ``timeout``, or exit codes.
    :param backoff: seconds before the first extra try; doubled for each further one.
    :param backoff_max: seconds a wait never exceeds.
    :param jitter: whether each wait is drawn between nothing and its full length, so that many do not return at once.
    """

    max: int = 0
    on: tuple[Literal["error", "timeout"] | int, ...] = ("error", "timeout")
    backoff: float = 1.0
    backoff_max: float = 3600.0
    jitter: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One named shell command and what it needs, reads and leaves.

    :param id: its name, unique in the job without regard to case.
    :param command: the text handed to the shell.
    :param shell: ``bash``, ``sh``, ``pwsh``, ``python``, :data:`SYSTEM_SHELL` or a command with ``{0}`` for the script.
    :param cwd: absolute folder the command starts in.
    :param env: declared variables; they count in the fingerprint.
    :param inherited_env: those declared for the whole job, which give way to what earlier steps hand on; they count.
    :param pass_env: names of outside variables that count too.
    :param inputs: globs below ``cwd`` whose content counts; none declared is ``None``.
    :param tracked_inputs: whether all files that git tracks below the job's root count, as they are.
    :param outputs: paths and globs below ``cwd``, :data:`AUTO`, or nothing.
    :param outputs_assumed: whether the job says nothing of its outputs, so that they count for nothing.
    :param partial: paths and globs below ``cwd`` that an unfinished try leaves for the next to continue from.
    :param needs: ids of steps whose results count.
    :param timeout: seconds a try may take.
    :param idle_timeout: seconds a try may go without output.
    :param interactive: whether it reads our standard input; else its own is empty.
    :param leftovers: what becomes of background processes that outlive their shell.
    :param wait_online: ``HOST:PORT`` that must take a connection before another try.
    :param on_crash: what a run does with a step in which an earlier run died.
    :param log: file that gets the output of the last try, beside the terminal.
    """

    id: str
    command: str
    shell: str
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    inherited_env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    inputs: tuple[str, ...] | None = None
    tracked_inputs: bool = False
    outputs: tuple[str, ...] | Literal["auto"] = ()
    outputs_assumed: bool = False
    partial: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    timeout: float | None = None
    idle_timeout: float | None = None
    retry: Retry = Retry()
    interactive: bool = False
    leftovers: Literal["leave", "kill"] = "leave"
    wait_online: str = ""
    always: bool = False
    on_crash: Literal["rerun", "stop"] = "rerun"
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A name and an ordered list of steps; ``needs`` only ever names an earlier step.

    :param root: absolute folder that outputs are recorded relative to.
    :param movable: whether the folder may be another next time, as its state moves with it.
    :param in_order: whether a step gets what all earlier ones hand on, and not only those it needs.
    :param secrets: names of outside variables whose values never reach state, logs or reports.
    :param max_failures: failures after which no further step starts, where failures do not stop the job.
    :param budget: seconds the run may take before it stops by itself.
    :param words: what a command line has to say to mean this job, with a space before it; for commands to be copied.
    :param logs: folder of the logs of those steps that name none, where these get one.
    """

    name: str
    root: Path
    steps: tuple[Step, ...]
    secrets: tuple[str, ...] = ()
    continue_on_error: bool = False
    max_failures: int | None = None
    budget: float | None = None
    movable: bool = True
    in_order: bool = False
    words: str = ""
    logs: Path | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One path of a workspace as it was at a moment.

    :param path: relative to the workspace, ``/`` between parts; bytes that are not UTF-8 as surrogate escapes.
    :param mode: permission bits (as ``stat.S_IMODE`` gives them).
    :param mtime_ns: nanoseconds since the epoch; no part of a result.
    :param size: bytes; 0 for folders and links.
    :param sha256: hex digest of a file's content, empty for the rest.
    :param target: what a link points at, empty for the rest.
    """

    path: str
    type: Literal["file", "dir", "link"]
    mode: int
    mtime_ns: int
    size: int = 0
    sha256: str = ""
    target: str = ""

    @property
    def content(self) -> str:
        """Type and content in one word: equal words mean that restoring one over the other changes no byte."""
        if self.type == "file":
            return self.sha256
        return f"link:{self.target}" if self.type == "link" else "dir"


@dataclass(frozen=True, slots=True)
class Layer:
    """What a step did to the workspace.

    :param entries: what it added or changed, as it left it, sorted by path (so folders come before what they hold).
    :param deleted: what it removed, sorted by path.
    :param before: for each path of either that existed before the step: its :attr:`Entry.content` then.
    """

    entries: tuple[Entry, ...] = ()
    deleted: tuple[str, ...] = ()
    before: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ArchiveRef:
    """Where a step's layer is kept: the store's key of the archive, and the layer's name inside it."""

    key: str
    layer: str


@dataclass(frozen=True, slots=True)
class Values:
    """What a step hands on besides files.

    :param env: variables, from ``$GITHUB_ENV``.
    :param path: folders to put in front of ``PATH``, the last one first, from ``$GITHUB_PATH``.
    :param outputs: from ``$GITHUB_OUTPUT``.
    :param summary: Markdown, from ``$GITHUB_STEP_SUMMARY``.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Partial:
    """What an unfinished step left for its next try, as a store keeps it; never taken for an output.

    :param workspace: paths of the workspace that the step names in ``partial``.
    :param folder: what is in the step's own folder (``$CHECKPOINT_DIR``).
    """

    workspace: Layer
    folder: Layer
    archive: ArchiveRef


@dataclass(frozen=True, slots=True)
class Record:
    """What is kept of a step.

    :param parts: the fingerprint's fields, each as a digest or short text, so that a change can be named.
    :param exit_code: of the last try; ``None`` when it has none (killed by a signal, still running), or when nothing of
        ours has seen it end: see :attr:`accepted`.
    :param signal: number of the signal that ended the last try.
    :param tries: tries made in the last run of the step.
    :param started: wall-clock start of the last try, seconds since the epoch; for people only.
    :param duration: seconds the last try took, by the monotonic clock.
    :param error: one line that says why it is not done.
    :param layer: what it left (a declared output has no ``deleted`` and no ``before``).
    :param result: digest of what it left, for the steps that need it.
    :param values: what it handed on; nothing secret is among it.
    :param withheld: names of what it handed on and nobody may keep, as its value is secret.
    :param partial: what is kept of an unfinished try.
    """

    step: str
    status: Status
    fingerprint: str
    command: str
    parts: Mapping[str, str] = field(default_factory=dict)
    exit_code: int | None = None
    signal: int | None = None
    tries: int = 0
    started: float = 0.0
    duration: float = 0.0
    error: str = ""
    layer: Layer = Layer()
    result: str = ""
    log: str = ""
    archive: ArchiveRef | None = None
    values: Values = Values()
    withheld: tuple[str, ...] = ()
    partial: Partial | None = None

    @property
    def accepted(self) -> bool:
        """Whether a person took it as done, as it is, without running it."""
        return self.status is Status.DONE and self.exit_code is None


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to one step, and why.

    :param detail: what differs, old → new, or empty.
    """

    step: str
    action: Action
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision for each step of a job, in order."""

    job: str
    decisions: tuple[Decision, ...]
