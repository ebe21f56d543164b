"""Trouble with the files of one process, at the Nth call that changes or reads them; ``trouble.c`` makes it."""

from __future__ import annotations

import errno
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CHANGES", "READS", "Trouble", "calls_in", "compiled", "why_not"]

CHANGES = ("open", "write", "sync", "rename", "mkdir", "remove", "truncate", "link", "change")
"""Kinds of calls that a full disk or one that is only read may refuse."""

READS = ("look", "read")

_SOURCE = Path(__file__).with_name("trouble.c")


def why_not() -> str:
    """Why no trouble can be made here; empty where it can."""
    if sys.platform != "linux":
        return "the library that makes trouble is for Linux"
    if shutil.which("gcc") is None:
        return "no gcc is here to compile the library that makes trouble"
    return ""


def compiled(folder: Path) -> Path:
    """The library, made in a folder.

    :raises AssertionError: it does not compile.
    """
    library = folder / "trouble.so"
    words = ["gcc", "-O1", "-Wall", "-fPIC", "-shared", "-o", str(library), str(_SOURCE), "-ldl", "-lpthread"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return library


@dataclass(frozen=True)
class Trouble:
    """What goes wrong.

    :param places: prefixes of the paths that count.
    :param calls: kinds of calls that count.
    :param first: number of the call that fails, from 1; 0 for none.
    :param last: the last one; 0 for all that follow.
    :param error: what they fail with; 0 for calls that work.
    :param half: a failing write puts down half.
    :param delay: milliseconds that these calls take longer; -1: they never come back.
    :param clock: the wall clock jumps back and forth.
    """

    places: Sequence[Path | str] = ()
    calls: Sequence[str] = CHANGES
    first: int = 0
    last: int = 0
    error: int = 0
    half: bool = False
    delay: int = 0
    clock: bool = False

    def environment(self, library: Path, log: Path) -> dict[str, str]:
        """The variables that make it.

        :param log: gets a line for each call that counts.
        """
        return {
            "LD_PRELOAD": str(library),
            "TROUBLE_IN": ":".join(map(str, self.places)),
            "TROUBLE_CALLS": "".join(f"{kind}," for kind in self.calls),
            "TROUBLE_FROM": str(self.first),
            "TROUBLE_TO": str(self.last),
            "TROUBLE_ERRNO": str(self.error),
            "TROUBLE_HALF": str(int(self.half)),
            "TROUBLE_DELAY": str(self.delay),
            "TROUBLE_LOG": str(log),
            "TROUBLE_CLOCK": str(int(self.clock)),
        }

    def __str__(self) -> str:
        what = errno.errorcode.get(self.error, "hang" if self.delay < 0 else f"{self.delay} ms late")
        until = "" if self.last == self.first else " and all after" if not self.last else f" to {self.last}"
        return f"{what} at call {self.first}{until}{', half written' if self.half else ''}"


def calls_in(log: Path) -> list[tuple[bool, str, str]]:
    """Each call that counted: whether it met trouble, its kind and its path."""
    found = []
    for line in log.read_text("utf-8", "surrogateescape").splitlines() if log.exists() else ():
        kind, _, path = line.partition(" ")
        found.append((kind.startswith("!"), kind.lstrip("!"), path))
    return found
