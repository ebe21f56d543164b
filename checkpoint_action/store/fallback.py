"""Two stores as one: what one of them does not take or give, the other may."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from checkpoint_action.errors import BundleError, StoreDeniedError, StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.store.base import PieceStore, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from checkpoint_action.store.base import FilePart, Found, Pieces

__all__ = ["FallbackStore"]

_T = TypeVar("_T")


class _Store(Store, PieceStore, Protocol):
    """Both, as the stores of GitHub's services are."""


class FallbackStore:
    """A :class:`~checkpoint_action.store.base.Store` over two: archives go to the first that takes them.

    What is looked for is looked for in both, and the newer counts. A store that fails to read is left alone for the
    rest of the run, one that fails to take an archive is only read from then on; each is said once.

    :param first: as ``second``, one that takes an entry in pieces too.
    :param order: what a key tells of its age, the greater the newer, or ``None``.
    :param moved: told why, and where things go instead; from any thread.
    :param read_only: whether the first is known to take nothing, so that it need not be tried.
    """

    def __init__(
        self,
        first: _Store,
        second: _Store,
        *,
        order: Callable[[str], tuple[object, ...] | None],
        moved: Callable[[str], None],
        read_only: bool = False,
    ) -> None:
        self._order = order
        self._moved = moved
        self._lock = threading.Lock()
        self._readable: list[_Store] = [first, second]
        self._writable: list[_Store] = [second] if read_only else [first, second]
        self._where: dict[str, _Store] = {}
        self._taken: Counter[int] = Counter()

    @property
    def name(self) -> str:
        """What people call the store that archives go to now."""
        return self._writable[0].name

    @property
    def reach(self) -> str:
        """What the stores that are read reach, in words, as far as they tell."""
        return "; ".join(said for store in self._readable if (said := store.reach))

    def find(self, prefix: str) -> Found | None:
        """The newer of what both have, or ``None``.

        :raises StoreError: neither can be asked.
        """
        stores = self._asked()
        found: list[tuple[_Store, Found]] = []
        faults: list[tuple[_Store, StoreError]] = []
        for store, answer in zip(stores, _side_by_side([partial(store.find, prefix) for store in stores]), strict=True):
            if isinstance(answer, StoreError):
                faults.append((store, answer))
            elif answer is not None:
                found.append((store, answer))
        if len(faults) == len(stores):
            raise _all_of([error for _store, error in faults])
        for store, error in faults:
            self._leave(store, error)
        if not found:
            return None
        store, newest = max(found, key=lambda pair: self._age(pair[1].key))
        self._where[newest.key] = store
        return newest

    def save(self, key: str, source: Path) -> None:
        """Keep the content of the file ``source`` under ``key`` in the first store that takes it.

        :raises StoreTakenError: another key will do.
        :raises StoreError: neither takes it.
        """
        faults: list[StoreError] = []
        for store in tuple(self._writable):
            try:
                store.save(key, source)
            except StoreError as error:
                if self._takes_another_key(store, error):
                    raise
                faults.append(error)
                continue
            self._where[key] = store
            self._took(store, faults)
            return
        raise _all_of(faults)

    def fetch(self, found: Found, target: Path) -> None:
        """Write the entry's content to the file ``target``, complete or not at all.

        :raises StoreMissingError: no store that can be asked has it.
        """
        self._from_where_it_is(found, lambda store: store.fetch(found, target))

    def read(self, found: Found, start: int, length: int) -> bytes:
        """Read ``length`` bytes of the entry's content, from byte ``start`` on; fewer where it ends before.

        :raises StoreMissingError: no store that can be asked has it.
        """
        return self._from_where_it_is(found, lambda store: store.read(found, start, length))

    @contextmanager
    def begin(self, key: str) -> Iterator[Pieces]:
        """Keep under ``key`` what is handed over in the block, in the first store that takes it.

        What one of them refuses in the middle is handed over again to the next.

        :raises StoreTakenError: another key will do.
        :raises StoreError: neither takes it.
        """
        handover = _Handover(tuple(self._writable), key, self._takes_another_key)
        try:
            yield handover
        except BaseException as error:
            with suppress(StoreError):  # the caller is told of the first failure
                handover.close(error)
            raise
        handover.close(None)
        if handover.finished:
            self._where[key] = handover.store
            self._took(handover.store, handover.faults)

    def _from_where_it_is(self, found: Found, call: Callable[[_Store], _T]) -> _T:
        known = self._where.get(found.key)
        stores = self._asked()
        missing: StoreError | None = None
        for store in [known] if known in stores and known is not None else stores:
            try:
                result = call(store)
            except StoreMissingError as error:
                missing = missing or error
            except BundleError:  # it has it, and it is no good
                raise
            except StoreError as error:
                if not self._leave(store, error):
                    raise
                missing = StoreMissingError(str(error))
            else:
                self._where[found.key] = store
                return result
        raise missing or StoreMissingError(f"{found.key} is gone")

    def _asked(self) -> list[_Store]:
        with self._lock:
            return list(self._readable)

    def _age(self, key: str) -> tuple[object, ...]:
        order = self._order(key)
        return order is not None, order or ()

    def _leave(self, store: _Store, error: StoreError) -> bool:
        """Leave a store alone from now on, where there is another; whether there is."""
        with self._lock:
            if store not in self._readable:
                return True  # as another thread saw
            if len(self._readable) == 1:
                return False
            self._readable.remove(store)
            [other] = self._readable
            self._writable = [other] if other in self._writable else self._writable
        self._moved(f"{error.told}; using {other.name} alone")
        return True

    def _takes_another_key(self, store: _Store, error: StoreError) -> bool:
        """Whether a store that did not take a key may take the next.

        Keys are never used twice: where the next is taken too, that is a refusal in other words.
        """
        if not isinstance(error, StoreTakenError):
            return False
        with self._lock:
            self._taken[id(store)] += 1
            return self._taken[id(store)] == 1

    def _took(self, store: _Store, faults: Sequence[StoreError]) -> None:
        """Remember which store takes archives, where others did not."""
        with self._lock:
            self._taken.clear()
            before = self._writable
            if store in before:
                self._writable = before[before.index(store) :]
        if faults and before != self._writable:
            self._moved(f"{_all_of(faults).told}; keeping steps in {store.name} instead")


class _Handover:
    """Pieces on their way to the first of some stores that takes them all.

    :param takes_another_key: whether a store that failed is to be tried with another key.
    :ivar store: the one they go to now.
    :ivar faults: why others do not have them.
    :ivar finished: whether one has all of them.
    """

    def __init__(
        self, stores: Sequence[_Store], key: str, takes_another_key: Callable[[_Store, StoreError], bool]
    ) -> None:
        self._takes_another_key = takes_another_key
        self.faults: list[StoreError] = []
        self.finished = False
        self._stores = list(stores)
        self.store = self._stores[0]
        self._key = key
        self._bodies: list[bytes | FilePart] = []
        self._parts: list[Any] = []
        self._context: AbstractContextManager[Pieces] | None = None
        self._entry: Pieces
        self._open()

    def _open(self) -> None:
        """Begin with the next store that lets us, and hand over what we have."""
        while self._stores:
            self.store = self._stores.pop(0)
            try:
                context = self.store.begin(self._key)
                self._entry = context.__enter__()
                self._context = context
                self._parts = [self._entry.put(body) for body in self._bodies]
                return
            except StoreError as error:
                self._drop(error)
        raise _all_of(self.faults)

    def put(self, body: bytes | FilePart) -> int:
        """Hand a piece over; its number."""
        self._bodies.append(body)
        try:
            self._parts.append(self._entry.put(body))
        except StoreError as error:
            self._drop(error)
            self._open()
        return len(self._bodies) - 1

    def finish(self, parts: Iterable[int]) -> None:
        """Make the entry of the pieces with these numbers, in this order, and visible."""
        wanted = list(parts)
        while not self.finished:
            try:
                self._entry.finish([self._parts[part] for part in wanted])
                self.finished = True
            except StoreError as error:
                self._drop(error)
                self._open()

    def close(self, error: BaseException | None) -> None:
        """Leave the store; nothing that is not finished stays."""
        context, self._context = self._context, None
        if context is not None:
            context.__exit__(type(error) if error else None, error, error.__traceback__ if error else None)

    def _drop(self, error: StoreError) -> None:
        """Leave the store for the next one, unless another key is to be tried."""
        with suppress(StoreError):
            self.close(error)
        if self._takes_another_key(self.store, error):
            raise error
        self.faults.append(error)


def _side_by_side(calls: Sequence[Callable[[], _T]]) -> list[_T | StoreError]:
    """What each call gives or fails with; calls that are made at the same time."""
    answers: dict[int, _T | StoreError] = {}
    failures: list[BaseException] = []

    def make(number: int, call: Callable[[], _T]) -> None:
        try:
            answers[number] = call()
        except StoreError as error:
            answers[number] = error
        except BaseException as error:  # a fault of ours, raised again where somebody waits
            failures.append(error)

    threads = [threading.Thread(target=make, args=pair, daemon=True) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [answers[number] for number in range(len(calls))]


def _all_of(faults: Sequence[StoreError]) -> StoreError:
    """One error for several; a denial where all are."""
    if len(faults) == 1:
        return faults[0]
    kind = StoreDeniedError if all(isinstance(error, StoreDeniedError) for error in faults) else StoreError
    return kind("; ".join(str(error) for error in faults))
