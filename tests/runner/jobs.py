"""Steps, jobs and records for the tests of this folder."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from checkpoint_action.model import SYSTEM_SHELL, Job, Layer, Record, Status, Step
from checkpoint_action.runner.fingerprint import fingerprint, fingerprint_parts
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.outputs import result_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ROOT = sys.platform != "win32" and os.geteuid() == 0
NOBODY = 65534


def step(name: str, cwd: Path, **changes: Any) -> Step:
    """A step of the system's shell."""
    return replace(Step(name, "true", SYSTEM_SHELL, cwd), **changes)


def job(root: Path, *steps: Step, continue_on_error: bool = False, max_failures: int | None = None) -> Job:
    return Job("demo", root, steps, continue_on_error=continue_on_error, max_failures=max_failures)


def record(
    of: Step,
    root: Path,
    status: Status = Status.DONE,
    *,
    layer: Layer | None = None,
    env: Mapping[str, str] | None = None,
    needs: Mapping[str, str] | None = None,
) -> Record:
    """What a run of a step would have recorded."""
    parts = fingerprint_parts(of, root, env or {}, needs or {}, ContentDigests())
    layer = layer or Layer()
    mark = fingerprint(parts)
    result = result_of(layer) if layer.entries else mark
    return Record(of.id, status, mark, of.command, parts, layer=layer, result=result, exit_code=0)


@contextmanager
def as_nobody(*owned: Path) -> Iterator[None]:
    """Run the block as a user whom permissions bind; he owns all that is in ``owned``."""
    if not ROOT:
        yield
        return
    for top in owned:
        for folder, folders, files in os.walk(top):
            for name in [".", *folders, *files]:
                os.lchown(os.path.join(folder, name), NOBODY, NOBODY)
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
