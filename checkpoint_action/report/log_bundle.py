"""Copies of step logs that may leave the machine: without secrets, and not too large."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from checkpoint_action.jobfile.values import log_name, name_from
from checkpoint_action.model import Status
from checkpoint_action.report.log_file import opened_log
from checkpoint_action.report.words import size
from checkpoint_action.runner.disguises import CREDENTIALS, disguised
from checkpoint_action.runner.masks import MaskWatcher
from checkpoint_action.runner.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from checkpoint_action.runner.disguises import Pattern

__all__ = ["LOGS_LIMIT", "LogBundle", "StepLog", "bundle_logs", "likely_secrets"]

LOGS_LIMIT = 64 << 20
"""Bytes of all logs of a bundle by default."""

_CHUNK = 1 << 18
_UNDONE = frozenset({Status.FAILED, Status.TIMEOUT, Status.INTERRUPTED})
_MOST_HIDDEN = 64 << 10  # characters of all values: the patterns for more take minutes to make
_SECRET_NAME = re.compile(
    r"(?:\A|_)(?:TOKEN|SECRETS?|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|KEY|API_?KEY|\w*APIKEY|PAT)(?:\Z|_)",
    re.IGNORECASE,
)
_SHORTEST = 8  # characters of a value that is taken for a secret for its name's sake: a number is none


@dataclass(frozen=True, slots=True)
class StepLog:
    """The log of a step as its last try left it.

    :param status: how that try ended.
    """

    step: str
    path: Path
    status: Status


@dataclass(frozen=True, slots=True)
class LogBundle:
    """What may be uploaded.

    :param files: absolute paths of the copies, in the order of the steps.
    :param of: the same, by step.
    :param notes: lines that say what is not among them, and why.
    """

    files: tuple[Path, ...]
    notes: tuple[str, ...]
    of: Mapping[str, Path] = field(default_factory=dict)


def bundle_logs(
    logs: Sequence[StepLog],
    folder: Path,
    *,
    which: Literal["on-failure", "always"],
    secrets: Iterable[str] = (),
    limit: int = LOGS_LIMIT,
) -> LogBundle:
    """Put redacted copies of logs into a folder.

    What is hidden: the values given, those that any of the logs masks with ``::add-mask::``, both also in the forms of
    :func:`~checkpoint_action.runner.disguises.disguised`, and all that looks like a credential. Logs are read as they
    are needed: the memory used does not depend on their size.

    :param logs: all of the run, as what one step masks another may print; a log that is not there is left out.
    :param folder: made where it is missing.
    :param which: logs of steps that failed, timed out or were interrupted, or of every step that ran.
    :param secrets: values to hide; a longer one line by line.
    :param limit: bytes that are taken of all logs. Small ones are taken whole; large ones share what is left, and
        lose their middle, in whose place a line says so.
    :raises OSError: the folder cannot be made.
    """
    wanted = [log for log in logs if which == "always" or log.status in _UNDONE]
    if not wanted:
        return LogBundle((), ())
    notes: list[str] = []
    values = {*secrets, *_masked(logs)}
    if sum(map(len, values)) > _MOST_HIDDEN:
        return LogBundle((), (f"no step log is uploaded: there are too many secret values to hide ({len(values)})",))
    patterns = [*disguised(values), *CREDENTIALS]
    sizes = {log.step: found for log in wanted if (found := _size(log.path, notes, log.step)) is not None}
    shares = _shares(sizes, limit)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    files: dict[str, Path] = {}
    names: set[str] = set()
    for log in wanted:
        if log.step not in sizes:
            continue
        target = folder / _free_name(log.step, names)
        try:
            _copy(log.path, target, patterns, shares[log.step])
        except OSError as error:
            with suppress(OSError):
                target.unlink()
            notes.append(f"the log of step '{log.step}' is not uploaded: {error.strerror or error}")
        else:
            files[log.step] = target
    return LogBundle(tuple(files.values()), tuple(notes), files)


def likely_secrets(env: Mapping[str, str]) -> tuple[str, ...]:
    """Values of variables whose names say that they are secret.

    What a workflow gives to a step from its own secrets, nobody tells us of: the runner masks it in its log alone.
    """
    return tuple(value for name, value in env.items() if len(value) >= _SHORTEST and _SECRET_NAME.search(name))


def _masked(logs: Iterable[StepLog]) -> set[str]:
    """Values that a step has had masked."""
    values: set[str] = set()
    for log in logs:
        watcher = MaskWatcher()
        try:
            with opened_log(log.path, through_links=False) as file:
                while data := file.read(_CHUNK):
                    watcher.write(data)
        except OSError:
            pass  # it cannot be copied either
        watcher.close()
        values |= watcher.values
    return values


def _size(path: Path, notes: list[str], step: str) -> int | None:
    try:
        with opened_log(path, through_links=False) as file:
            return os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        return None  # it never came to a try
    except OSError as error:
        notes.append(f"the log of step '{step}' is not uploaded: {error.strerror or error}")
        return None


def _shares(sizes: dict[str, int], limit: int) -> dict[str, int]:
    """How much is taken of each log: what the small ones leave is shared by the large ones."""
    shares: dict[str, int] = {}
    left = limit
    for count, (step, length) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        shares[step] = min(length, left // (len(sizes) - count))
        left -= shares[step]
    return shares


def _free_name(step: str, names: set[str]) -> str:
    safe = name_from(step, "step")
    name, number = log_name(safe), 1
    while name.casefold() in names:
        number += 1
        name = log_name(f"{safe[:90]}-{number}")
    names.add(name.casefold())
    return name


def _copy(source: Path, target: Path, patterns: list[Pattern], share: int) -> None:
    with opened_log(source, through_links=False) as file, target.open("wb") as out:
        length = os.fstat(file.fileno()).st_size
        if length <= share:
            redactor = Redactor((), out.write, patterns=patterns)
            _feed(file, redactor, length)
            redactor.close()
            return
        first = share // 4  # what went wrong is told at the end
        redactor = Redactor((), out.write, patterns=patterns)
        _feed(file, redactor, first + redactor.held_back)  # and not closed: a secret may be cut here
        out.write(f"\n[checkpoint-run: {size(length - share)} of this log are left out here]\n".encode())
        begin = length - (share - first)
        before = min(redactor.held_back, begin)
        redactor = Redactor((), out.write, patterns=patterns, unseen=before)
        file.seek(begin - before)
        _feed(file, redactor, length - begin + before)
        redactor.close()


def _feed(file: BinaryIO, redactor: Redactor, count: int) -> None:
    while count > 0 and (data := file.read(min(count, _CHUNK))):
        redactor.write(data)
        count -= len(data)
