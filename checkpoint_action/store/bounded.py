"""Calls of a service of GitHub's, bounded in time and failing in no way but a store's."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.errors import Kind, StoreDeniedError, StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.toolkit.errors import (
    DeniedError,
    MissingEntryError,
    QuotaError,
    ReservedError,
    ToolkitError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["GRACE", "bounded"]

_T = TypeVar("_T")

GRACE = 5.0
"""Seconds past its limit after which a call is left alone, whatever it hangs in (a name server, say)."""


def bounded(store: str, what: str, seconds: float, call: Callable[[], _T], *, reach: str = "") -> _T:
    """The result of ``call``, in time: it runs in a thread that is left behind when it does not keep its limits.

    Name resolution and a trickling answer know no time limit of their own, and a job must never hang in them.

    :param store: what people call the store.
    :param what: what the call does, for messages.
    :param reach: what the job may do there, for whoever is denied something; or empty.
    :raises StoreError: the service or the disk fails, or it takes too long; of the kind that fits.
    """
    results: list[_T] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.append(call())
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name=f"{store}: {what}", daemon=True)
    thread.start()
    thread.join(seconds + GRACE)
    if results:
        return results[0]
    if not failures:
        raise StoreError(f"{store}: {what}: out of time", Kind.STORE_SLOW)
    try:
        raise failures[0]
    except DeniedError as error:
        more = f" ({reach})" if reach else ""
        raise StoreDeniedError(f"{store}: {error}{more}") from error
    except (QuotaError, UnavailableError) as error:
        raise StoreDeniedError(f"{store}: {error}") from error
    except MissingEntryError as error:
        raise StoreMissingError(f"{store}: {error}") from error
    except ReservedError as error:
        raise StoreTakenError(f"{store}: {error}") from error
    except ToolkitError as error:
        raise StoreError(f"{store}: {error}") from error
    except OSError as error:
        raise StoreError(f"{store}: {what}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}" if error.filename and error.strerror else str(error)
