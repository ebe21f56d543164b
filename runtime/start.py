"""Takes the runner's values from standard input, gets the dependencies ready, and hands over to the package."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import IO

from runtime import bootstrap

__all__ = ["main", "read_runtime"]

PR_SET_DUMPABLE = 4
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def main() -> int:
    """Run the action in this process.

    :returns: the exit code of the step.
    """
    close_to_others()
    runtime = read_runtime(sys.stdin.buffer)
    silence_stdin()
    env = {name: value for name, value in os.environ.items() if name != "CPR_RUNTIME"}
    for name in [name for name in os.environ if name.startswith("CPR_")]:
        del os.environ[name]  # ours, not the user's commands'
    try:
        packages = bootstrap.ensure(REQUIREMENTS, env)
    except bootstrap.BootstrapError as error:
        sys.stdout.write(f"::error::{bootstrap.escape(str(error))}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    sys.path.insert(1, str(packages))  # after the repository root, before everything else
    try:
        from checkpoint_action import action  # noqa: PLC0415  # its imports need the packages

        return action.main(env, runtime)
    except KeyboardInterrupt:  # before the job began
        return 130


def close_to_others() -> None:
    """Keep processes of the same user from reading this one's memory and environment, where the system can (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(Exception):
            import ctypes  # noqa: PLC0415  # not every Python is built with it

            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def read_runtime(stream: IO[bytes]) -> dict[str, str]:
    """Read the handed-over values: one JSON object from name to text.

    :returns: the values, empty if the handover failed.
    """
    try:
        values = json.loads(stream.read())
    except ValueError:
        return {}
    if not isinstance(values, dict):
        return {}
    return {name: value for name, value in values.items() if isinstance(value, str)}


def silence_stdin() -> None:
    """Leave nothing of standard input for the processes that this one starts."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
