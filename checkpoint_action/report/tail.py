"""The last lines that a failed step printed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checkpoint_action.model import Status
from checkpoint_action.report.words import one_line
from checkpoint_action.runner import events
from checkpoint_action.runner.disguises import CREDENTIALS, disguised
from checkpoint_action.runner.masks import MaskWatcher
from checkpoint_action.runner.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["OutputTail"]

_KEPT = 8 << 10  # bytes
_LINES = 30
_MOST = 50  # steps: nobody reads more
_RAW = 64 << 10  # bytes, more than is kept and a secret at its beginning together
_COLORS = re.compile(rb"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")


class OutputTail:
    """Listens to a run, before those who show the lines, and gets the steps' output beside whoever else does.

    :param secrets: values that do not show. What a step masks, and what looks like a credential, does not either.
    :ivar of: by step id, the last lines of a failed step's last try: text for people, without colours.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(secrets)
        self._masks = MaskWatcher()
        self._raw = bytearray()
        self._cut = False
        self.of: dict[str, tuple[str, ...]] = {}

    @property
    def masked(self) -> frozenset[str]:
        """What the steps have had masked so far, in all tries."""
        return frozenset(self._masks.values)

    def write(self, data: bytes) -> None:
        """Look at a piece of output."""
        self._masks.write(data)
        self._raw += data
        if len(self._raw) > 2 * _RAW:
            del self._raw[:-_RAW]
            self._cut = True

    def __call__(self, event: events.Event) -> None:
        """A try begins or ends."""
        if isinstance(event, (events.StepStarted, events.StepRetried, events.OutputShown)):
            self._clear()
        elif isinstance(event, events.StepEnded):
            if event.record.status in (Status.FAILED, Status.TIMEOUT) and len(self.of) < _MOST:
                self.of[event.record.step] = self._lines()
            self._clear()

    def _clear(self) -> None:
        self._raw.clear()
        self._cut = False

    def _lines(self) -> tuple[str, ...]:
        self._masks.close()
        patterns = [*disguised([*self._secrets, *self._masks.values]), *CREDENTIALS]
        seen = bytearray()
        redactor = Redactor((), seen.extend, patterns=patterns)
        if self._cut:  # it may begin within a secret
            redactor = Redactor((), seen.extend, patterns=patterns, unseen=redactor.held_back)
        redactor.write(bytes(self._raw))
        redactor.close()
        text = _COLORS.sub(b"", seen[-_KEPT:]).decode("utf-8", "replace")
        lines = [line.rsplit("\r", 1)[-1] for line in text.replace("\r\n", "\n").rstrip().split("\n")]
        if len(seen) > _KEPT and len(lines) > 1:
            lines = lines[1:]  # it has lost its beginning
        return tuple(one_line(line.expandtabs()) for line in lines[-_LINES:]) if text.strip() else ()
