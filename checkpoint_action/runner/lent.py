"""All that a run lends to its steps."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import StateWriteError, kind_of_write
from checkpoint_action.runner.progress import ProgressFolders
from checkpoint_action.runner.run_folder import RunFolder
from checkpoint_action.runner.save_requests import SaveDesk
from checkpoint_action.runner.shells import Scripts
from checkpoint_action.store.temporary import TemporaryFolder

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.model import Job
    from checkpoint_action.runner.journal import StatePaths

__all__ = ["Lent"]


class Lent:
    """Folders and files for a run and its steps, and the desk that takes their requests.

    :param state: where the folders lie; the caller holds the job's lock. Without it they are temporary, and then what
        an unfinished step puts into its own folder does not outlive the run.
    :param is_stopping: whether a stop was requested.
    """

    def __init__(self, job: Job, state: StatePaths | None, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._job = job
        self._state = state
        self._is_stopping = is_stopping
        self._temporary: TemporaryFolder | None = None

    def open(self) -> None:
        """Make ready for the first step.

        :raises StateWriteError: there is no place for it.
        """
        try:
            if self._state is None:
                self._temporary = TemporaryFolder("checkpoint-run-")
                base = Path(self._temporary.name)
                run, progress = base / "run", base / "progress"
            else:
                run, progress = self._state.run.absolute(), self._state.progress.absolute()
            self.folder = RunFolder(run)
            self.progress = ProgressFolders(progress, [step.id for step in self._job.steps])
            self.scripts = Scripts()
            self.desk = SaveDesk(self.folder.requests, self._is_stopping)
            self.folder.make()
        except OSError as error:
            place = error.filename or (tempfile.gettempdir() if self._state is None else self._state.run)
            raise StateWriteError(
                f"cannot make {place}: {error.strerror}; choose another --state-dir", kind_of_write(error)
            ) from None

    def close(self) -> None:
        """Take all of it back, except what unfinished steps have in their own folders."""
        with ExitStack() as closing:  # whatever one of them fails at, the others go too
            if self._temporary is not None:
                closing.callback(self._temporary.cleanup)
            closing.callback(self.progress.clear)
            closing.callback(self.folder.remove)
            closing.callback(self.scripts.close)
            closing.callback(self.desk.close)
