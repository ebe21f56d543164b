"""The archives that a store holds, read with no trust in what is in them and no endless wait."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from checkpoint_action.errors import BundleError, Kind, StoreError, StoreMissingError
from checkpoint_action.runner.signing import check_signature
from checkpoint_action.runner.stored_state import state_of
from checkpoint_action.store.base import ListingLook
from checkpoint_action.store.bundle import LONGEST_HEADER, Short, parse_header
from checkpoint_action.store.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from checkpoint_action.runner.keys import KeyScheme, Origin
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.runner.stored_state import StoredState
    from checkpoint_action.store.base import Found, Store

__all__ = ["SLICE", "Archives", "StoreStoppedError", "reason"]

_T = TypeVar("_T")

SLICE = 0.05
"""Seconds after which whoever waits for the store looks whether a stop was requested."""

_FIRST_LOOK = 256 << 10
"""Bytes of an archive that are read first, to learn the state: small archives are there as a whole then."""

_LONGEST_LOOK = LONGEST_HEADER + (LONGEST_HEADER >> 6)  # what cannot be compressed takes a little more room
_MOST_LOOKUPS = 100
_LOOKUPS_AT_ONCE = 8
_MOST_NAMED = 3
_LONGEST_REASON = 300


class StoreStoppedError(StoreError):
    """A stop was requested meanwhile; the store may be as well as ever."""


class Archives:
    """The archives of one job in one store: of the newest the beginning is read, and each is fetched once when needed.

    :param folder: a folder of our own for what is fetched.
    :param warn: told of what a person should know.
    :param failed: told of a store that fails; it may raise.
    :param is_off: why the store is not asked any more, or an empty text.
    :param stop: ends every wait for the store.
    :param seconds: time that may be waited for what is read, all in all.
    :param signing_key: what an archive must be signed with to be looked at, if anything.
    """

    def __init__(
        self,
        store: Store,
        keys: KeyScheme,
        folder: Path,
        *,
        warn: Callable[[str], None],
        failed: Callable[[StoreError], None],
        is_off: Callable[[], str],
        stop: StopRequest | None,
        seconds: float,
        signing_key: bytes | None = None,
    ) -> None:
        self._store = store
        self._keys = keys
        self._folder = folder
        self._warn = warn
        self._failed = failed
        self._is_off = is_off
        self._stop = stop
        self._seconds = self._seconds_left = seconds
        self._signing_key = signing_key
        self._archives: dict[str, Path] = {}
        self._seen: set[str] = set()
        self._unusable: dict[str, str] = {}
        self._kind = Kind.ARCHIVE  # of the trouble with the last of them
        self._fetched = 0

    def newest_usable(self, steps: Sequence[str]) -> StoredState | None:
        """What the newest archive tells; where it is not usable, the newest usable one that ends with one of ``steps``.

        :raises StoreError: the store fails.
        """
        newest = self._ask(lambda: self._store.find(self._keys.prefix))
        if newest is None:
            return None
        state = self.state_in(newest)
        if state is not None:
            return state
        then = "starting afresh"
        for found in self._older_than(newest, steps):
            state = self.state_in(found)
            if state is not None:
                then = f"using an older checkpoint, {found.key}"
                break
        self.tell_unusable(then)
        return state

    def tell_unusable(self, then: str) -> None:
        """Say which archives were not usable.

        :param then: what is done instead.
        """
        faults = [f"{_line(key)} is not usable ({fault})" for key, fault in self._unusable.items()]
        more = f" and {len(faults) - _MOST_NAMED} more" if len(faults) > _MOST_NAMED else ""
        self._warn(f"{self._kind.value}: {self._store.name}: {', '.join(faults[:_MOST_NAMED])}{more}; {then}")

    def find(self, prefixes: Sequence[str]) -> list[Found | None]:
        """The newest archive for each of some beginnings of keys; they are asked for side by side.

        :raises StoreError: the store fails.
        """

        def ask() -> list[Found | None]:
            if isinstance(self._store, ListingLook):
                return self._store.find_each(prefixes)
            with Workers(_LOOKUPS_AT_ONCE) as workers:
                asked = [workers.start(self._store.find, prefix) for prefix in prefixes]
                return [one.result() for one in asked]

        found = self._ask(ask) if len(prefixes) > 1 else [self._ask(partial(self._store.find, one)) for one in prefixes]
        self._seen.update(one.key.lower() for one in found if one is not None)
        return found

    def gone(self, keys: Iterable[str]) -> set[str]:
        """Which archives the store does not have any more, or cannot be used.

        :raises StoreError: the store fails.
        """
        gone = {key for key in keys if key in self._unusable}
        unseen = sorted({key for key in keys if key.lower() not in self._seen} - gone)
        self.find(unseen)  # the whole key is a beginning, too
        return gone | {key for key in unseen if key.lower() not in self._seen}

    def state_in(self, found: Found) -> StoredState | None:
        """What an archive tells; ``None`` where it is not usable, which is noted."""
        if found.key in self._unusable:
            return None
        try:
            header = self._header_of(found)
            if self._signing_key is not None:
                check_signature(header, found.key, self._signing_key)
            return state_of(header, self._keys.job, found.key)
        except (StoreMissingError, BundleError) as error:
            fault, self._kind = reason(error), error.kind
        except StoreError:
            raise
        except Exception as error:  # whatever is in there, it is not what we wrote
            fault = reason(error)
        self._unusable[found.key] = fault
        path = self._archives.pop(found.key, None)
        if path is not None:
            with suppress(OSError):
                path.unlink()
        return None

    def _header_of(self, found: Found) -> dict[str, Any]:
        """What an archive says first; no more of it is read than that takes, roughly.

        :raises StoreMissingError: it is gone, or is known to be unusable.
        :raises BundleError: it is no archive of ours.
        """
        data, wanted = b"", _FIRST_LOOK
        while True:
            more = self._ask(partial(self._store.read, found, len(data), wanted - len(data)))
            is_whole = len(data) + len(more) < wanted
            data += more
            header = parse_header(data)
            if not isinstance(header, Short):
                if is_whole:
                    self._have(found, data)
                return header
            if is_whole:
                raise BundleError("the archive is cut off")
            if header.needed > _LONGEST_LOOK:
                raise BundleError(f"the archive's header has more than the {LONGEST_HEADER} bytes allowed")
            wanted = min(max(header.needed, 4 * len(data)), _LONGEST_LOOK)

    def _have(self, found: Found, content: bytes) -> None:
        """Take a whole archive for fetched."""
        path = self._next_path()
        with suppress(OSError):  # then it is fetched if it is needed
            path.write_bytes(content)
            self._archives[found.key] = path

    def _next_path(self) -> Path:
        self._fetched += 1
        return self._folder / f"fetched-{self._fetched - 1}.tar.zst"

    def _older_than(self, newest: Found, steps: Sequence[str]) -> list[Found]:
        """The archives that are not yet known to be unusable, newest first.

        A store only tells the newest entry of a prefix, so each step is asked for.
        """
        origin = self._keys.origin(newest.key)
        older: dict[str, tuple[Origin, Found]] = {}
        asked = 0
        for step in _nearest_first(steps, origin.step if origin else ""):
            for prefix in (self._keys.of_step(step), self._keys.of_step_in_run(step)):
                if asked == _MOST_LOOKUPS:
                    break
                asked += 1
                found = self._ask(partial(self._store.find, prefix))
                if found is None:
                    break
                origin = self._keys.origin(found.key)
                if origin is not None and found.key not in self._unusable:
                    older[found.key] = (origin, found)
                if origin is not None and origin.step == step.lower():
                    break  # else it is of a step whose id goes on after a hyphen, and may hide this one's
        return [found for _origin, found in sorted(older.values(), key=lambda pair: pair[0], reverse=True)]

    def fetch(self, found: Found) -> Path:
        """The archive on this machine.

        :raises StoreMissingError: it is gone, or is known to be unusable.
        :raises StoreError: it does not come; the store is then off, so that nothing else waits for it.
        """
        path = self._archives.get(found.key)
        if path is not None:
            return path
        if found.key in self._unusable:
            raise StoreMissingError(self._unusable[found.key])
        if self._is_off():
            raise StoreError(self._is_off())
        path = self._next_path()
        try:
            self._ask(partial(self._store.fetch, found, path))
        except StoreMissingError as error:
            self._unusable[found.key] = reason(error)
            raise
        except StoreStoppedError:
            raise
        except StoreError as error:
            self._failed(error)
            raise
        self._archives[found.key] = path
        return path

    def _ask(self, call: Callable[[], _T]) -> _T:
        """What the store answers; it is left alone when a stop is requested, or when all the time for it is used up.

        :raises StoreError: it fails, in whatever way.
        """
        answers: list[_T] = []
        failures: list[BaseException] = []
        ended = threading.Event()

        def work() -> None:
            try:
                answers.append(call())
            except BaseException as error:  # raised again where somebody waits
                failures.append(error)
            ended.set()

        begin = time.monotonic()
        if self.is_stopping():
            raise StoreStoppedError(f"{self._store.name}: stopped")
        threading.Thread(target=work, name="ask the store", daemon=True).start()
        try:
            while not ended.wait(SLICE):
                if self.is_stopping():
                    raise StoreStoppedError(f"{self._store.name}: stopped")
                if time.monotonic() - begin >= self._seconds_left:
                    raise StoreError(f"{self._store.name}: reading from it takes more than {self._seconds:g} s")
        finally:
            self._seconds_left -= time.monotonic() - begin
        if not failures:
            return answers[0]
        if isinstance(failures[0], StoreError):
            raise failures[0]
        raise StoreError(f"{self._store.name}: {reason(failures[0])}") from failures[0]

    def is_stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._stop is not None and self._stop.signum is not None


def _nearest_first(steps: Sequence[str], last: str) -> list[str]:
    """The steps in the order in which their archives are likely to be the newest, where ``last`` had the newest."""
    lower = [step.lower() for step in steps]
    position = lower.index(last) if last in lower else len(lower) - 1
    return [*lower[position::-1], *lower[position + 1 :]] if lower else []


def _line(text: str) -> str:
    """Text from elsewhere, fit for one line of a log."""
    return ascii(text)[1:-1] if not text.isprintable() else text


def reason(error: BaseException) -> str:
    """What went wrong, in one printable line."""
    text = _line(" ".join(str(error).split())[:_LONGEST_REASON])
    expected = isinstance(error, (StoreError, OSError, ValueError)) and text
    return text if expected else f"unexpected {type(error).__name__}{text and ': '}{text}"
