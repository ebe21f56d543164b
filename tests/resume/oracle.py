"""What a run has to do, thought out anew from the documentation: no code of the product is used here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tests.resume.disk import Folder, expanded

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from tests.resume.disk import Disk, Node, Tree
    from tests.resume.drafts import SoundStep
    from tests.resume.story import Cut

__all__ = ["Expected", "Oracle"]

Result: TypeAlias = "Hashable"


@dataclass(frozen=True, slots=True)
class _Done:
    """What is known of a step that has ended well.

    :param key: all that makes it the same step.
    :param left: what it left, path by path.
    :param result: what the steps that need it depend on.
    """

    key: tuple[Hashable, ...]
    left: Tree
    result: Result


@dataclass(slots=True)
class Expected:
    """What a run does.

    :ivar why: for each step that runs, the reason.
    :ivar cut_in: the step in which it is cut short.
    :ivar whole: whether all steps are done in the end.
    """

    ran: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    why: dict[str, str] = field(default_factory=dict)
    cut_in: str = ""
    whole: bool = True


def _declared(step: SoundStep) -> Hashable:
    """What a step declares to leave; the order counts where something is taken away."""
    ordered = any(pattern.startswith("!") for pattern in step.outputs)
    return tuple(step.outputs) if ordered else frozenset(step.outputs)


class Oracle:
    """Remembers each step by its id, as a run leaves it.

    :param disk: the workspace; the runs that are thought out here are made in it.
    """

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._known: dict[str, _Done | None] = {}
        self._declared: dict[str, Sequence[str]] = {}

    def run(
        self, steps: Sequence[SoundStep], outside: Mapping[str, str], cut: Cut | None, *, continue_on_error: bool
    ) -> Expected:
        """One run."""
        expected = Expected()
        places = {step.name: place for place, step in enumerate(steps)}
        self._declared = {step.name: step.outputs for step in steps}
        blocked: set[str] = set()
        for step in steps:
            needs = {need: self._known.get(need) for need in step.needs}
            if blocked.intersection(needs) or None in needs.values():
                blocked.add(step.name)
                expected.whole = False
                continue
            key = self._key(step, outside, {need: known.result for need, known in needs.items() if known})
            why = self._why(step, key, places)
            if not why:
                expected.skipped.append(step.name)
                continue
            expected.ran.append(step.name)
            expected.why[step.name] = why
            here = None
            if cut is not None and places[step.name] >= cut.at:
                here, cut = cut, None
                expected.cut_in = step.name
            done = self._perform(step, key, outside, here)
            expected.whole &= done
            if here is not None and here.stops:
                expected.whole &= step is steps[-1]
                break
            if not done and not continue_on_error:
                expected.whole = False
                break
        return expected

    def _key(self, step: SoundStep, outside: Mapping[str, str], needs: Mapping[str, Result]) -> tuple[Hashable, ...]:
        tree = self._disk.tree()
        paths, missing = expanded(tree, step.inputs, through=True)
        return (
            step.recipe.text(),
            step.shell,
            step.recipe.where,
            frozenset({**step.inherited, **step.env}.items()),
            frozenset((name, outside.get(name)) for name in step.pass_env),
            frozenset((path, tree[path]) for path in paths if not isinstance(tree[path], Folder)),
            frozenset(missing),
            _declared(step),
            frozenset(needs.items()),
        )

    def _why(self, step: SoundStep, key: tuple[Hashable, ...], places: Mapping[str, int]) -> str:
        known = self._known.get(step.name)
        if step.always:
            return "it always runs"
        if known is None:
            return "it is not done"
        if key != known.key:
            return "it is another step now"
        for path in known.left:
            node = self._disk.get(path)
            if node != self._last_left(path, places):
                return f"{path} is not as it was left"
        return ""

    def _last_left(self, path: str, places: Mapping[str, int]) -> Node:
        """What the last done step that owns a path left there: it must still declare it."""
        owners = [
            (place, known.left[path])
            for name, place in places.items()
            if (known := self._known.get(name)) and path in expanded(known.left, self._declared[name], through=False)[0]
        ]
        return max(owners)[1]

    def _perform(self, step: SoundStep, key: tuple[Hashable, ...], outside: Mapping[str, str], cut: Cut | None) -> bool:
        """Run a step; whether it is done then."""
        env = {**outside, **step.inherited, **step.env}
        code = step.recipe.perform(self._disk, env, cut.trip if cut else None)
        self._known[step.name] = None
        if code or (cut is not None and cut.stops and (cut.how != "stop-after" or step.outputs)):
            return False  # outputs are no longer read once a stop is requested
        tree = self._disk.tree()
        paths, missing = expanded(tree, step.outputs, through=False)
        if missing:
            return False
        left = {path: tree[path] for path in paths}
        self._known[step.name] = _Done(key, left, frozenset(left.items()) if left else ("no outputs", key))
        return True
