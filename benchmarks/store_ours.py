"""Our side of :mod:`benchmarks.store`: one save or one restore, made by what the runner itself uses.

::

    python -m benchmarks.store_ours save|restore WORKSPACE FOLDER KEY

The service is named by the ``ACTIONS_*`` variables. Prints one JSON object: seconds in all, and of each phase.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.model import Layer, Record, Status, Step
from checkpoint_action.runner.checkpoints import Checkpoints
from checkpoint_action.runner.globs import Excludes
from checkpoint_action.runner.hashing import ContentDigests
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.runner.scan import Workspace
from checkpoint_action.store.github_cache import GithubCacheStore
from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

_STEP = "build"
_LONG = 3600.0


def main(argv: Sequence[str] | None = None) -> int:
    """Save or restore once."""
    verb, workspace, folder, key = sys.argv[1:] if argv is None else argv
    root = Path(workspace)
    space = Workspace.at(root, Excludes(()))
    store = GithubCacheStore(Cache(Runtime.resolve(os.environ), HttpClient(env={})))
    warnings: list[str] = []
    checkpoints = Checkpoints(
        store, KeyScheme("run1", key, "1", "1"), Path(folder), space, warn=warnings.append, restore_seconds=_LONG
    )
    times = [time.perf_counter()]
    if verb == "save":
        # The step found an empty workspace; that look happened before it ran.
        layer = checkpoints.changes(Step(_STEP, "true", "sh", root, outputs="auto"), Layer(), ContentDigests())
        times.append(time.perf_counter())
        checkpoints.keep(Record(_STEP, Status.DONE, "f", "true", exit_code=0, layer=layer))
        times.append(time.perf_counter())
        checkpoints.finish(_LONG)
        times.append(time.perf_counter())
        names = ["look and hash", "pack", "join and upload"]
    else:
        records = checkpoints.learn([_STEP])
        times.append(time.perf_counter())
        checkpoints.restore(records[_STEP], lambda _path: ())
        times.append(time.perf_counter())
        names = ["look up and download", "unpack and put in place"]
    if warnings:
        raise SystemExit("\n".join(warnings))
    phases = {name: end - begin for name, begin, end in zip(names, times, times[1:], strict=False)}
    print(json.dumps({"seconds": times[-1] - times[0], "phases": phases}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
