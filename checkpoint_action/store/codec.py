"""Records, layers and entries as plain JSON values and back, strict on what is read.

Fields that equal their default are left out, unknown keys are ignored (a later version may add some), and a value of
the wrong type or form, or a number that no run can have had, is a ``ValueError`` that names the field. Standard library
only: the local journal uses it too.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from checkpoint_action.model import ArchiveRef, Entry, Layer, Partial, Record, Status, Values

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "archive_from_json",
    "archive_to_json",
    "entry_from_json",
    "entry_to_json",
    "layer_from_json",
    "layer_to_json",
    "record_from_json",
    "record_of_many",
    "record_to_json",
]

_Number = TypeVar("_Number", int, float)

_TEXT = frozenset({str})
MODE = re.compile(r"[0-7]{4}")
DIGEST = re.compile(r"[0-9a-f]{64}|")
_ALIKE = ("fingerprint", "result", "command")
_CODES = ("exit_code", "signal")
_NO_LAYER = Layer()
_NO_VALUES = Values()
PLAIN = re.compile(r"[ -~]{1,512}")
EXIT_CODES = (-(1 << 31), (1 << 32) - 1)  # signed on some systems, unsigned on Windows
SIGNALS = (0, 255)
TRIES = (0, 1_000_000_000)
SECONDS = (0, 1_000_000_000)


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """``entry`` as a JSON object; its mode is octal text."""
    value: dict[str, Any] = {
        "path": entry.path,
        "type": entry.type,
        "mode": f"{entry.mode:04o}",
        "mtime_ns": entry.mtime_ns,
    }
    return value | _given(size=entry.size, sha256=entry.sha256, target=entry.target)


def entry_from_json(value: object, where: str = "entry") -> Entry:
    """The entry that ``value`` describes.

    :param where: what to call it in an error.
    """
    fields = _Fields(value, where)
    kind = fields.text("type")
    if kind not in ("file", "dir", "link"):
        raise fields.fault("type", 'must be "file", "dir" or "link"')
    mode = fields.text("mode")
    if not MODE.fullmatch(mode):
        raise fields.fault("mode", 'must be an octal text like "0644"')
    size = fields.integer("size", 0)
    if size < 0:
        raise fields.fault("size", "must not be negative")
    sha256 = fields.text("sha256", "")
    if not DIGEST.fullmatch(sha256):
        raise fields.fault("sha256", "must be 64 hex digits")
    path = fields.text("path")
    if not path:
        raise fields.fault("path", "must not be empty")
    return Entry(
        path=path,
        type=cast("Literal['file', 'dir', 'link']", kind),
        mode=int(mode, 8),
        mtime_ns=fields.integer("mtime_ns"),
        size=size,
        sha256=sha256,
        target=fields.text("target", ""),
    )


def layer_to_json(layer: Layer) -> dict[str, Any]:
    """``layer`` as a JSON object."""
    return _given(
        entries=[entry_to_json(entry) for entry in layer.entries],
        deleted=list(layer.deleted),
        before=dict(layer.before),
    )


def layer_from_json(value: object, where: str = "layer") -> Layer:
    """The layer that ``value`` describes."""
    fields = _Fields(value, where)
    entries = fields.array("entries")
    return Layer(
        entries=tuple(entry_from_json(entry, f"{where}.entries[{index}]") for index, entry in enumerate(entries)),
        deleted=fields.words("deleted"),
        before=fields.texts("before"),
    )


def archive_to_json(archive: ArchiveRef) -> dict[str, Any]:
    """``archive`` as a JSON object."""
    return {"key": archive.key, "layer": archive.layer}


def archive_from_json(value: object, where: str = "archive") -> ArchiveRef:
    """The reference that ``value`` describes."""
    fields = _Fields(value, where)
    return ArchiveRef(key=fields.plain("key"), layer=fields.plain("layer"))


def record_to_json(record: Record) -> dict[str, Any]:
    """``record`` as a JSON object."""
    value: dict[str, Any] = {
        "step": record.step,
        "status": record.status.value,
        "fingerprint": record.fingerprint,
        "command": record.command,
    }
    return value | _given(
        parts=dict(record.parts),
        exit_code=record.exit_code,
        signal=record.signal,
        tries=record.tries,
        started=record.started,
        duration=record.duration,
        error=record.error,
        layer=layer_to_json(record.layer),
        result=record.result,
        log=record.log,
        archive=record.archive and archive_to_json(record.archive),
        values=_values_to_json(record.values),
        withheld=list(record.withheld),
        partial=record.partial and _partial_to_json(record.partial),
    )


def record_from_json(value: object, where: str = "record") -> Record:
    """The record that ``value`` describes."""
    fields = _Fields(value, where)
    try:
        status = Status(fields.text("status"))
    except ValueError:
        raise fields.fault("status", f"must be one of {', '.join(Status)}") from None
    layer, archive, values, partial = (fields.get(name) for name in ("layer", "archive", "values", "partial"))
    return Record(
        step=fields.text("step"),
        status=status,
        fingerprint=fields.text("fingerprint"),
        command=fields.text("command"),
        parts=fields.texts("parts"),
        exit_code=fields.optional_integer("exit_code", EXIT_CODES),
        signal=fields.optional_integer("signal", SIGNALS),
        tries=fields.within(fields.integer("tries", 0), "tries", TRIES),
        started=fields.number("started"),
        duration=fields.within(fields.number("duration"), "duration", SECONDS),
        error=fields.text("error", ""),
        layer=_NO_LAYER if layer is None else layer_from_json(layer, f"{where}.layer"),
        result=fields.text("result", ""),
        log=fields.text("log", ""),
        archive=None if archive is None else archive_from_json(archive, f"{where}.archive"),
        values=_NO_VALUES if values is None else _values_from_json(values, f"{where}.values"),
        withheld=fields.words("withheld"),
        partial=None if partial is None else _partial_from_json(partial, f"{where}.partial"),
    )


def record_of_many(value: Any, known: dict[str, str], step: str | None = None) -> Record:
    """The record that ``value`` describes, with the texts of other records where they say the same: most of them do.

    What a step leaves is part of each that needs it, and its names and words are those of all others.

    :param value: what JSON gave; some of its texts are exchanged for their like.
    :param known: the texts so far.
    :param step: the step's id, where that is at hand.
    """
    if isinstance(value, dict):
        if step is not None and value.get("step") == step:
            value["step"] = step
        for name in _ALIKE:
            text = value.get(name)
            if isinstance(text, str):
                value[name] = known.setdefault(text, text)
        parts = value.get("parts")
        if isinstance(parts, dict) and set(map(type, parts.values())) <= _TEXT:
            value["parts"] = {
                known.setdefault(name, name): known.setdefault(text, text) for name, text in parts.items()
            }
    return record_from_json(value)


def _values_to_json(values: Values) -> dict[str, Any]:
    return _given(env=dict(values.env), path=list(values.path), outputs=dict(values.outputs), summary=values.summary)


def _values_from_json(value: object, where: str) -> Values:
    fields = _Fields(value, where)
    return Values(fields.texts("env"), fields.words("path"), fields.texts("outputs"), fields.text("summary", ""))


def _partial_to_json(partial: Partial) -> dict[str, Any]:
    value: dict[str, Any] = {"archive": archive_to_json(partial.archive)}
    return value | _given(workspace=layer_to_json(partial.workspace), folder=layer_to_json(partial.folder))


def _partial_from_json(value: object, where: str) -> Partial:
    fields = _Fields(value, where)
    workspace, folder = fields.get("workspace"), fields.get("folder")
    return Partial(
        workspace=Layer() if workspace is None else layer_from_json(workspace, f"{where}.workspace"),
        folder=Layer() if folder is None else layer_from_json(folder, f"{where}.folder"),
        archive=archive_from_json(fields.get("archive"), f"{where}.archive"),
    )


def _given(**fields: Any) -> dict[str, Any]:
    """Those of the fields that say something; a code of 0 does."""
    return {name: value for name, value in fields.items() if value or (value == 0 and name in _CODES)}


class _Fields:
    """A JSON object whose values are taken out by name and type."""

    def __init__(self, value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise ValueError(f"{where}: must be an object, not {_kind(value)}")  # noqa: TRY004 - bad data, not a bug
        self._value: Mapping[str, Any] = value
        self._where = where

    def get(self, name: str) -> object:
        return self._value.get(name)

    def fault(self, name: str, rule: str) -> ValueError:
        if name in self._value:
            return ValueError(f"{self._where}.{name}: {rule}, not {_shown(self._value[name])}")
        return ValueError(f"{self._where}.{name}: {rule}")

    def text(self, name: str, default: str | None = None) -> str:
        value = self._value.get(name, default)
        if not isinstance(value, str):
            raise self.fault(name, "must be a text")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        value = self._value.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.fault(name, "must be a whole number")
        return value

    def optional_integer(self, name: str, limits: tuple[int, int]) -> int | None:
        return None if self._value.get(name) is None else self.within(self.integer(name), name, limits)

    def within(self, number: _Number, name: str, limits: tuple[int, int]) -> _Number:
        if not limits[0] <= number <= limits[1]:
            raise self.fault(name, f"must be from {limits[0]} to {limits[1]}")
        return number

    def plain(self, name: str) -> str:
        value = self.text(name)
        if not PLAIN.fullmatch(value):
            raise self.fault(name, "must be 1 to 512 printable ASCII characters")
        return value

    def number(self, name: str) -> float:
        value = self._value.get(name, 0.0)
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise self.fault(name, "must be a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.fault(name, "must be a number that is not endless")
        return number

    def array(self, name: str) -> list[Any]:
        value = self._value.get(name, [])
        if not isinstance(value, list):
            raise self.fault(name, "must be an array")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        value = self.array(name)
        for index, word in enumerate(value):
            if not isinstance(word, str):
                raise self.fault(f"{name}[{index}]", "must be a text")
        return tuple(value)

    def texts(self, name: str) -> dict[str, str]:
        value = self._value.get(name, {})
        if not isinstance(value, dict) or not set(map(type, value.values())) <= _TEXT:
            raise self.fault(name, "must be an object of texts")
        return dict(value)


def _shown(value: object) -> str:
    try:
        return ascii(value)[:80]
    except (ValueError, RecursionError):  # more digits than Python prints, or too deep
        return "this one"


def _kind(value: object) -> str:
    return "null" if value is None else type(value).__name__
