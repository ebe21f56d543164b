"""What a store tells of one job; one that fails tells nothing, and costs nothing more unless it is required."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, StoreError
from checkpoint_action.runner.archives import StoreStoppedError, reason
from checkpoint_action.runner.shared import state_of_all

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checkpoint_action.model import Record
    from checkpoint_action.runner.archives import Archives
    from checkpoint_action.runner.keys import KeyScheme
    from checkpoint_action.runner.stored_state import StoredState
    from checkpoint_action.store.base import Store

__all__ = ["JobInStore"]


class JobInStore:
    """One job's archives in one store, asked what they tell of its steps.

    :param warn: told of what a person should know.
    :param failed: told of a store that fails; it raises where the store is required.
    :param is_off: why the store is not asked any more, or an empty text.
    :param missed: told that the store has nothing of the job, with what it says of its reach (or nothing).
    """

    def __init__(
        self,
        store: Store,
        keys: KeyScheme,
        archives: Archives,
        *,
        warn: Callable[[str], None],
        failed: Callable[[StoreError], None],
        is_off: Callable[[], str],
        missed: Callable[[str], None],
    ) -> None:
        self._store = store
        self._keys = keys
        self._archives = archives
        self._warn = warn
        self._failed = failed
        self._is_off = is_off
        self._missed = missed

    def state(self, steps: Sequence[str]) -> StoredState | None:
        """What it tells, ``None`` where that is nothing.

        Where the newest archive is not usable, the newest usable one of those that end with one of ``steps`` is taken.

        :param steps: ids of the job's steps.
        :raises StoreError: the store fails, and it is required.
        """
        try:
            if self._keys.shared:
                state = state_of_all(self._archives, self._keys, steps)
            else:
                state = self._archives.newest_usable(steps)
        except StoreStoppedError:
            return None
        except StoreError as error:
            self._failed(error)
            return None
        except Exception as error:  # nothing that a store holds may cost the job
            said = f"{self._store.name}: no checkpoint is usable ({reason(error)}); starting afresh"
            self._warn(f"{Kind.ARCHIVE.value}: {said}")
            return None
        if state is None and not self._is_off():
            self._missed(self._store.reach)
        return state

    def newest_sequence(self) -> int:
        """The number of the newest archive, 0 where there is none that tells it.

        :raises StoreError: the store fails, and it is required.
        """
        try:
            [newest] = self._archives.find([self._keys.prefix])
        except StoreStoppedError:
            return 0
        except StoreError as error:
            self._failed(error)
            return 0
        origin = None if newest is None else self._keys.origin(newest.key)
        return 0 if origin is None else origin.sequence

    def lost(self, records: Mapping[str, Record]) -> set[str]:
        """The done steps whose archives are not there any more.

        :raises StoreError: the store fails, and it is required.
        """
        kept = {step: record.archive.key for step, record in records.items() if record.archive is not None}
        try:
            gone = self._archives.gone(kept.values())
        except StoreStoppedError:
            return set()
        except StoreError as error:
            self._failed(error)
            return set()
        return {step for step, key in kept.items() if key in gone}

    def still_there(self, local: Mapping[str, Record], told: Mapping[str, Record]) -> dict[str, Record]:
        """Those of this machine's records whose archives this store has.

        They may be in another that the job was in before, or gone. What the store tells of itself is believed.

        :param told: the records that it tells.
        :raises StoreError: the store fails, and it is required.
        """
        named = {record.archive.key for record in told.values() if record.archive is not None}
        kept = {
            step: record
            for step, record in local.items()
            if record.archive is not None and record.archive.key.startswith(self._keys.prefix)
        }
        lost = self.lost({step: one for step, one in kept.items() if one.archive and one.archive.key not in named})
        return {step: record for step, record in kept.items() if step not in lost}
