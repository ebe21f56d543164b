"""Builds of sources that nobody here wrote, as stages: of what Python brings along, and of Debian's source packages."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from tests.torture.staged import Stage, Thing

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PYTHON", "SQLITE", "STANDARD_LIBRARY", "ZLIB", "debian_sources", "standard_library"]

_PACKAGES = ("asyncio", "collections", "concurrent", "email", "html", "http", "json", "logging", "unittest")
_MINUTES = 15 * 60

# Each stage makes its folder anew from the one before it: a tool that is killed may leave half an object that make
# takes for a whole one, and no state of ours could tell. Nothing is optimised: it is not the code that is looked at.

STANDARD_LIBRARY = Thing(
    "the standard library",
    (
        Stage("unpack", 'rm -rf source; mkdir source; tar -C source -xf "$GIVEN"/library.tar', "source/"),
        Stage(
            "compile",
            "rm -rf compiled; cp -a source compiled\n"
            '"$PYTHON" -m compileall -q -b --invalidation-mode unchecked-hash compiled',
            "compiled/",
        ),
        Stage(
            "test",
            "export PYTHONDONTWRITEBYTECODE=1; cd compiled; for module in *; do printf '%s ' $module\n"
            '"$PYTHON" -c "import $module; print($module.__file__.startswith(\'$PWD\'))"\n'
            "done > ../tested.tmp; cd ..; mv tested.tmp tested",
            "tested",
        ),
        Stage(
            "install",
            "rm -rf installed; mkdir installed; cp -a compiled installed/lib; find installed -name '*.py' -delete\n"
            "cp tested installed/",
            "installed/",
        ),
    ),
    "installed",
    kills=1,
)
"""Packages of the running Python, compiled: needs nothing but that."""

_CONFIGURED = "rm -rf configured; mkdir configured; cp -a source/*/. configured; cd configured; "
_COMPILED = "rm -rf compiled; cp -a configured compiled; cd compiled; "
_TESTED = "rm -rf tested; cp -a compiled tested; cd tested; "
_UNPACKED = "rm -rf source; mkdir source; tar -C source -xf "

ZLIB = Thing(
    "zlib",
    (
        Stage("unpack", _UNPACKED + '"$GIVEN"/zlib_*.orig.tar.*', "source/"),
        Stage("configure", _CONFIGURED + "./configure --prefix=/usr", "configured/"),
        Stage("compile", _COMPILED + "make -j2", "compiled/"),
        Stage("test", _TESTED + "make test > said; grep -c 'test OK' said", "tested/said"),
        Stage("install", 'rm -rf installed; make -C compiled install DESTDIR="$PWD/installed"', "installed/"),
    ),
    "installed",
)

SQLITE = Thing(
    "SQLite",
    (
        Stage("unpack", _UNPACKED + '"$GIVEN"/sqlite3_*.orig.tar.xz', "source/"),
        Stage("configure", _CONFIGURED + "./configure --prefix=/usr --disable-tcl CFLAGS=-O0", "configured/"),
        Stage("compile", _COMPILED + "make -j2 sqlite3 libsqlite3.la fuzzcheck", "compiled/"),
        Stage("test", _TESTED + "./fuzzcheck test/fuzzdata1.db test/fuzzdata2.db > said", "tested/said"),
        Stage("install", 'rm -rf installed; make -C compiled install DESTDIR="$PWD/installed"', "installed/"),
    ),
    "installed",
)

PYTHON = Thing(
    "CPython",
    (
        Stage("unpack", _UNPACKED + '"$GIVEN"/python3*.orig.tar.*', "source/"),
        Stage("configure", _CONFIGURED + "./configure --prefix=/usr CFLAGS=-O0", "configured/"),
        Stage("compile", _COMPILED + "make -j2", "compiled/"),
        Stage(
            "test",
            _TESTED + "./python -m test -j2 test_json test_dict test_list test_re test_struct test_tarfile test_zlib\n"
            "touch said",
            "tested/said",
        ),
        Stage("install", 'rm -rf installed; make -C compiled install DESTDIR="$PWD/installed"', "installed/"),
    ),
    "installed",
)


def standard_library(folder: Path) -> None:
    """Put what :data:`STANDARD_LIBRARY` starts from into a folder."""
    names = [f"./{name}" for name in _PACKAGES]
    given = Path(sysconfig.get_path("stdlib"))
    subprocess.run(["tar", "-C", given, "--exclude", "__pycache__", "-cf", folder / "library.tar", *names], check=True)


def debian_sources(folder: Path, package: str) -> bool:
    """Fetch a Debian source package, from where this machine gets its packages; whether it is to be had.

    The system's own lists stay as they are.
    """
    if shutil.which("apt-get") is None:
        return False
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    for number, (ending, text) in enumerate(_source_lists()):
        (folder / f"parts/{number}.{ending}").parent.mkdir(exist_ok=True)
        (folder / f"parts/{number}.{ending}").write_text(text)
    apt = ["apt-get", "-q", "-o", "Dir::Etc::sourcelist=-", "-o", f"Dir::Etc::sourceparts={folder / 'parts'}"]
    apt += ["-o", f"Dir::State::lists={lists}", "-o", "APT::Sandbox::User=root"]
    if not any(lists.glob("*Sources*")):
        subprocess.run([*apt, "update"], cwd=folder, capture_output=True, timeout=_MINUTES, check=False)
    done = subprocess.run(
        [*apt, "source", "--download-only", "--tar-only", package],
        cwd=folder,
        capture_output=True,
        timeout=_MINUTES,
        check=False,
    )
    return done.returncode == 0


def _source_lists() -> Iterator[tuple[str, str]]:
    """The machine's lists of packages, turned into lists of sources; of each the ending of its name and the text."""
    etc = Path("/etc/apt")
    for path in [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*"))]:
        if path.is_file() and path.suffix == ".sources":
            yield "sources", re.sub("(?m)^Types:.*", "Types: deb-src", path.read_text())
        elif path.is_file() and path.suffix == ".list":
            yield "list", re.sub("(?m)^deb ", "deb-src ", path.read_text())
