"""Calls made beside each other, a few at a time."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["Crew", "each"]

_T = TypeVar("_T")


class Crew:
    """Makes calls in threads of their own. Leaving its block waits for all of them.

    The threads do not keep the process alive: a transfer that nobody waits for any more must not delay its end.

    :param size: calls at a time.
    :param on_failure: told once, when the first call fails or the block is left by an exception, so that what the
        other calls do can be cut short. It must be quick.
    """

    def __init__(self, size: int, *, on_failure: Callable[[], None] | None = None) -> None:
        self._size = size
        self._busy = 0
        self._failure: BaseException | None = None
        self._on_failure = on_failure
        self._changed = threading.Condition()

    def submit(self, call: Callable[[], object]) -> None:
        """Start ``call`` as soon as fewer than ``size`` others run; wait until then.

        :raises BaseException: what the first failed call raised; ``call`` is then not made.
        """
        with self._changed:
            while self._busy >= self._size and self._failure is None:
                self._changed.wait()
            self._raise_failure()
            self._busy += 1
        try:
            threading.Thread(target=self._run, args=(call,), name="transfer", daemon=True).start()
        except RuntimeError:  # no thread to be had: then it is made here
            self._run(call)

    def finish(self) -> None:
        """Wait for all calls.

        :raises BaseException: what the first failed call raised.
        """
        self._wait()
        self._raise_failure()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.finish()
            return
        self._fail(error)
        self._wait()

    def _run(self, call: Callable[[], object]) -> None:
        try:
            if self._failure is None:
                call()
        except BaseException as error:  # raised again where somebody waits
            self._fail(error)
        finally:
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            first, self._failure = self._failure is None, self._failure or error
            self._changed.notify_all()
        if first and self._on_failure is not None:
            self._on_failure()

    def _wait(self) -> None:
        with self._changed:
            while self._busy:
                self._changed.wait()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def each(
    call: Callable[[_T], object],
    items: Iterable[_T],
    *,
    parallel: int,
    on_failure: Callable[[], None] | None = None,
) -> None:
    """Make ``call`` for each of ``items``, at most ``parallel`` at a time, in their order; items are taken as needed.

    After a failure no further call starts; those under way end first, then the first failure is raised.

    :param on_failure: as of :class:`Crew`.
    """
    with Crew(parallel, on_failure=on_failure) as crew:
        for item in items:
            crew.submit(partial(call, item))
