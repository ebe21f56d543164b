"""What is seen of a workspace around each step: what it held when the step started, and what has changed since."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.model import AUTO
from checkpoint_action.runner.scan import Scan, difference

if TYPE_CHECKING:
    from checkpoint_action.model import Layer, Step
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.scan import Workspace

__all__ = ["SeenWorkspace"]


class SeenWorkspace:
    """The looks at one workspace.

    :ivar now: what it holds, ``None`` where something may have changed it since the last look.
    :ivar closed: folders that the last step left and that we may not look into.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._started: dict[str, Scan] = {}  # by step, what the workspace held when it started
        self.now: Scan | None = None
        self.closed: set[str] = set()

    def look(self, digests: ContentDigests) -> Scan:
        """See what it holds now."""
        self.now = self._workspace.scan(digests)
        return self.now

    def forget(self) -> None:
        """Something that nobody answers for may have changed it."""
        self.now = None

    def start(self, step: str, held: Scan) -> None:
        """Take note of what it holds when a step starts.

        :param step: its id.
        """
        self._started[step] = held

    def before(self, step: str) -> Scan:
        """What the workspace held when a step started, nothing where that is not known.

        :param step: its id.
        """
        return self._started.get(step, Scan())

    def forget_start(self, step: str) -> None:
        """A step has ended, and nobody asks again for what was there before."""
        self._started.pop(step, None)

    def changes(self, step: Step, declared: Layer, digests: ContentDigests) -> Layer:
        """The layer of a step that has just ended well.

        :param declared: what it declared and left, where it declared anything.
        """
        before = self.before(step.id)
        self.closed = set()
        if step.outputs == AUTO:
            self.now = self._workspace.scan(digests, before)
            self.closed = self.now.closed - before.closed
            return difference(before, self.now)
        self.now = None
        known = {entry.path: before[entry.path].content for entry in declared.entries if entry.path in before}
        return replace(declared, before=known)
