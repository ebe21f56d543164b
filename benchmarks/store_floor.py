"""The least that Python can do to save and to restore many small files, on two cores.

::

    python -m benchmarks.store_floor save|restore FOLDER

Saving: two processes list the folder `out` of the current one and look at, read and hash a half of its files each, and
write them one after the other into a file in FOLDER, with a list of their names, modes, times and digests. Restoring:
two processes read that, create each file, write it, compare its digest, and set mode and time. No compression, no
service, nothing made durable, nothing unpacked beside. Prints one JSON object: the seconds it took.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["main"]

_PROCESSES = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Save or restore once."""
    verb, folder = sys.argv[1:] if argv is None else argv
    work: Callable[[Path, int], None] = _save if verb == "save" else _restore
    begin = time.perf_counter()
    if verb != "save":
        _make_folders(Path(folder))
    children = []
    for number in range(_PROCESSES):
        child = os.fork()
        if not child:
            code = 1
            try:
                work(Path(folder), number)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    if any(codes):
        raise SystemExit(f"a process of the {verb} failed")
    print(json.dumps({"seconds": time.perf_counter() - begin}))
    return 0


def _files(top: str) -> Iterator[os.DirEntry[str]]:
    folders = [top]
    while folders:
        with os.scandir(folders.pop()) as items:
            for item in items:
                if item.is_dir(follow_symlinks=False):
                    folders.append(item.path)
                else:
                    yield item


def _save(folder: Path, number: int) -> None:
    rows = []
    with (folder / f"content{number}").open("wb") as target:
        for position, item in enumerate(_files("out")):
            if position % _PROCESSES == number:
                found = item.stat(follow_symlinks=False)
                descriptor = os.open(item.path, os.O_RDONLY)
                content = os.read(descriptor, found.st_size)
                os.close(descriptor)
                target.write(content)
                digest = hashlib.sha256(content).hexdigest()
                rows.append((item.path, len(content), found.st_mode & 0o777, found.st_mtime_ns, digest))
    (folder / f"list{number}").write_text(json.dumps(rows), encoding="utf-8")


def _make_folders(folder: Path) -> None:
    names = set()
    for number in range(_PROCESSES):
        names |= {os.path.dirname(row[0]) for row in _rows(folder, number)}
    for name in sorted(names):
        os.makedirs(name, exist_ok=True)


def _rows(folder: Path, number: int) -> list[tuple[str, int, int, int, str]]:
    rows: list[tuple[str, int, int, int, str]] = json.loads((folder / f"list{number}").read_bytes())
    return rows


def _restore(folder: Path, number: int) -> None:
    with (folder / f"content{number}").open("rb") as source:
        for path, size, mode, mtime, digest in _rows(folder, number):
            _create(source, path, size, mode, mtime, digest)


def _create(source: BinaryIO, path: str, size: int, mode: int, mtime: int, digest: str) -> None:
    content = source.read(size)
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{path} is not as it was")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(descriptor, content)
    os.fchmod(descriptor, mode)
    os.utime(descriptor, ns=(mtime, mtime))
    os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
