"""Compiles the action's modules while an installer waits for the network: they come uncompiled, and are loaded next."""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["compiling"]


@contextmanager
def compiling(folder: Path) -> Iterator[None]:
    """Compile the modules below a folder beside what is done meanwhile; what is left at the end of that stays as it is.

    :param folder: where nothing can be written, nothing is, and nobody minds.
    """
    ended = threading.Event()
    thread = threading.Thread(target=_compile, args=(folder, ended), daemon=True)
    if not sys.dont_write_bytecode:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join()  # one module at most


def _compile(folder: Path, ended: threading.Event) -> None:
    import compileall  # noqa: PLC0415  # not needed where the packages are there already

    with suppress(OSError):
        for path in sorted(folder.rglob("*.py")):
            if ended.is_set():
                return
            compileall.compile_file(path, quiet=2)
