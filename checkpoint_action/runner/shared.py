"""What several machines have done of one job at a time: each has its own newest archive, and none tells of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.runner.keys import Origin
from checkpoint_action.runner.stored_state import StoredState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.runner.archives import Archives
    from checkpoint_action.runner.keys import KeyScheme
    from checkpoint_action.runner.sources import Source
    from checkpoint_action.store.base import Found

__all__ = ["merged", "state_of_all"]

_NEVER = Origin(0, 0, 0, "")


def state_of_all(archives: Archives, keys: KeyScheme, steps: Sequence[str]) -> StoredState | None:
    """What all machines together tell of some steps; ``None`` where there is nothing of the job.

    A machine looks for a step's newest archive before it runs the step. So that archive tells all that older ones of
    the step have told, of other steps too.

    :param steps: ids. Of any other step there is what happens to be told with these.
    :raises StoreError: the store fails.
    """
    [newest] = archives.find([keys.prefix])
    if newest is None:
        return None
    states = _states(archives, [newest])
    prefixes = [keys.of_step(step) for step in steps]
    if keys.scope != f"run{keys.run}".lower():  # else another run's newest archive hides this run's
        prefixes += [keys.of_step_in_run(step) for step in steps]
    known = {key for state in states for key in state.told.values()} | {newest.key}
    found = {one.key: one for one in archives.find(prefixes) if one is not None and one.key not in known}
    states += _states(archives, sorted(found.values(), key=lambda one: one.key))
    if len(states) <= len(found):
        archives.tell_unusable("what they alone tell of is done again")
    return merged(states, keys) if states else None


def _states(archives: Archives, found: Sequence[Found]) -> list[StoredState]:
    return [state for one in found if (state := archives.state_in(one)) is not None]


def merged(states: Sequence[StoredState], keys: KeyScheme) -> StoredState:
    """Several states as one.

    Of several records of a step the one counts that was told last, by this run where it has told any: another run has
    perhaps other files. How old the archive is that hands a record on says nothing of the record.
    """
    records, told = {}, {}
    ages: dict[str, tuple[bool, int, Origin]] = {}
    sources: dict[str, Source] = {}
    for state in states:
        for step, record in state.records.items():
            key = state.told[step]
            origin = keys.origin(key) or _NEVER
            age = (str(origin.run) == keys.run, origin.sequence, origin)  # runs of two systems are in no order
            if step not in ages or age > ages[step]:
                records[step], told[step], ages[step] = record, key, age
        for path, source in state.sources.items():
            other = sources.get(path)
            # Each machine has its own checkout; what any of them has made must be younger than all it was made from.
            if other is None or (other.digest == source.digest and other.mtime_ns > source.mtime_ns):
                sources[path] = source
    return StoredState(records, sources, told)
