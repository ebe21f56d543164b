"""Secrets kept out of what is told of a run."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from checkpoint_action.model import Decision, Record
from checkpoint_action.runner.masks import hide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint_action.runner.events import Event, Listener

__all__ = ["Hiding"]


class Hiding:
    """Hands events on with every secret in their texts replaced: in reasons, errors and warnings.

    :param listen: who gets them.
    :param values: the secrets.
    """

    def __init__(self, listen: Listener, values: Sequence[str]) -> None:
        self._listen = listen
        self._values = values

    def __call__(self, event: Event) -> None:
        """Hand an event on."""
        if self._values:
            told = {field.name: getattr(event, field.name) for field in fields(event)}
            event = replace(event, **{name: self._hidden(value) for name, value in told.items()})
        self._listen(event)

    def _hidden(self, value: Any) -> Any:  # whatever an event may hold
        if isinstance(value, str):
            return hide(value, self._values)
        if isinstance(value, Decision):
            return replace(value, detail=hide(value.detail, self._values))
        if isinstance(value, Record):
            return replace(value, error=hide(value.error, self._values), log=hide(value.log, self._values))
        return value
