"""What is recorded of a job, a line for each step: told without loading what understands it, where all is well.

``status`` of a long job spends most of its time on loading modules. What a run has left whole needs none of them.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import islice

from checkpoint_action.report.plain import duration
from checkpoint_action.runner import seals
from checkpoint_action.runner.recall import JOB_FILES, content, is_held, mark_of
from checkpoint_action.store.folders import check_owner

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

__all__ = ["glanced", "row_lines"]

_VALUED = {"--job": "job", "--state-dir": "folder", "-f": "file", "--file": "file"}
_BEGINNING, _ENDING = ".checkpoint-run-", ".json"
_ENDED = {"pending", "done", "failed", "timeout", "interrupted"}
_LONGEST_NAME = 100
_NUMBERS = ("exit_code", "signal", "tries")


def row_lines(job: str, steps: Iterable[str], rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The records of a job as lines, one a step.

    :param steps: ids in order; steps that have no record are pending.
    :param rows: records as the state's files have them.
    """
    words = {step: _word(rows.get(step)) for step in steps}
    if not words:
        return [f"job {job}: nothing recorded"]
    width, beside = max(map(len, words)), max(11, *map(len, words.values()))
    lines = [f"job {job}"]
    for step, word in words.items():
        row = rows.get(step)
        if row is None:
            lines.append(f"{step:<{width}}  {word}")
            continue
        tries, signal, code = row.get("tries", 0), row.get("signal"), row.get("exit_code")
        parts = [] if word == "running" or not tries else [duration(row.get("duration", 0.0))]
        if signal is not None or code is not None:
            parts.append(f"exit code {code}" if signal is None else f"signal {signal}")
        if tries > 1:
            parts.append(f"{tries} tries")
        lines.append(f"{step:<{width}}  {word:<{beside}}  {', '.join(parts)}".rstrip())
    return lines


def _word(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "pending"
    status: str = row["status"]
    return "done (accepted)" if status == "done" and row.get("exit_code") is None else status


def glanced(words: Sequence[str]) -> str | None:
    """The answer to ``status``, of a job file or with ``--job NAME``; ``None`` where it takes more than a glance.

    So it is for other words, while a run is on, and where anything in the state is not as a run that ended has left it.

    :param words: the command line.
    """
    given: dict[str, str] = {}
    if len(words) % 2 == 0 or words[0] != "status":
        return None
    for flag, value in zip(islice(words, 1, None, 2), islice(words, 2, None, 2), strict=True):
        if flag not in _VALUED or _VALUED[flag] in given or not value or value.startswith("-"):
            return None
        given[_VALUED[flag]] = value
    if sys.platform == "win32" or ("job" in given and "file" in given):
        return None
    try:
        for number in range(3):
            os.fstat(number)  # else one of our files would get the number
        folder = given.get("folder", ".")
        if "job" in given:
            return _told(folder, given["job"])
        file = given.get("file") or next(filter(os.path.isfile, JOB_FILES))
        return _told_of_file(folder, mark_of(file))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, StopIteration, OverflowError, RecursionError):
        return None  # whoever looks closely says what it is


def _is_name(text: str) -> bool:
    plain = text.replace(".", "a").replace("_", "a").replace("-", "a")
    return text.isascii() and plain.isalnum() and text[0].isalnum() and len(text) <= _LONGEST_NAME


def _told_of_file(folder: str, mark: str) -> str | None:
    for name in os.listdir(folder):  # noqa: PTH208  # pathlib takes longer to load than all of this
        if name.startswith(_BEGINNING) and name.endswith(_ENDING):
            job = name[len(_BEGINNING) : -len(_ENDING)]
            if f'"job_file": "{mark}"'.encode() in content(f"{folder}/{name}"):
                return _told(folder, job, mark)
    return None


def _told(folder: str, job: str, mark: str = "") -> str | None:
    """The lines.

    :param mark: of the job file that says which steps there are; none where only what is recorded counts.
    """
    if not _is_name(job):
        return None
    path = f"{folder}/{_BEGINNING}{job}"
    check_owner(folder, [f"{path}{_ENDING}", f"{path}.journal"])
    data, journal = content(f"{path}{_ENDING}"), content(f"{path}.journal")
    if not seals.unseal(data)[2]:
        return None
    value = json.loads(data)
    if value["format"] != seals.FORMAT or value["job"] != job:
        return None
    if journal != seals.journal_of(value["sequence"], job, data) or is_held(f"{path}.lock"):
        return None
    rows = value["steps"]
    if any(row["status"] not in _ENDED or row["step"] != step or not _is_name(step) for step, row in rows.items()):
        return None
    if any(type(row.get(name, 0)) is not int for row in rows.values() for name in _NUMBERS):
        return None
    order = value["order"] if mark else []
    if (mark and value["job_file"] != mark) or not all(map(_is_name, order)):
        return None
    return "".join(f"{line}\n" for line in row_lines(job, [*order, *rows], rows))
