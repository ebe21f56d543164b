"""One exception tree: each kind knows its exit code; only ``cli`` and ``action`` turn one into an exit.

Beside the tree, which is for programs, stand the kinds of trouble, which are for people: one for each remedy, with a
code that is never given to another. ``error_texts`` has a page on each.
"""

from __future__ import annotations

import errno
from enum import Enum

__all__ = [
    "BundleError",
    "CheckpointError",
    "ExhaustedError",
    "JobFileError",
    "Kind",
    "LockError",
    "LockHeldError",
    "OutputError",
    "RunFailedError",
    "StateError",
    "StateWriteError",
    "StoreDeniedError",
    "StoreError",
    "StoreMissingError",
    "StoreTakenError",
    "TornError",
    "UsageError",
    "code_of",
    "failure_of",
    "kind_of_write",
    "lack_behind",
]


class Kind(str, Enum):
    """A kind of trouble. The code is published: a new kind gets a new one, and none is ever used again."""

    COMMAND_LINE = "CPR101"
    UNKNOWN_WORD = "CPR102"
    EXCLUSIVE = "CPR103"
    NO_SUCH_STEP = "CPR104"
    NO_STEPS = "CPR105"
    NO_JOB_FILE = "CPR106"
    BAD_NAME = "CPR107"
    DUPLICATE_STEP = "CPR108"
    BAD_VALUE = "CPR109"
    FOLDER = "CPR110"
    SAME_LOG = "CPR111"
    NO_LOG = "CPR112"
    NOT_IN_A_STEP = "CPR113"
    FILE_THERE = "CPR114"
    NO_DRAFT = "CPR115"
    ANSWER_LOST = "CPR116"

    NOT_YAML = "CPR201"
    JOB_FILE_VALUE = "CPR202"
    UNKNOWN_KEY = "CPR203"
    DUPLICATE_KEY = "CPR204"
    MISSING_KEY = "CPR205"
    UNKNOWN_NEED = "CPR206"
    CIRCLE = "CPR207"
    SECRET_COUNTS = "CPR208"  # noqa: S105  # a code
    VARIABLE_NAME = "CPR209"

    NO_SHELL = "CPR301"
    NO_GIT = "CPR302"
    UNDECIDED = "CPR303"
    NOT_ACCEPTED = "CPR304"
    STEPS_LEFT = "CPR305"
    EXHAUSTED = "CPR306"

    STATE_UNREADABLE = "CPR401"
    STATE_NEWER = "CPR402"
    STATE_OF_ANOTHER = "CPR403"
    STATE_DAMAGED = "CPR404"
    STATE_NOT_WRITTEN = "CPR405"
    DISK_FULL = "CPR406"
    HELD = "CPR407"
    NO_LOCKS = "CPR408"
    NOT_SAVED = "CPR409"

    STORE_FAILED = "CPR501"
    STORE_DENIED = "CPR502"
    STORE_MISSING = "CPR503"
    STORE_TAKEN = "CPR504"
    ARCHIVE = "CPR505"
    STORE_URL = "CPR506"
    STORE_LIBRARY = "CPR507"
    STORE_ACCESS = "CPR508"
    STORE_SLOW = "CPR509"
    UNSIGNED = "CPR510"
    NO_CHECKPOINT = "CPR511"
    WOULD_OVERWRITE = "CPR512"
    CI_RUN = "CPR513"
    SCOPE = "CPR514"

    INPUT = "CPR601"
    INPUT_STEPS = "CPR602"
    INPUT_FOLDER = "CPR603"
    NO_STORE = "CPR604"

    BUG = "CPR901"


_NO_MEMORY = (
    "there is too little memory, or a limit leaves too little of it; what is recorded stays recorded: "
    "make room or raise the limit, then run again, and the next run goes on"
)
_NO_THREADS = (
    "no more threads can be started, by a limit or for lack of memory; what is recorded stays recorded: "
    "end other programs or raise the limit, then run again, and the next run goes on"
)
# What the system says of a library that it has no memory to load; one that must not be run has a reason behind it.
_NOT_LOADED = ("failed to map segment from shared object", "Cannot allocate memory")
_CAUSES = 100  # more than follow from each other; some may be in a circle
_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}


def code_of(text: str) -> str:
    """The code that a line begins with, such as a warning that comes from an error; empty where it has none."""
    code, colon, _ = text.partition(": ")
    return code if colon and len(code) == 6 and code[:3] == "CPR" and code[3:].isdigit() else ""


def kind_of_write(error: OSError) -> Kind:
    """What kind of trouble it is that the state cannot be written."""
    return Kind.DISK_FULL if error.errno in _FULL else Kind.STATE_NOT_WRITTEN


class CheckpointError(Exception):
    """Base of every failure that is expected: its text is one line that says what, where and what to do.

    :param message: that line.
    :param kind: the kind of trouble, where it is not what errors of this class mostly are.
    """

    exit_code = 1
    kind = Kind.STEPS_LEFT

    def __init__(self, message: str, kind: Kind | None = None) -> None:
        super().__init__(message)
        if kind is not None:
            self.kind = kind

    @property
    def code(self) -> str:
        """The kind's code, for people to look up: ``CPR203``."""
        return self.kind.value

    @property
    def told(self) -> str:
        """The line with the code before it, for where nothing else tells the code."""
        return f"{self.code}: {self}"


class UsageError(CheckpointError):
    """The command line, the action's inputs or the job file cannot be used as they are."""

    exit_code = 2
    kind = Kind.COMMAND_LINE


class JobFileError(UsageError):
    """A fault in a job file.

    :param message: what is wrong and, where there is one, the nearest valid name.
    :param source: the file's name as the user gave it.
    :param line: line number, from 1.
    :param column: column number, from 1.
    :param kind: the kind of trouble, where it is not a wrong value.
    """

    kind = Kind.JOB_FILE_VALUE

    def __init__(self, message: str, *, source: str, line: int = 1, column: int = 1, kind: Kind | None = None) -> None:
        super().__init__(f"{source}:{line}:{column}: {message}", kind)
        self.source = source
        self.line = line
        self.column = column


class StateError(CheckpointError):
    """The local state cannot be read, or was written by a newer version."""

    exit_code = 2
    kind = Kind.STATE_UNREADABLE


class LockHeldError(CheckpointError):
    """Another run holds this job."""

    exit_code = 4
    kind = Kind.HELD


class LockError(CheckpointError):
    """The folder that holds the state gives no locks."""

    exit_code = 5
    kind = Kind.NO_LOCKS


class StateWriteError(CheckpointError):
    """The local state could not be written: what the disk holds is the state before this write."""

    exit_code = 5
    kind = Kind.STATE_NOT_WRITTEN


class OutputError(CheckpointError):
    """What was asked for could not be written to where it was to go."""

    exit_code = 5
    kind = Kind.ANSWER_LOST


class ExhaustedError(CheckpointError):
    """The machine, or a limit that is set on it, has no more memory or threads for us."""

    exit_code = 5
    kind = Kind.EXHAUSTED


class RunFailedError(CheckpointError):
    """A run has ended and not all steps are done.

    :param message: which step it is, and why.
    :param exit_code: what the command line exits with after such a run.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class StoreError(CheckpointError):
    """A store did not do what was asked. Fails a run only where the user asked for that."""

    kind = Kind.STORE_FAILED


class StoreDeniedError(StoreError):
    """The store refuses this run to read or to write, and will go on refusing."""

    kind = Kind.STORE_DENIED


class StoreMissingError(StoreError):
    """The store no longer holds the entry; it works otherwise."""

    kind = Kind.STORE_MISSING


class StoreTakenError(StoreError):
    """The key is taken, perhaps by an earlier try of this very call whose answer was lost; another key will do."""

    kind = Kind.STORE_TAKEN


class BundleError(StoreError):
    """An archive is damaged, not ours, or would write where it must not."""

    kind = Kind.ARCHIVE


class TornError(BundleError):
    """Files were put back half-way, and what was there before could not be put back either."""


def failure_of(error: Exception) -> CheckpointError | None:
    """What to tell of an error; ``None`` where it is a fault of ours.

    A lack of memory or threads comes before all that came of it, but for the failure of a store that is required.
    """
    if isinstance(error, StoreError):
        return error
    return lack_behind(error) or (error if isinstance(error, CheckpointError) else None)


def lack_behind(error: BaseException) -> ExhaustedError | None:
    """What to tell instead of an error that comes of a lack of memory or threads, however many others came of it since.

    It holds on to nothing: whoever lets go of the error has the memory of all that was going on.
    """
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None:
            break
        if text := _lack(cause):
            return ExhaustedError(text)
        cause = cause.__cause__ or cause.__context__
    return None


def _lack(error: BaseException) -> str:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return _NO_MEMORY
    if isinstance(error, ImportError) and str(error).endswith(_NOT_LOADED):
        return _NO_MEMORY
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return _NO_THREADS
    return ""
