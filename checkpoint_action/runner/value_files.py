"""The files through which a step hands values on, read as GitHub's runner reads them."""

from __future__ import annotations

import codecs
import os
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from checkpoint_action.model import Values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["SUMMARY_LIMIT", "ValueFileError", "ValueFiles", "ValueFilesPool", "parse_paths", "parse_values"]

SUMMARY_LIMIT = 1 << 20
"""Bytes of a summary; of a larger one GitHub shows nothing, and nothing is kept."""

_LONGEST = 16 << 20  # bytes of one of the other files; whatever is in a larger one was not meant as a value

_NOTHING = Values()  # one for all: there may be many steps
_FILES = {"env": "ENV", "path": "PATH", "output": "OUTPUT", "summary": "STEP_SUMMARY"}


class ValueFileError(Exception):
    """What a step wrote into one of the files is not in the documented form; the text says which and why."""


def parse_values(text: str) -> dict[str, str]:
    """Names and values of ``$GITHUB_ENV`` or ``$GITHUB_OUTPUT``: ``NAME=VALUE``, or ``NAME<<DELIMITER`` and lines.

    Which of the two a line is depends on the sign that comes first in it. A delimiter ends a value only as a whole
    line, exactly as it was given; the end of the line before it is no part of the value. Empty lines between values
    are nothing. Of two values of one name the last counts. (GitHub's runner, ``FileCommandManager.cs``.)

    :raises ValueFileError: a line is neither of the two, or a delimiter does not come. It names the line by its number,
        as what is in it may be secret.
    """
    values: dict[str, str] = {}
    lines = _Lines(text)
    for line, _end in lines:
        if not line:
            continue
        begin = lines.number
        equals, heredoc = line.find("="), line.find("<<")
        if equals >= 0 and (heredoc < 0 or equals < heredoc):
            name, value = line[:equals], line[equals + 1 :]
            if not name:
                raise ValueFileError(f"line {begin} has no name before its '='")
        elif heredoc >= 0:
            name, delimiter = line[:heredoc], line[heredoc + 2 :]
            if not name or not delimiter:
                raise ValueFileError(f"line {begin} has no name before its '<<', or no delimiter after it")
            value = _until(lines, delimiter)
        else:
            raise ValueFileError(f"line {begin} is neither NAME=VALUE nor NAME<<DELIMITER")
        if "\0" in name or "\0" in value:
            raise ValueFileError(f"the value of line {begin} has a NUL in it")
        values[name] = value
    return values


def parse_paths(text: str) -> tuple[str, ...]:
    """The folders of ``$GITHUB_PATH``, one a line; a folder given again moves to the end."""
    found: dict[str, None] = {}
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if "\0" in line:
            raise ValueFileError("a folder has a NUL in it")
        if line:
            found.pop(line, None)
            found[line] = None
    return tuple(found)


class _Lines:
    """Each line and what ended it. A carriage return belongs to a line's end on Windows only, as with the runner.

    :ivar number: of the line that was given last, from 1.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.number = 0

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return self

    def __next__(self) -> tuple[str, str]:
        text, at = self._text, self._at
        if at >= len(text):
            raise StopIteration
        self.number += 1
        end = text.find("\n", at)
        if end < 0:
            self._at = len(text)
            return text[at:], ""
        self._at = end + 1
        cut = end - 1 if sys.platform == "win32" and end > at and text[end - 1] == "\r" else end
        return text[at:cut], text[cut : end + 1]


def _until(lines: _Lines, delimiter: str) -> str:
    begin = lines.number
    parts: list[str] = []
    for line, end in lines:
        if line == delimiter:
            return "".join(parts[:-1])
        parts += (line, end)
    raise ValueFileError(f"the value that begins in line {begin} does not end: no later line is its delimiter alone")


class ValueFilesPool:
    """Value files that are used again as long as nobody writes into them, which is the rule.

    Making four files for each step would cost more than starting a shell does.

    :param folder: an existing folder of our own.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self._free: list[ValueFiles] = []
        self._lock = threading.Lock()

    def take(self) -> ValueFiles:
        """Empty files; from whatever thread.

        :raises OSError: they cannot be made.
        """
        with self._lock:
            while self._free:
                files = self._free.pop()
                if files.untouched():
                    files.is_over = False
                    return files
                files.remove()
            self._made += 1
            return ValueFiles(self._folder, f"{self._made:06d}")

    def give_back(self, files: ValueFiles, *, alone: bool) -> None:
        """A try is over. What was written goes at once, as it may be secret.

        :param alone: whether nothing of the try is left that could still write.
        """
        if alone and (files.is_over or files.untouched()):
            with self._lock:
                self._free.append(files)
        else:
            files.remove()


class ValueFiles:
    """The files of one try, empty at first: ``$GITHUB_ENV``, ``$GITHUB_PATH``, ``$GITHUB_OUTPUT`` and
    ``$GITHUB_STEP_SUMMARY``, each also as ``$CHECKPOINT_…``.

    :param folder: an existing folder of our own.
    :param token: what tells the try from others.
    :raises OSError: they cannot be made.
    :ivar is_over: whether the try has ended, and they were found untouched after that.
    """

    def __init__(self, folder: Path, token: str) -> None:
        self.is_over = False
        self._paths = {kind: os.path.join(folder, f"{token}-{kind}") for kind in _FILES}  # noqa: PTH118  # for speed
        for path in self._paths.values():
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))

    def variables(self) -> dict[str, str]:
        """Where they are, for the step's environment."""
        found = {}
        for kind, name in _FILES.items():
            found[f"GITHUB_{name}"] = found[f"CHECKPOINT_{name}"] = self._paths[kind]
        return found

    def read(self) -> Values:
        """What the step has written.

        :raises ValueFileError: it is not in the documented form, or too large.
        """
        self.is_over = self.untouched()
        if self.is_over:
            return _NOTHING
        return Values(
            env=self._parsed("env", "GITHUB_ENV"),
            path=parse_paths(self._text("path", "GITHUB_PATH", _LONGEST)),
            outputs=self._parsed("output", "GITHUB_OUTPUT"),
            summary=self.summary(),
        )

    def summary(self) -> str:
        """The Markdown for people; a text that is too large or cannot be read is none."""
        try:
            return self._text("summary", "GITHUB_STEP_SUMMARY", SUMMARY_LIMIT)
        except ValueFileError:
            return ""

    def untouched(self) -> bool:
        """Whether they are there and nothing was written into them."""
        try:
            return not any(os.lstat(path).st_size for path in self._paths.values())
        except OSError:
            return False

    def remove(self) -> None:
        """Remove the files."""
        for path in self._paths.values():
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108  # for speed

    def _parsed(self, kind: str, name: str) -> dict[str, str]:
        text = self._text(kind, name, _LONGEST)
        try:
            return parse_values(text)
        except ValueFileError as error:
            raise ValueFileError(f"${name}: {error}") from None

    def _text(self, kind: str, name: str, limit: int) -> str:
        """A file's text; one that the step removed is empty.

        Bytes that are no text are kept as they are. A mark at the beginning tells the encodings that PowerShell writes.
        """
        try:
            # Whatever the step put in the place of the file, a pipe say, must not keep us waiting.
            number = os.open(self._paths[kind], os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
            with os.fdopen(number, "rb") as file:
                there = os.fstat(file.fileno()).st_size  # a read takes memory for all that it may bring
                data = file.read(min(there, limit) + 1) or b""
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise ValueFileError(f"${name} cannot be read: {error.strerror}") from None
        if len(data) > limit:
            raise ValueFileError(f"${name} has more than {limit >> 20} MiB")
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return data.decode("utf-16", "replace")
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
