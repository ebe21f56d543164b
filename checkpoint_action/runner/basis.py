"""All that a kept answer was made of, and a look at it; imports next to nothing, as :mod:`.recall` does."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import IO

    from checkpoint_action.runner.git_words import IgnoredBeside

__all__ = ["MOST_READ", "OURS", "Basis", "content", "is_outside", "opened", "stamp"]

OURS = ".checkpoint-run-"
"""What the names of our own files begin with."""

MOST_READ = 32 << 20
"""Bytes of all files together that are read for a look: more take longer than all that a look saves."""

_OWN = "CHECKPOINT_"
_COUNTING = ("GITHUB_", "RUNNER_")  # variables by which it is known where we run
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_PIECE = 1 << 18
_LINK = "is no plain folder"


class Basis:
    """All that the answer was made of: as long as a look at it shows the same, the answer is the same.

    :param file: the job file.
    :param state: path of the state's files without their endings.
    :param variables: names of those of the environment that count.
    :param git: whether it counts what git ignores.
    :param files: paths of files whose content and mode count.
    :param dated: paths of folders whose names count, and of what kind each is, and whose times tell of each change.
    :param listed: the same of folders whose times do not tell.
    :param kept: paths of folders whose own mode counts, and that they are no links.
    :param links: paths of links whose targets count.
    """

    __slots__ = ("dated", "file", "files", "git", "kept", "links", "listed", "state", "variables")

    def __init__(
        self,
        file: str,
        state: str,
        variables: Sequence[str],
        *,
        git: bool,
        files: Sequence[str],
        dated: Sequence[str],
        listed: Sequence[str],
        kept: Sequence[str],
        links: Sequence[str],
    ) -> None:
        self.file, self.state = file, state
        self.variables, self.git = variables, git
        self.files, self.dated, self.listed, self.kept, self.links = files, dated, listed, kept, links

    def look(
        self,
        env: Mapping[str, str],
        *,
        trusting: bool,
        ignored: bytes | None = None,
        contents: Callable[[Sequence[str]], Iterable[str]] | None = None,
    ) -> str:
        """A digest over all of it, as it is now.

        :param env: the environment.
        :param trusting: whether size, times, inode and mode stand for what is in a file or a dated folder.
        :param ignored: what git has said, where it need not be asked.
        :param contents: what to say of files where that is known already; else they are read.
        :raises OSError: something cannot be looked at, or is of a kind that no answer is kept for.
        """
        from hashlib import sha256  # noqa: PLC0415  # most command lines do not come this far

        git = _asked(env) if self.git and ignored is None else None  # it looks while we do
        try:
            seen = sha256(b"stamps\0" if trusting else b"contents\0")
            for path in (self.file, f"{self.state}.json", f"{self.state}.journal"):
                seen.update(b"%s\0" % _digest_of(path).encode())
            texts = [_variables(self.variables, env)]
            if trusting:
                texts.append(_stamp_of_index(f"{self.state}.index"))
                texts += [stamp(os.lstat(path)) for path in (*self.files, *self.dated)]
                texts += [_listing(path) for path in self.listed]
            else:
                texts += (contents or _contents)(self.files)
                texts += [_listing(path) for path in (*self.dated, *self.listed)]
            texts += [_mode(path) for path in self.kept]
            texts += [os.readlink(path) for path in self.links]
            seen.update(os.fsencode("\0".join(texts)))
            seen.update(b"\0%d\0" % _in_a_checkout())
            seen.update(_without_ours((git.answer() if git is not None else ignored) or b""))
        finally:
            if git is not None:
                git.close()
        return seen.hexdigest()


def _asked(env: Mapping[str, str]) -> IgnoredBeside:
    from checkpoint_action.runner.git_words import IgnoredBeside  # noqa: PLC0415  # most answers do not count it

    return IgnoredBeside(env)


def stamp(info: os.stat_result) -> str:
    """What tells that a path is still what was looked at."""
    return f"{info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino} {info.st_dev} {info.st_mode}"


def _stamp_of_index(path: str) -> str:
    try:
        return stamp(os.lstat(path))
    except FileNotFoundError:  # a run that looked at no file has written none
        return ""


def content(path: str) -> bytes:
    """What a file holds.

    :raises OSError: it cannot be read, or is no regular file.
    """
    with opened(path) as file:
        return file.read()


def opened(path: str) -> IO[bytes]:
    """A file to be read.

    :raises OSError: it cannot be read, or is no regular file.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe in its place would keep us for ever
        raise OSError("is no file")
    return open(path, "rb")


def _digest_of(path: str) -> str:
    """A digest of what a file holds, which may be much.

    :raises OSError: it cannot be read, or is no regular file.
    """
    from hashlib import sha256  # noqa: PLC0415  # as above

    digest = sha256()
    with opened(path) as file:
        while data := file.read(_PIECE):
            digest.update(data)
    return digest.hexdigest()


def _contents(paths: Sequence[str]) -> Iterator[str]:
    """Mode and digest of each file.

    :raises OSError: one cannot be read, is no regular file, or all together are too large.
    """
    from hashlib import sha256  # noqa: PLC0415  # as above

    left = MOST_READ
    for path in paths:
        fd = os.open(path, _READ)
        try:
            mode = os.fstat(fd).st_mode
            if not stat.S_ISREG(mode):
                raise OSError("is no file")
            data = os.read(fd, _PIECE)
            left -= len(data)
            digest = sha256(data)
            while data and left >= 0:
                data = os.read(fd, _PIECE)
                left -= len(data)
                digest.update(data)
        finally:
            os.close(fd)
        if left < 0:
            raise OSError("is too large")
        yield f"{stat.S_IMODE(mode):o} {digest.hexdigest()}"


def is_outside(env: Mapping[str, str]) -> bool:
    """Whether nothing in the environment says what only one who decides anew understands, a store for one."""
    return not any(name.startswith(_OWN) for name in env)


def _variables(names: Sequence[str], env: Mapping[str, str]) -> str:
    if not is_outside(env):
        raise OSError("a variable of ours may say anything")
    known = {*names, *(name for name in env if name.startswith(_COUNTING))}
    return repr([(name, env.get(name)) for name in sorted(known)])


def _listing(path: str) -> str:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        raise OSError(_LINK)
    names = []
    with os.scandir(path) as items:
        for item in items:
            name = item.name
            if name.startswith(OURS):
                continue
            if item.is_dir(follow_symlinks=False):
                names.append(f"{name}\0/")
            elif item.is_file(follow_symlinks=False):
                names.append(f"{name}\0")
            else:
                raise OSError(_LINK if item.is_symlink() else "is neither file nor folder")
    names.sort()
    return "\0".join([str(len(names)), *names])


def _mode(path: str) -> str:
    mode = os.lstat(path).st_mode
    if not stat.S_ISDIR(mode):
        raise OSError(_LINK)
    return f"{mode} {os.access(path, os.R_OK | os.X_OK)}"


def _without_ours(names: bytes) -> bytes:
    """What git ignores without our own files, which come and go and are never an input."""
    return b"\0".join(name for name in names.split(b"\0") if not any(map(_is_ours, name.split(b"/"))))


def _is_ours(part: bytes) -> bool:
    return part.startswith(OURS.encode())


def _in_a_checkout() -> bool:
    here, last = os.getcwd(), ""
    while here != last:
        if os.path.exists(os.path.join(here, ".git")):
            return True
        here, last = os.path.dirname(here), here
    return False
