"""The answer of ``plan --verify stat`` as a run has kept it, given again while all that it was made of is the same.

Loaded before everything else, as loading the rest takes longer than all of this: so it imports next to nothing.
:mod:`checkpoint_action.runner.remembering` writes what is read here.
"""

from __future__ import annotations

import os
import stat
import sys

from checkpoint_action.runner.git_words import IgnoredBeside

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

__all__ = [
    "FORMAT",
    "JOB_FILES",
    "Basis",
    "Memory",
    "Question",
    "content",
    "is_held",
    "mark_of",
    "recalled",
    "stamp",
    "write_answer",
]

FORMAT = 1
"""Number of the layout of the file; described in docs/state.md."""

_OURS = ".checkpoint-run-"
_ENDING = ".plan"
JOB_FILES = ("checkpoint.yml", "checkpoint.yaml")
"""The job files that are looked for in the current folder."""

_VALUED = {"-f": "file", "--file": "file", "--state-dir": "state_dir", "--job": "job"}
_OWN = "CHECKPOINT_"
_COUNTING = ("GITHUB_", "RUNNER_")  # variables by which it is known where we run
_BETWEEN = "\0\0"  # no path, name or text is empty or holds one
_LINK = "is no plain folder"


class Question:
    """What a command line asks, as far as an answer to it is ever kept.

    :param file: the job file.
    :param job: the job's name where the words give one.
    """

    __slots__ = ("file", "job", "json", "state_dir")

    def __init__(
        self, file: str | None = None, state_dir: str | None = None, job: str | None = None, *, json: bool = False
    ) -> None:
        self.file = file or JOB_FILES[0]
        self.state_dir = state_dir or "."
        self.job = job
        self.json = json

    @classmethod
    def of(cls, words: Sequence[str]) -> Self | None:
        """What words ask; ``None`` where that is something else, or not clear at a glance."""
        rest = list(words)
        given: dict[str, str] = {}
        json = trusting = False
        if not rest or rest.pop(0) != "plan":
            return None
        while rest:
            word = rest.pop(0)
            if word == "--json":
                json = True
            elif word == "--verify=stat" or (word == "--verify" and rest[:1] == ["stat"]):
                del rest[: word == "--verify"]
                trusting = True
            elif word in _VALUED and _VALUED[word] not in given and rest and rest[0] and not rest[0].startswith("-"):
                given[_VALUED[word]] = rest.pop(0)
            else:
                return None
        return cls(**given, json=json) if trusting else None

    def words(self) -> list[str]:
        """Words that ask so."""
        job = [] if self.job is None else ["--job", self.job]
        return ["plan", "--verify", "stat", "--file", self.file, "--state-dir", self.state_dir, *job]

    def key(self) -> str:
        """A digest over all that says which job is meant, by whom, and by which program.

        :raises OSError: there is no current folder.
        """
        from hashlib import sha256  # noqa: PLC0415  # most command lines do not come this far

        from checkpoint_action import __version__  # noqa: PLC0415

        places = (os.getcwd(), self.file, os.path.realpath(self.file), self.state_dir, os.path.realpath(self.state_dir))
        who = str(getattr(os, "geteuid", int)())
        text = "\0".join((__version__, sys.version, __file__, who, *places, self.job or ""))
        return sha256(os.fsencode(text)).hexdigest()


class Basis:
    """All that the answer was made of: as long as a look at it shows the same, the answer is the same.

    :param file: the job file.
    :param state: path of the state's files without their endings.
    :param variables: names of those of the environment that count.
    :param git: whether it counts what git ignores.
    :param stamped: paths of files whose content counts, and of folders whose names count: their size, times, inode and
        mode tell.
    :param listed: paths of folders whose names count, and of what kind each is, where their times do not tell.
    :param kept: paths of folders whose own mode counts, and that they are no links.
    :param links: paths of links whose targets count.
    """

    __slots__ = ("file", "git", "kept", "links", "listed", "stamped", "state", "variables")

    def __init__(
        self,
        file: str,
        state: str,
        variables: Sequence[str],
        *,
        git: bool,
        stamped: Sequence[str],
        listed: Sequence[str],
        kept: Sequence[str],
        links: Sequence[str],
    ) -> None:
        self.file, self.state = file, state
        self.variables, self.git = variables, git
        self.stamped, self.listed, self.kept, self.links = stamped, listed, kept, links

    def look(self, env: Mapping[str, str], ignored: bytes | None = None) -> str:
        """A digest over all of it, as it is now.

        :param env: the environment.
        :param ignored: what git has said, where it need not be asked.
        :raises OSError: something cannot be looked at, or is of a kind that no answer is kept for.
        """
        from hashlib import sha256  # noqa: PLC0415  # as above

        git = IgnoredBeside(env) if self.git and ignored is None else None  # it looks while we do
        try:
            seen = sha256()
            for path in (self.file, f"{self.state}.json", f"{self.state}.journal"):
                seen.update(b"%s\0" % sha256(content(path)).hexdigest().encode())
            texts = [_variables(self.variables, env), _stamp_of_index(f"{self.state}.index")]
            texts += [stamp(os.lstat(path)) for path in self.stamped]
            texts += [_listing(path) for path in self.listed]
            texts += [_mode(path) for path in self.kept]
            texts += [os.readlink(path) for path in self.links]
            seen.update(os.fsencode("\0".join(texts)))
            seen.update(b"\0%d\0" % _in_a_checkout())
            seen.update(_without_ours((git.answer() if git is not None else ignored) or b""))
        finally:
            if git is not None:
                git.close()
        return seen.hexdigest()


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
    if not stat.S_ISREG(os.stat(path).st_mode):  # a pipe in its place would keep us for ever
        raise OSError("is no file")
    with open(path, "rb") as file:
        return file.read()


def mark_of(file: str) -> str:
    """A digest over all by which a job file says what the job is called and which steps it has.

    :raises OSError: it cannot be read.
    """
    from hashlib import sha256  # noqa: PLC0415  # as above

    from checkpoint_action import __version__  # noqa: PLC0415

    folder = os.path.basename(os.path.dirname(os.path.realpath(file)))
    return sha256(os.fsencode(f"{__version__}\0{folder}\0") + content(file)).hexdigest()


def _variables(names: Sequence[str], env: Mapping[str, str]) -> str:
    known = set(names)
    for name in env:
        if name.startswith(_OWN):
            raise OSError(f"{name} may say anything")  # a store, say, that would have to be asked
        if name.startswith(_COUNTING):
            known.add(name)
    return repr([(name, env.get(name)) for name in sorted(known)])


def _listing(path: str) -> str:
    names = []
    with os.scandir(path) as items:
        for item in items:
            name = item.name
            if name.startswith(_OURS):
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
    return part.startswith(_OURS.encode())


def _in_a_checkout() -> bool:
    here, last = os.getcwd(), ""
    while here != last:
        if os.path.exists(os.path.join(here, ".git")):
            return True
        here, last = os.path.dirname(here), here
    return False


class Memory:
    """What a run has kept.

    :param key: of the question.
    :param seen: what a look at the basis showed.
    :param lines: the answer for people.
    :param json: the answer for programs.
    """

    __slots__ = ("basis", "json", "key", "lines", "seen")

    def __init__(self, key: str, seen: str, lines: str, json: str, basis: Basis) -> None:
        self.key, self.seen, self.lines, self.json, self.basis = key, seen, lines, json, basis

    def to_bytes(self) -> bytes:
        """As a file: a line with a digest over all that follows it."""
        basis = self.basis
        lists = (basis.variables, basis.stamped, basis.listed, basis.kept, basis.links)
        texts = (self.key, self.seen, self.lines, self.json, f"{int(basis.git)}", *map("\0".join, lists))
        body = os.fsencode(_BETWEEN.join(texts))
        return _head(body) + body

    @classmethod
    def of(cls, path: str, file: str) -> Self:
        """What a file holds.

        :param file: the job file.
        :raises OSError: it cannot be read.
        :raises ValueError: it is damaged or of another format.
        """
        head, _, body = content(path).partition(b"\n")
        if head + b"\n" != _head(body):
            raise ValueError("damaged")
        key, seen, lines, json, git, *lists = os.fsdecode(body).split(_BETWEEN)
        names, stamped, listed, kept, links = (text.split("\0") if text else [] for text in lists)
        state = path.removesuffix(_ENDING)
        basis = Basis(file, state, names, git=git == "1", stamped=stamped, listed=listed, kept=kept, links=links)
        return cls(key, seen, lines, json, basis)


def _head(body: bytes) -> bytes:
    from hashlib import sha256  # noqa: PLC0415  # as above

    return b"checkpoint-run plan %d %s\n" % (FORMAT, sha256(body).hexdigest().encode())


def recalled(words: Sequence[str], env: Mapping[str, str], *, held: bool = False) -> str | None:
    """The answer to a command line, where one is kept that is certain to be what deciding anew would give.

    :param words: the command line.
    :param env: the environment.
    :param held: whether it is the caller who holds the job's lock.
    """
    question = Question.of(words)
    if question is None or sys.platform == "win32":
        return None
    try:
        for number in range(3):
            os.fstat(number)  # else one of our files would get the number
        return _recalled(question, env, held=held)
    except (OSError, ValueError):
        return None


def _recalled(question: Question, env: Mapping[str, str], *, held: bool) -> str | None:
    key = question.key()
    names = [f"{_OURS}{question.job}{_ENDING}"] if question.job else os.listdir(question.state_dir)
    for name in names:
        if name.startswith(_OURS) and name.endswith(_ENDING):
            memory = Memory.of(os.path.join(question.state_dir, name), question.file)
            if memory.key == key:
                busy = not held and is_held(f"{memory.basis.state}.lock")
                if busy or memory.basis.look(env) != memory.seen:
                    return None
                return memory.json if question.json else memory.lines
    return None


def is_held(path: str) -> bool:
    """Whether a run is on.

    :param path: the job's lock file.
    :raises OSError: there is none, or it cannot be looked at.
    """
    if sys.platform == "win32":
        return True
    import fcntl  # noqa: PLC0415  # not on Windows

    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def write_answer(text: str) -> bool:
    """Write an answer to standard output, as it is when it is decided anew.

    :returns: whether that is done with; if not, whoever decides anew will say why.
    """
    encoding: str | None = getattr(sys.stdout, "encoding", None)
    if encoding is None or "a\n".encode(encoding, "replace") != b"a\n":
        return False
    view = memoryview(text.encode("ascii"))
    while view:
        try:
            view = view[os.write(1, view) :]
        except BlockingIOError:
            import select  # noqa: PLC0415  # only where another program has set it so

            select.select([], [1], [])
        except OSError as error:
            return isinstance(error, BrokenPipeError)  # a reader that has seen enough is no error
    return True
