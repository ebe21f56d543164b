"""The same call for many things, a few at a time."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

__all__ = ["each"]

_T = TypeVar("_T")


def each(call: Callable[[_T], object], items: Iterable[_T], *, parallel: int) -> None:
    """Make ``call`` for each of ``items``, at most ``parallel`` at a time.

    After a failure no further call starts; those under way end first, then the first failure is raised.
    """
    stopped = threading.Event()

    def run(item: _T) -> None:
        if stopped.is_set():
            return
        try:
            call(item)
        except BaseException:
            stopped.set()
            raise

    with ThreadPoolExecutor(max_workers=parallel, thread_name_prefix="transfer") as pool:
        pending: set[Future[None]] = set()
        try:
            for item in items:
                if len(pending) >= parallel:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    _raise_first(done)
                pending.add(pool.submit(run, item))
            done, pending = wait(pending)
            _raise_first(done)
        except BaseException:
            stopped.set()
            raise


def _raise_first(done: Iterable[Future[None]]) -> None:
    for future in done:
        future.result()
