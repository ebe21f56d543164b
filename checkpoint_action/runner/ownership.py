"""Which done step last wrote each path of a workspace, and what each of them found there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkpoint_action.model import Entry, Layer

__all__ = ["Ownership", "paths_of"]


class Ownership:
    """Which done step last wrote each path.

    A path must be as the last done step that owns it left it: an earlier step is not blamed for a later one's edit.
    """

    def __init__(self) -> None:
        self._claims: dict[str, dict[int, Entry | None]] = {}
        self._found: dict[tuple[int, str], str] = {}

    def put(self, position: int, old: Layer, new: Layer) -> None:
        """A step's layer takes the place of its former one.

        :param position: the step's place in the job.
        """
        for path in paths_of(old):
            self._found.pop((position, path), None)
            claims = self._claims.get(path, {})
            claims.pop(position, None)
            if not claims:
                self._claims.pop(path, None)
        for entry in new.entries:
            self._claims.setdefault(entry.path, {})[position] = entry
        for path in new.deleted:
            self._claims.setdefault(path, {})[position] = None
        self._found.update({(position, path): content for path, content in new.before.items()})

    def found_by(self, position: int, path: str, present: Entry | None) -> str | None:
        """The content that a step found at a path that is as steps from it on have left it since; else ``None``.

        :param position: the step's place in the job.
        :param present: what is there.
        """
        claims = self._claims.get(path)
        if not claims or max(claims) < position:
            return None
        left = claims[max(claims)]
        if (left.content if left else "") != (present.content if present else ""):
            return None
        before = [claim for claim in claims if claim < position]
        if not before:
            return self._found.get((min(claims), path))
        last = claims[max(before)]
        return last.content if last else ""

    def wanted(self, paths: list[str]) -> dict[str, Entry | None]:
        """What each path should be; ``None`` where a step removed it."""
        wanted: dict[str, Entry | None] = {}
        for path in paths:
            claims = self._claims[path]
            wanted[path] = claims[max(claims)]
        return wanted

    def wanted_before(self, position: int, paths: list[str]) -> dict[str, Entry | None]:
        """What each path should be when a step starts: as the last step before it left it.

        :param position: the step's place in the job.
        """
        wanted: dict[str, Entry | None] = {}
        for path in paths:
            claims = self._claims[path]
            wanted[path] = claims[max(claim for claim in claims if claim < position)]
        return wanted

    def overwritten(self, position: int, path: str, present: Entry | None) -> bool:
        """Whether a path is as a step after this one left it.

        :param position: the step's place in the job.
        :param present: what is there.
        """
        claims = self._claims.get(path, {})
        last = max(claims, default=position)
        if last <= position:
            return False
        left = claims[last]
        return left is present if left is None or present is None else left.content == present.content

    def known_contents(self, path: str) -> set[str]:
        """Each content that a done step left at a path; an empty text where one removed it."""
        return {entry.content if entry else "" for entry in self._claims.get(path, {}).values()}

    def stays(self, position: int, path: str, present: Entry | None) -> int | None:
        """The step after this one that has left a path as it is; ``None`` where it is not as the last one left it.

        :param position: the step's place in the job.
        :param present: what is there.
        """
        return max(self._claims[path]) if self.overwritten(position, path, present) else None


def paths_of(layer: Layer) -> list[str]:
    """All paths that a layer says something of."""
    return [*(entry.path for entry in layer.entries), *layer.deleted]
