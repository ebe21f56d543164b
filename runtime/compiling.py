"""Compiles the action's modules, which come uncompiled, beside what else has to be done before the first step.

While an installer waits for the network all of them are compiled; while they are loaded, those that come last.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["compiling", "compiling_from_behind"]

_LAST = ("toolkit", "store", "runner")
"""The parts that are loaded last, from behind; of all others the action needs but a few."""

_WORK = "import py_compile, sys\nfor path in sys.argv[1:]: py_compile.compile(path, quiet=2)"


@contextmanager
def compiling(folder: Path) -> Iterator[None]:
    """Compile the modules below a folder beside what is done meanwhile; what is left at the end of that stays as it is.

    :param folder: where nothing can be written, nothing is, and nobody minds.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_compile, args=(folder, ended), daemon=True)
    if not sys.dont_write_bytecode:
        with suppress(RuntimeError):  # there is no thread to be had
            thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join()  # one module at most


@contextmanager
def compiling_from_behind(folder: Path) -> Iterator[None]:
    """Compile the modules below a folder in another process, the last ones first, where they are not compiled yet.

    Who loads them meanwhile begins with the first ones and compiles these by itself: so two cores share the work.

    :param folder: where nothing can be written, nothing is, and nobody minds.
    """
    paths = [path for name in _LAST for path in sorted((folder / name).glob("*.py"), reverse=True)]
    worker = None
    if paths and not sys.dont_write_bytecode and not (folder / cache_from_source("__init__.py")).exists():
        with suppress(OSError):
            worker = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _WORK, *map(str, paths)],
                cwd=folder,
                env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},  # Windows needs it
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
    try:
        yield
    finally:
        if worker is not None:
            worker.kill()
            worker.wait()


def _compile(folder: Path, ended: threading.Event) -> None:
    import compileall  # noqa: PLC0415  # not needed where the packages are there already

    with suppress(OSError, MemoryError):
        for path in sorted(folder.rglob("*.py")):
            if ended.is_set():
                return
            compileall.compile_file(path, quiet=2)
