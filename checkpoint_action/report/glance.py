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
from checkpoint_action.runner.basis import opened
from checkpoint_action.runner.recall import JOB_FILES, is_held, mark_of
from checkpoint_action.store.folders import check_owner

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

__all__ = ["glanced", "row_lines", "row_text"]

_VALUED = {"--job": "job", "--state-dir": "folder", "-f": "file", "--file": "file"}
_BEGINNING, _ENDING = ".checkpoint-run-", ".json"
_ENDED = {"pending", "done", "failed", "timeout", "interrupted"}
_LONGEST_NAME = 100
_NUMBERS = ("exit_code", "signal", "tries")
_PENDING = ("pending", "")
_HEAD = 4096  # bytes that the first lines of a snapshot fit into


def row_lines(job: str, steps: Iterable[str], texts: Mapping[str, tuple[str, str]]) -> list[str]:
    """The records of a job as lines, one a step.

    :param steps: ids in order; steps that have no record are pending.
    :param texts: of each step with a record, from :func:`row_text`.
    """
    words = {step: texts.get(step, _PENDING) for step in steps}
    if not words:
        return [f"job {job}: nothing recorded"]
    width, beside = max(map(len, words)), max(11, *(len(word) for word, _ in words.values()))
    return [
        f"job {job}",
        *(f"{step:<{width}}  {word:<{beside}}  {text}".rstrip() for step, (word, text) in words.items()),
    ]


def row_text(row: Mapping[str, Any]) -> tuple[str, str]:
    """The word for what has become of a step, and what else there is to say of it.

    :param row: its record as the state's files have it.
    """
    word = _word(row)
    tries, signal, code = row.get("tries", 0), row.get("signal"), row.get("exit_code")
    parts = [] if word == "running" or not tries else [duration(row.get("duration", 0.0))]
    if signal is not None or code is not None:
        parts.append(f"exit code {code}" if signal is None else f"signal {signal}")
    if tries > 1:
        parts.append(f"{tries} tries")
    return word, ", ".join(parts)


def _word(row: Mapping[str, Any]) -> str:
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
            with opened(f"{folder}/{name}") as file:
                if f'"job_file": "{mark}"'.encode() not in file.read(_HEAD):
                    continue
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
    with opened(f"{path}{_ENDING}") as snapshot, opened(f"{path}.journal") as journal:
        read = seals.Rows(snapshot, journal)
        if read.job != job or is_held(f"{path}.lock"):
            return None
        texts = {}
        known: dict[tuple[str, str], tuple[str, str]] = {}  # few texts come again and again
        for step, row in read:
            if row["status"] not in _ENDED or row["step"] != step or not _is_name(step):
                return None
            if any(type(row.get(name, 0)) is not int for name in _NUMBERS):
                return None
            text = row_text(row)
            texts[step] = known.setdefault(text, text)
    if not read.settled:
        return None
    order = json.loads(read.head["order"]) if mark else []
    if (mark and json.loads(read.head["job_file"]) != mark) or not all(map(_is_name, order)):
        return None
    return "".join(f"{line}\n" for line in row_lines(job, [*order, *texts], texts))
