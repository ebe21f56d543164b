"""Step 1: copy the running Python's own standard library into the work folder and check that every file compiles."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import sys
import sysconfig
import tokenize
import warnings
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WORK = Path("build/stdlib-search")
SOURCES = WORK / "sources"

# Not the library itself: installed packages, its own tests, programs that come with it, and what later Pythons dropped.
SKIPPED_FOLDERS = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "_bundled"}
SKIPPED_FOLDERS |= {"idlelib", "turtledemo", "pydoc_data", "lib2to3", "distutils"}
# These differ between two machines with the same Python.
SKIPPED_FILES = ("_sysconfigdata", "sitecustomize", "usercustomize")


def library_files(root: Path) -> Iterator[Path]:
    """The library's source files relative to `root`, sorted."""
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root)
        if SKIPPED_FOLDERS.isdisjoint(relative.parts) and not path.name.startswith(SKIPPED_FILES):
            yield relative


def module_name(relative: Path) -> str:
    """`json/decoder.py` is `json.decoder`, `json/__init__.py` is `json`."""
    parts = relative.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """A code object and all that are nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


def describe(source: Path, path: str) -> dict[str, object]:
    """Facts about one file; a file that Python cannot compile raises SyntaxError."""
    content = source.read_bytes()
    with tokenize.open(source) as stream:
        text = stream.read()
    # The highest optimisation level compiles another program than the plain one: both have to work.
    plain = list(code_objects(compile(text, path, "exec", dont_inherit=True, optimize=0)))
    bare = list(code_objects(compile(text, path, "exec", dont_inherit=True, optimize=2)))
    return {
        "path": path,
        "bytes": len(content),
        "lines": text.count("\n"),
        "sha256": hashlib.sha256(content).hexdigest(),
        "code_objects": len(plain),
        "bytecode": sum(len(code.co_code) for code in plain),
        "bytecode_optimised": sum(len(code.co_code) for code in bare),
    }


def main() -> int:
    root = Path(sysconfig.get_path("stdlib"))
    files = list(library_files(root))
    if not files:
        print(f"collect: no Python sources in {root}", file=sys.stderr)
        return 1
    print(f"collect: {len(files)} files of Python {platform.python_version()}", flush=True)
    warnings.simplefilter("ignore")  # the library's own SyntaxWarnings are not ours to report

    shutil.rmtree(SOURCES, ignore_errors=True)
    modules = {}
    for number, relative in enumerate(files, start=1):
        copy = SOURCES / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / relative, copy)
        try:
            modules[module_name(relative)] = describe(copy, relative.as_posix())
        except (SyntaxError, UnicodeDecodeError) as error:  # on purpose broken, as lib2to3 has some
            print(f"collect: leaving out {relative.as_posix()}: {error}", flush=True)
            copy.unlink()
        if number % 50 == 0 or number == len(files):
            print(f"collect: {number} of {len(files)} files copied and compiled", flush=True)

    listing = {"python": platform.python_version(), "modules": modules}
    (WORK / "sources.json").write_text(
        json.dumps(listing, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
