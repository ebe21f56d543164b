"""Calls of ``core`` functions, and a Python that makes them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ROOT", "Case", "Driver", "comparable"]

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("core_driver.py")


@dataclass(frozen=True)
class Case:
    """A call. ``files``: whether the runner gave files for outputs and the like."""

    function: str
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": "/bin"})
    files: bool = True

    def data(self) -> dict[str, Any]:
        return {
            "function": self.function,
            "arguments": list(self.arguments),
            "options": dict(self.options),
            "env": dict(self.env),
            "files": self.files,
        }

    def __str__(self) -> str:
        return f"{self.function}{self.arguments}{dict(self.options)}{'' if self.files else ' without files'}"


class Driver:
    """A Python that calls the functions of one module."""

    def __init__(self, python: Path, module: str, **env: str) -> None:
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TEMP", "TMP") if name in os.environ}
        self._process = subprocess.Popen(
            [str(python), str(DRIVER), module],
            env={**kept, "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1", **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def call(self, case: Case) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps(case.data())}\n".encode())
        self._process.stdin.flush()
        outcome = json.loads(self._process.stdout.readline())
        assert isinstance(outcome, dict)
        return comparable(outcome)

    def end(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def comparable(outcome: dict[str, Any]) -> dict[str, Any]:
    """The outcome with one delimiter for all of them, and with one kind of line end where a system has two."""

    def same(text: str) -> str:
        text = re.sub(r"ghadelimiter_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "DELIMITER", text)
        return re.sub(r"\r+\n", "\n", text) if sys.platform == "win32" else text

    return {
        **outcome,
        "stdout": same(outcome["stdout"]),
        "files": {name: same(text) for name, text in outcome["files"].items() if text},
    }
