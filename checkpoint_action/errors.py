"""One exception tree: each kind knows its exit code; only ``cli`` and ``action`` turn one into an exit."""

from __future__ import annotations

__all__ = [
    "BundleError",
    "CheckpointError",
    "JobFileError",
    "LockError",
    "LockHeldError",
    "OutputError",
    "StateError",
    "StateWriteError",
    "StoreDeniedError",
    "StoreError",
    "StoreMissingError",
    "StoreTakenError",
    "UsageError",
]


class CheckpointError(Exception):
    """Base of every failure that is expected: its text is one line that says what, where and what to do."""

    exit_code = 1


class UsageError(CheckpointError):
    """The command line, the action's inputs or the job file cannot be used as they are."""

    exit_code = 2


class JobFileError(UsageError):
    """A fault in a job file.

    :param message: what is wrong and, where there is one, the nearest valid name.
    :param source: the file's name as the user gave it.
    :param line: line number, from 1.
    :param column: column number, from 1.
    """

    def __init__(self, message: str, *, source: str, line: int = 1, column: int = 1) -> None:
        super().__init__(f"{source}:{line}:{column}: {message}")
        self.source = source
        self.line = line
        self.column = column


class StateError(CheckpointError):
    """The local state cannot be read, or was written by a newer version."""

    exit_code = 2


class LockHeldError(CheckpointError):
    """Another run holds this job."""

    exit_code = 4


class LockError(CheckpointError):
    """The folder that holds the state gives no locks."""

    exit_code = 5


class StateWriteError(CheckpointError):
    """The local state could not be written: what the disk holds is the state before this write."""

    exit_code = 5


class OutputError(CheckpointError):
    """What was asked for could not be written to where it was to go."""

    exit_code = 5


class StoreError(CheckpointError):
    """A store did not do what was asked. Fails a run only where the user asked for that."""


class StoreDeniedError(StoreError):
    """The store refuses this run to read or to write, and will go on refusing."""


class StoreMissingError(StoreError):
    """The store no longer holds the entry; it works otherwise."""


class StoreTakenError(StoreError):
    """The key is taken, perhaps by an earlier try of this very call whose answer was lost; another key will do."""


class BundleError(StoreError):
    """An archive is damaged, not ours, or would write where it must not."""
