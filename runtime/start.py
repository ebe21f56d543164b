"""Takes the runner's values from standard input, gets the dependencies ready, and hands over to the package."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

from runtime import bootstrap
from runtime.compiling import compiling_from_behind

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["main", "read_secrets"]

PR_SET_DUMPABLE = 4
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
WITH_CLOUD = Path(__file__).with_name("requirements-cloud.txt")
CLOUDS = ("s3://", "gs://", "az://")


def main() -> int:
    """Run the action in this process.

    :returns: the exit code of the step.
    """
    close_to_others()
    runtime, secrets = read_secrets(sys.stdin.buffer)
    silence_stdin()
    env = {name: value for name, value in os.environ.items() if name != "CPR_RUNTIME"}
    for name in [name for name in os.environ if name.startswith("CPR_")]:
        del os.environ[name]  # ours, not the user's commands'
    try:
        packages = bootstrap.ensure(requirements_for(env), env)
    except bootstrap.BootstrapError as error:
        sys.stdout.write(f"::error::{bootstrap.escape(str(error))}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    sys.path.insert(1, str(packages))  # after the repository root, before everything else
    try:
        with compiling_from_behind(bootstrap.PACKAGE):
            from checkpoint_action import action  # noqa: PLC0415  # its imports need the packages

        return action.main(env | secrets, runtime)
    except KeyboardInterrupt:  # before the job began
        return 130


def requirements_for(env: Mapping[str, str]) -> Path:
    """Which packages the action needs: those for object stores are large, and few jobs want them."""
    return WITH_CLOUD if env.get("CPR_INPUT_STORE", "").strip().startswith(CLOUDS) else REQUIREMENTS


def close_to_others() -> None:
    """Keep processes of the same user from reading this one's memory and environment, where the system can (Linux)."""
    if sys.platform == "linux":
        with contextlib.suppress(Exception):
            import ctypes  # noqa: PLC0415  # not every Python is built with it

            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def read_secrets(stream: IO[bytes]) -> tuple[dict[str, str], dict[str, str]]:
    """Read what action.yml hands over: a line with the runtime's values, one with the token, and the signing key.

    :returns: the runtime's values (one JSON object from name to text; empty if the handover failed), and the inputs
        that are secrets by the names of their variables.
    """
    line, _, rest = stream.read().partition(b"\n")
    token, _, key = rest.decode("utf-8", "surrogateescape").partition("\n")
    secrets = {"CPR_INPUT_TOKEN": token, "CPR_INPUT_SIGNING_KEY": key}
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        values = {}
    return {name: value for name, value in values.items() if isinstance(value, str)}, secrets


def silence_stdin() -> None:
    """Leave nothing of standard input for the processes that this one starts."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
