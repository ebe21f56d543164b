"""Calls functions of a module as told, one line of JSON each, and tells what they wrote.

``python core_driver.py MODULE``, run with the Python that has the module; nothing but the standard library is needed.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

FILES = ("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "GITHUB_STATE", "GITHUB_STEP_SUMMARY")


def main() -> None:
    """Answer each line of stdin with one on the stdout that there was at the start."""
    module = importlib.import_module(sys.argv[1])
    with (
        os.fdopen(os.dup(1), "w", encoding="ascii") as answers,
        tempfile.TemporaryFile() as stdout,
        tempfile.TemporaryDirectory() as folder,
    ):
        os.dup2(stdout.fileno(), 1)
        for line in sys.stdin:
            case = json.loads(line)
            stdout.seek(0)
            stdout.truncate()
            outcome = call(module, case, Path(folder))
            sys.stdout.flush()
            stdout.seek(0)
            outcome["stdout"] = stdout.read().decode("latin-1")
            print(json.dumps(outcome), file=answers, flush=True)


def call(module: object, case: dict[str, Any], folder: Path) -> dict[str, object]:
    """Call a function with the variables and files that the case asks for."""
    needed = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}  # Windows
    os.environ.clear()
    os.environ.update(needed | case["env"])
    for name in FILES:
        (folder / name).write_bytes(b"")
        if case["files"]:
            os.environ[name] = str(folder / name)
    outcome: dict[str, object] = {"value": None, "failed": False, "ended_with": None}
    try:
        function = getattr(module, str(case["function"]))
        value = function(*[meant(argument) for argument in case["arguments"]], **case["options"])
        outcome["value"] = value if isinstance(value, (str, bool, list)) else None
    except SystemExit as end:
        outcome["ended_with"] = end.code
    except Exception:  # each has errors of its own
        outcome["failed"] = True
    outcome["env"] = {name: value for name, value in os.environ.items() if name not in {*FILES, *needed}}
    outcome["files"] = {name: (folder / name).read_bytes().decode("latin-1") for name in FILES}
    return outcome


def meant(argument: object) -> object:
    """The argument that JSON has no word for: ``{"exception": text}``."""
    if isinstance(argument, dict) and set(argument) == {"exception"}:
        return ValueError(argument["exception"])
    return argument


if __name__ == "__main__":
    main()
