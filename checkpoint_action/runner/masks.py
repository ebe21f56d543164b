"""Values that a step asks to be kept out of sight."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from checkpoint_action.runner.redact import secret_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from checkpoint_action.model import Values

__all__ = ["MaskWatcher", "hide", "secret_texts", "without_secrets"]

_MARK = b"::add-mask::"
_LONGEST = 1 << 20  # bytes of one such command
_HIDDEN = "***"


class MaskWatcher:
    """Finds ``::add-mask::VALUE`` lines in a stream of bytes, wherever the pieces are cut.

    :ivar values: what must not be kept, each line of a longer value by itself too.
    """

    def __init__(self) -> None:
        self.values: set[str] = set()
        self._rest = b""

    def write(self, data: bytes) -> None:
        """Look at a piece."""
        text = self._rest + data
        at = text.find(_MARK)
        while at >= 0:
            end = text.find(b"\n", at)
            if end < 0:
                self._rest = text[at : at + _LONGEST]
                return
            self._note(text[at + len(_MARK) : end])
            at = text.find(_MARK, end)
        self._rest = text[-len(_MARK) + 1 :]

    def close(self) -> None:
        """Look at what has no end of line."""
        if self._rest.startswith(_MARK):
            self._note(self._rest[len(_MARK) :])
        self._rest = b""

    def _note(self, raw: bytes) -> None:
        # The runner undoes the escapes in this order: the percent sign last.
        text = raw.decode("utf-8", "surrogateescape").rstrip("\r")
        for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            text = text.replace(escape, char)
        self.values.update(part for part in (text.strip(), *(line.strip() for line in text.splitlines())) if part)


def hide(text: str, secrets: Iterable[str]) -> str:
    """A text for people with every secret in it replaced."""
    for value in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(value, _HIDDEN)
    return text


def secret_texts(names: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """The values of secret variables as texts; see :func:`~checkpoint_action.runner.redact.secret_values`."""
    return [value.decode("utf-8", "surrogateescape") for value in secret_values(names, env)]


def without_secrets(values: Values, secrets: Iterable[str]) -> tuple[Values, tuple[str, ...]]:
    """What of a step's values may be kept, and the names of what may not.

    In a summary, which is for people alone, secrets are replaced.

    :param secrets: values that must not be kept; one that has such a value in it may not be either.
    """
    hidden = sorted(filter(None, secrets), key=len, reverse=True)
    if not hidden:
        return values, ()

    def secret(text: str) -> bool:
        return any(value in text for value in hidden)

    def redacted(text: str) -> str:
        return hide(text, hidden)

    kept = replace(
        values,
        env={name: text for name, text in values.env.items() if not secret(text) and not secret(name)},
        path=tuple(folder for folder in values.path if not secret(folder)),
        outputs={name: text for name, text in values.outputs.items() if not secret(text) and not secret(name)},
        summary=redacted(values.summary),
    )
    withheld = [redacted(name) for name in values.env if name not in kept.env]
    withheld += [f"outputs.{redacted(name)}" for name in values.outputs if name not in kept.outputs]
    withheld += ["PATH"] * (len(kept.path) < len(values.path))
    return kept, tuple(withheld)
