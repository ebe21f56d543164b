"""What a program and all that it starts do to files, in order, as ``strace`` sees it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["Call", "recorded", "why_not"]

_CALLS = (
    "open,openat,creat,write,writev,pwrite64,pwritev,pwritev2,fsync,fdatasync,rename,renameat,renameat2,unlink,"
    "unlinkat,link,linkat,symlink,symlinkat,mkdir,mkdirat,rmdir,ftruncate,truncate,fallocate,copy_file_range,sendfile,"
    "splice,lseek,mmap,chdir,fchdir,chmod,fchmod,fchmodat"
)
_LONGEST = 1 << 24
_LINE = re.compile(r"(\d+) +(.*)")
_RESUMED = re.compile(r"<\.\.\. \w+ resumed>")
_CALL = re.compile(r"(\w+)\((.*)\) += (-?\d+)(.*)", re.DOTALL)
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')
_NAMED = re.compile(r"(-?\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2}|[^<>])*)>(\(deleted\))?")


@dataclass(frozen=True, slots=True)
class Call:
    """One call that has taken place.

    :param path: absolute; what the call is about.
    :param other: a second path: where a file is renamed or linked to, what a link names.
    :param data: bytes that were written.
    :param number: an offset, a length or a mode, where the call has one; else -1.
    :param flags: of an open.
    """

    name: str
    path: str
    other: str = ""
    data: bytes = b""
    number: int = -1
    flags: str = ""


@cache
def why_not() -> str:
    """Why nothing can be recorded here, or an empty text."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    tried = subprocess.run(["strace", "-f", "-o", os.devnull, "true"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"strace does not work here: {tried.stderr.strip()[:200]}"


def recorded(
    words: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: Path, log: Path
) -> tuple[int, list[Call], str]:
    """Run a program to its end.

    :param stdout: file for its output, without a buffer, so that the writes to it are among the calls.
    :param log: a file for strace's own use.
    :returns: its exit code, what it and all its descendants did, and what it printed to stderr.
    """
    strace = ["strace", "-f", "-y", "-xx", "-s", str(_LONGEST), "--seccomp-bpf", "-o", str(log)]
    with stdout.open("ab") as output:
        done = subprocess.run(
            [*strace, "-e", f"trace={_CALLS}", "-e", "signal=none", "--", *words],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    with log.open(encoding="ascii", errors="replace") as lines:
        calls = list(_calls(lines, str(cwd)))
    log.unlink()
    return done.returncode, calls, done.stderr


def _calls(lines: Iterator[str], cwd: str) -> Iterator[Call]:
    """The calls of strace's lines.

    :param cwd: the folder of all processes that do not go to another one.
    """
    begun: dict[str, str] = {}
    folders: dict[str, str] = {}
    for line in lines:
        match = _LINE.match(line.rstrip("\n"))
        if match is None:
            continue
        process, text = match.groups()
        if text.endswith("<unfinished ...>"):
            begun[process] = text.removesuffix("<unfinished ...>").rstrip()
            continue
        if resumed := _RESUMED.match(text):
            text = begun.pop(process, "") + text[resumed.end() :]
        if (whole := _CALL.match(text)) and int(whole[3]) >= 0:
            folder = folders.get(process, cwd)
            if whole[1] == "chdir":
                folders[process] = os.path.join(folder, os.fsdecode(_bytes(_TEXT.findall(whole[2])[0])))
                continue
            if whole[1] == "fchdir":
                folders[process] = os.fsdecode(_bytes(_NAMED.findall(whole[2])[0][1]))
                continue
            yield from _call(whole[1], whole[2], int(whole[3]), whole[4], folder)


def _bytes(text: str) -> bytes:
    return re.sub(rb"\\x([0-9a-f]{2})", lambda one: bytes.fromhex(one[1].decode()), text.encode())


def _call(name: str, words: str, result: int, rest: str, cwd: str) -> Iterator[Call]:
    """What a line says, as far as it matters to files.

    :param cwd: the process's folder.
    """
    texts = [_bytes(text) for text in _TEXT.findall(words)]
    found_names = _NAMED.findall(words)
    named = [os.fsdecode(_bytes(text)) + (" (deleted)" if gone else "") for _number, text, gone in found_names]
    bare = _TEXT.sub('""', words)
    words_of_numbers = re.findall(r"(?<=, )\d+", bare)
    numbers = [int(word, 8 if word.startswith("0") and len(word) > 1 else 10) for word in words_of_numbers]
    if name in ("open", "openat", "creat"):
        found = _NAMED.search(f"{result}{rest}")
        flags = words.rsplit('"', 1)[1] if name != "creat" else "O_WRONLY|O_CREAT|O_TRUNC"
        if found and ("O_WRONLY" in flags or "O_RDWR" in flags or "O_CREAT" in flags):
            mode = numbers[-1] if "O_CREAT" in flags and numbers else -1
            yield Call("open", os.fsdecode(_bytes(found[2])), flags=flags, number=mode)
    elif name in ("write", "writev", "pwrite64", "pwritev", "pwritev2"):
        at = numbers[-1] if name.startswith("pwrite") else -1
        yield Call("write", named[0] if named else "", data=b"".join(texts)[:result], number=at)
    elif name in ("fsync", "fdatasync"):
        yield Call("fsync", named[0])
    elif name in ("lseek", "fchmod", "ftruncate", "fallocate"):
        if named:
            yield Call(name, named[0], number=result if name == "lseek" else numbers[-1])
    elif name in ("copy_file_range", "sendfile", "splice"):
        if result and named and named[-1 if name != "sendfile" else 0].startswith("/"):
            yield Call(name, named[-1 if name != "sendfile" else 0])
    elif name == "mmap":
        if "MAP_SHARED" in words and "PROT_WRITE" in words and named:
            yield Call(name, named[0])
    else:
        yield from _names(name, words, texts, numbers, cwd)


def _names(name: str, words: str, texts: list[bytes], numbers: list[int], cwd: str) -> Iterator[Call]:
    """Calls that take paths."""
    if not texts:
        return
    folders = [os.fsdecode(_bytes(text)) for _number, text, _gone in _NAMED.findall(words)]
    paths = [os.fsdecode(text) for text in texts]
    if name.startswith("symlink"):
        yield Call("symlink", os.path.join(folders[0] if folders else cwd, paths[1]), other=paths[0])
        return
    around = [folders[0], folders[-1]] if folders else [cwd, cwd]  # the first are those of an *at call
    paths = [os.path.normpath(os.path.join(folder, path)) for folder, path in zip(around, paths, strict=False)]
    kind = {"unlinkat": "rmdir" if "AT_REMOVEDIR" in words else "unlink"}.get(name, name)
    kind = re.sub(r"^(rename|link|mkdir|fchmod)(at2?)$", r"\1", kind).replace("fchmod", "chmod")
    number = numbers[-1] if kind in ("mkdir", "chmod", "truncate") and numbers else -1
    yield Call(kind, paths[0], other=paths[1] if len(paths) > 1 else "", number=number)
