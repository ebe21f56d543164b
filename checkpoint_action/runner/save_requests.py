"""How a running step asks for its partial progress to be saved: files in the run's folder, so that it works everywhere
the step's files do, in a container with the folder mounted too."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import CheckpointError, Kind, StateWriteError, UsageError, lack_behind
from checkpoint_action.store.atomic import replacing

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["VARIABLE", "SaveDesk", "request_save"]

VARIABLE = "CHECKPOINT_SAVE"
"""The variable that tells a step how its requests begin."""

_REQUEST = ".request"
_ANSWER = ".answer"
_LOOK = 0.1  # seconds between looks for requests, and for an answer
_UNHEARD = 30.0  # seconds after which nobody is going to take a request any more
_TRIES = 50  # of an answer that there is no memory for
_PATIENCE_ON_STOP = 1.0  # seconds; a stopped run has few left


class SaveDesk:
    """Takes the requests of running steps and serves each step in a thread of its own.

    :param folder: where they come in.
    :param is_stopping: whether a stop was requested, after which no save is waited for any more.
    """

    def __init__(self, folder: Path, is_stopping: Callable[[], bool] = lambda: False) -> None:
        self._folder = folder
        self._is_stopping = is_stopping
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}
        self._heard: list[Path] = []
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def open_for(self, token: str, save: Callable[[], str]) -> str:
        """Take requests of a try from now on.

        :param save: saves what there is and says what it did; a :class:`CheckpointError` is the answer too.
        :returns: the value of :data:`VARIABLE` for it.
        """
        with self._lock:
            self._windows[token] = _Window(save)
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="save-requests", daemon=True)
                thread.start()
                self._thread = thread  # only one that runs can be waited for
        return str(self._folder / token)

    def close_for(self, token: str) -> None:
        """Take no more requests of a try. One that is being served is finished first, so that the step does not end for
        the engine while it is being saved; once a stop was requested not much longer."""
        with self._lock:
            window = self._windows.pop(token, None)
        if window is not None:
            window.wait(self._is_stopping)

    def close(self) -> None:
        """Stop looking."""
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._closed.wait(_LOOK):
            with suppress(MemoryError):  # what is heard and not passed on is so after the next look
                self._hear()
                while self._heard:
                    self._pass_on(self._heard[0])
                    del self._heard[0]

    def _hear(self) -> None:
        """Take away the requests that have come in, by which whoever asks sees that they are heard."""
        with suppress(OSError):  # the folder is gone: nothing comes in any more
            for request in sorted(self._folder.glob(f"*{_REQUEST}")):
                self._heard.append(request)
                try:
                    request.unlink()
                except OSError:  # given up meanwhile, or not a file at all
                    self._heard.pop()

    def _pass_on(self, request: Path) -> None:
        with self._lock:
            window = self._windows.get(request.name.split("-", 1)[0])
            is_taken = window is not None and window.take(request)
        if window is None:
            _answer(request, {"error": "the step that asks for this is over"})
        elif not is_taken:
            window.serve()


class _Window:
    """Serves the requests of one try: those that come in while it saves get the next save together."""

    def __init__(self, save: Callable[[], str]) -> None:
        self._save = save
        self._lock = threading.Lock()
        self._waiting: list[Path] = []
        self._thread: threading.Thread | None = None

    def take(self, request: Path) -> bool:
        """Serve a request, soon; whether a thread does. Where none is to be had, the caller has to :meth:`serve`."""
        with self._lock:
            if request not in self._waiting:
                self._waiting.append(request)
            if self._thread is not None and self._thread.is_alive():
                return True
            thread = threading.Thread(target=self.serve, name="save", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self._thread = threading.current_thread()
                return False
            self._thread = thread
            return True

    def wait(self, is_stopping: Callable[[], bool]) -> None:
        """Wait until all are served.

        :param is_stopping: once true, the wait is short: what a save must not do then, it sees for itself.
        """
        until: float | None = None
        while (thread := self._serving()) is not None and thread.is_alive():
            if until is None and is_stopping():
                until = time.monotonic() + _PATIENCE_ON_STOP
            if until is not None and time.monotonic() >= until:
                break
            thread.join(_LOOK)

    def _serving(self) -> threading.Thread | None:
        with self._lock:
            return self._thread

    def serve(self) -> None:
        """Serve all that wait."""
        while True:
            with self._lock:
                requests, self._waiting = self._waiting, []
                if not requests:
                    self._thread = None
                    return
            try:
                answer = {"said": self._save()}
            except CheckpointError as error:
                answer = {"error": str(error)}
            except Exception as error:  # the step must not wait for ever, whatever it is
                answer = {"error": str(lack_behind(error) or f"unexpected {type(error).__name__}: {error}")}
            for request in requests:
                _answer(request, answer)


def _answer(request: Path, answer: dict[str, str]) -> None:
    """Answer a request, and try that again where there is no memory for it: whoever asks waits."""
    for _ in range(_TRIES):
        try:
            with suppress(OSError), replacing(request.with_suffix(_ANSWER)) as file:
                file.write(json.dumps(answer).encode())
        except MemoryError:
            time.sleep(_LOOK)
        else:
            return


def request_save(prefix: str, *, patience: float = _UNHEARD) -> str:
    """Ask the run that this process belongs to, and wait until it is done.

    :param prefix: the value of :data:`VARIABLE`.
    :param patience: seconds until the run must have taken the request; saving itself may take longer.
    :returns: what was saved, in a line.
    :raises UsageError: there is no such run any more.
    :raises StateWriteError: it could not be saved.
    """
    request = Path(f"{prefix}-{os.urandom(4).hex()}{_REQUEST}")
    answer = request.with_suffix(_ANSWER)
    try:
        request.touch(mode=0o600)
    except OSError as error:
        raise UsageError(f"the run that started this step is over: {error.strerror}", Kind.NOT_IN_A_STEP) from None
    begin = time.monotonic()
    while True:
        said = _read(answer)
        if said is not None:
            return said
        if not request.parent.is_dir():
            raise UsageError("the run that started this step is over", Kind.NOT_IN_A_STEP)
        if request.exists() and time.monotonic() - begin > patience:
            request.unlink(missing_ok=True)
            raise StateWriteError("not saved: the run does not answer", Kind.NOT_SAVED)
        time.sleep(_LOOK / 2)


def _read(answer: Path) -> str | None:
    """What the run has answered, ``None`` where it has not yet.

    :raises StateWriteError: it could not save.
    """
    try:
        value = json.loads(answer.read_bytes())
        answer.unlink(missing_ok=True)
        fault, said = value.get("error"), str(value.get("said"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:
        raise StateWriteError(
            f"not saved, as far as one can tell: the run's answer cannot be read: {error}", Kind.NOT_SAVED
        ) from None
    if fault is not None:
        raise StateWriteError(f"not saved: {fault}", Kind.NOT_SAVED)
    return said
