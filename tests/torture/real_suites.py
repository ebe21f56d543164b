"""Test suites of PyPI projects, as their source distributions have them: one step for each module of tests."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

from tests.torture.staged import Stage, Thing

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PROJECTS", "suite"]

PROJECTS = ("click", "pluggy", "idna")
"""Suites that need pytest alone, and no network."""

_MINUTES = 10 * 60


def suite(folder: Path, project: str) -> Thing | None:
    """Fetch a project's source distribution and make a job of its tests; ``None`` where it is not to be had.

    The result is how each test ended. It counts which did and which did not pass, not that all do: they are held
    against the same tests without us.

    :param folder: where what ``$GIVEN`` names is put.
    """
    fetch = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", project]
    done = subprocess.run(fetch, cwd=folder, capture_output=True, timeout=_MINUTES, check=False)
    found = [*folder.glob(f"{project}-*.tar.gz")]
    if done.returncode or not found:
        return None
    with tarfile.open(found[0]) as archive:
        names = archive.getnames()
    wanted = re.compile(r"/(tests|testing)/(.*/)?test_\w+\.py$")
    modules = sorted(name.partition("/")[2] for name in names if wanted.search(name))
    unpack = f'rm -rf source; mkdir source; tar -C source --strip 1 -xf "$GIVEN"/{found[0].name}'
    stages = [Stage("unpack", unpack, "source/")]
    for number, module in enumerate(modules):
        result = f"results/{number:02d}"
        stages.append(
            Stage(
                module.replace("/", ".").removesuffix(".py"),
                "mkdir -p results; cd source\n"
                'export PYTHONPATH="$PWD/src:$PWD" PYTHONDONTWRITEBYTECODE=1\n'
                f'code=0; "$PYTHON" -m pytest -p no:cacheprovider -q -rA --tb=no {module} > ../said || code=$?\n'
                'test "$code" -le 1\n'
                r"grep -E '^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) ' ../said | sort > "
                f"../{result}",
                result,
            )
        )
    return Thing(f"the tests of {project}", stages, "results", killed_in=8, kills=1)
