"""What a run has kept of its end, given again while all that it was made of is the same.

So ``plan`` answers, and a run with nothing to do ends, without loading what decides, as that takes longer than all of
this. For the same reason this imports next to nothing. :mod:`checkpoint_action.runner.remembering` writes what is read
here.
"""

from __future__ import annotations

import os
import sys
import time

from checkpoint_action.runner.basis import OURS, content
from checkpoint_action.runner.holding import hold, is_held, name_holder
from checkpoint_action.store.folders import check_owner

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from typing_extensions import Self

    from checkpoint_action.runner.memory import Memory

__all__ = ["JOB_FILES", "Question", "Reply", "content", "is_drawn_on", "is_held", "mark_of", "recalled", "write_reply"]

JOB_FILES = ("checkpoint.yml", "checkpoint.yaml")
"""The job files that are looked for in the current folder."""

_VALUED = {"-f": "file", "--file": "file", "--state-dir": "state_dir", "--job": "job", "--verify": "verify"}
_PLAIN = {
    "run": {"-q": "quiet", "--quiet": "quiet", "--no-logs": "no_logs"},
    "plan": {"--json": "json"},
}
_ENDING = ".plan"
_LEFT_BY_A_RUN = (".run", ".progress")
_OTHER_FILES = (".json", ".journal", ".index", ".lock", ".logs", *_LEFT_BY_A_RUN, ".archives", ".fetched", _ENDING)


class Question:
    """What a command line asks, as far as an answer to it is ever kept.

    :ivar file: the job file.
    :ivar job: the job's name where the words give one.
    :ivar runs: whether it is a run that is asked for, rather than a plan.
    :ivar trusting: whether size, times and inode of a file stand for what is in it.
    """

    __slots__ = ("file", "job", "json", "no_logs", "quiet", "runs", "state_dir", "trusting")

    def __init__(
        self,
        file: str | None = None,
        state_dir: str | None = None,
        job: str | None = None,
        *,
        runs: bool = False,
        trusting: bool = False,
        json: bool = False,
        quiet: bool = False,
        no_logs: bool = False,
    ) -> None:
        self.file = file or next(filter(os.path.isfile, JOB_FILES), JOB_FILES[0])
        self.state_dir = state_dir or "."
        self.job = job
        self.runs, self.trusting = runs, trusting
        self.json, self.quiet, self.no_logs = json, quiet, no_logs

    @classmethod
    def of(cls, words: Sequence[str]) -> Self | None:
        """What words ask; ``None`` where that is something else, or not clear at a glance."""
        rest = list(words)
        verb = rest.pop(0) if rest and not rest[0].startswith("-") else "run"
        if verb not in _PLAIN:
            return None
        given: dict[str, str] = {}
        said: dict[str, bool] = {}
        while rest:
            word = rest.pop(0)
            if word.startswith("--verify="):
                rest.insert(0, word.removeprefix("--verify="))
                word = "--verify"
            if word in _PLAIN[verb]:
                said[_PLAIN[verb][word]] = True
            elif word in _VALUED and _VALUED[word] not in given and rest and rest[0] and not rest[0].startswith("-"):
                given[_VALUED[word]] = rest.pop(0)
            else:
                return None
        verify = given.get("verify", "full")
        if verify not in ("full", "stat"):
            return None
        runs, trusting = verb == "run", verify == "stat"
        return cls(given.get("file"), given.get("state_dir"), given.get("job"), runs=runs, trusting=trusting, **said)

    def words(self) -> list[str]:
        """Words that ask for a plan of the same."""
        job = [] if self.job is None else ["--job", self.job]
        verify = "stat" if self.trusting else "full"
        return ["plan", "--verify", verify, "--file", self.file, "--state-dir", self.state_dir, *job]

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


def mark_of(file: str) -> str:
    """A digest over all by which a job file says what the job is called and which steps it has.

    :raises OSError: it cannot be read.
    """
    from hashlib import sha256  # noqa: PLC0415  # as above

    from checkpoint_action import __version__  # noqa: PLC0415

    folder = os.path.basename(os.path.dirname(os.path.realpath(file)))
    return sha256(os.fsencode(f"{__version__}\0{folder}\0") + content(file)).hexdigest()


class Reply:
    """What is said, and where.

    :ivar stream: number of the standard stream.
    :ivar lock: the descriptor that holds the job for a run; it is closed with the program.
    """

    __slots__ = ("lock", "stream", "text")

    def __init__(self, text: str, stream: int, lock: int | None = None) -> None:
        self.text, self.stream, self.lock = text, stream, lock


def recalled(
    words: Sequence[str],
    env: Mapping[str, str],
    duration: Callable[[float], str] = str,
    *,
    held: bool = False,
) -> Reply | None:
    """The reply to a command line, where one is kept that is certain to be what deciding anew would give.

    :param words: the command line.
    :param env: the environment.
    :param duration: seconds in words.
    :param held: whether it is the caller who holds the job's lock.
    """
    begin = time.perf_counter()
    question = Question.of(words)
    if question is None or sys.platform == "win32":
        return None
    try:
        for number in range(3):
            os.fstat(number)  # else one of our files would get the number
        if is_drawn_on(question):
            return None
        stream = 2 if question.runs else 1
        if not _shows_ascii(stream):
            return None
        memory = _kept(question)
        if memory is None:
            return None
        if not question.runs:
            good = (held or not is_held(f"{memory.basis.state}.lock")) and _is_so(memory, question, env)
            return Reply(memory.answers.json if question.json else memory.answers.lines, stream) if good else None
        lock = _held_for(memory, question, env)
        if lock is None:
            return None
        text = f"{memory.answers.run}{duration(time.perf_counter() - begin)}{memory.answers.rest}"
        return Reply("" if question.quiet else text, stream, lock)
    except (OSError, ValueError):
        return None


def is_drawn_on(question: Question) -> bool:
    """Whether what a run says goes to a terminal, where it is drawn in ways that no answer is kept for."""
    try:
        return question.runs and not question.quiet and os.isatty(2)
    except OSError:
        return False


def _kept(question: Question) -> Memory | None:
    """What is kept for a question, whether it still holds or not.

    :raises OSError: it cannot be read.
    :raises ValueError: it is damaged.
    """
    from checkpoint_action.runner.memory import Memory  # noqa: PLC0415  # most command lines do not come this far

    key = question.key()
    names = [f"{OURS}{question.job}{_ENDING}"] if question.job else os.listdir(question.state_dir)
    for name in names:
        if name.startswith(OURS) and name.endswith(_ENDING):
            path = os.path.join(question.state_dir, name)
            state = path.removesuffix(_ENDING)
            check_owner(question.state_dir, [f"{state}{ending}" for ending in _OTHER_FILES])
            memory = Memory.of(path, question.file)
            if memory.key == key:
                return memory
    return None


def _is_so(memory: Memory, question: Question, env: Mapping[str, str]) -> bool:
    """Whether all that the answer was made of is as it was."""
    sights = memory.sights
    seen = sights.stamps if question.trusting else sights.contents
    return bool(seen) and memory.basis.look(env, trusting=question.trusting) == seen


def _held_for(memory: Memory, question: Question, env: Mapping[str, str]) -> int | None:
    """Have a run's job held, if the run is sure to do nothing: the lock's descriptor.

    :raises OSError: something cannot be looked at.
    """
    state = memory.basis.state
    if not _has_nothing_to_tidy(state, logs=not question.no_logs) or not all(
        _is_on_path(program, where or env.get("PATH", "")) for program, where in memory.shells
    ):
        return None
    if not question.quiet and _holds_a_secret(memory, env):
        return None
    path = f"{state}.lock"
    lock = hold(path)
    if lock is None:
        return None
    try:
        there, here = os.stat(path), os.fstat(lock)
        if (there.st_ino, there.st_dev) == (here.st_ino, here.st_dev) and _is_so(memory, question, env):
            name_holder(lock)
            lock, taken = None, lock
            return taken
    finally:
        if lock is not None:
            os.close(lock)
    return None


def _has_nothing_to_tidy(state: str, *, logs: bool) -> bool:
    """Whether a run would find its folders as it leaves them, and could write what it has to."""
    folder = os.path.dirname(state) or "."
    return (
        not any(os.path.lexists(f"{state}{ending}") for ending in _LEFT_BY_A_RUN)
        and (not logs or os.path.lexists(f"{state}.logs"))
        and os.access(folder, os.W_OK | os.X_OK)
        and os.access(f"{state}.journal", os.W_OK)
    )


def _is_on_path(program: str, path: str) -> bool:
    """Whether a shell can be started; where it would take more than a glance to find it, it is not."""
    folders = [""] if os.path.dirname(program) else path.split(os.pathsep)
    names = (program, "python3") if program == "python" else (program,)
    places = (os.path.join(folder, name) for name in names for folder in folders)
    return any(os.path.isfile(place) and os.access(place, os.X_OK) for place in places)


def _holds_a_secret(memory: Memory, env: Mapping[str, str]) -> bool:
    said = memory.answers.run + memory.answers.rest
    lines = (line.strip() for name in memory.secrets for line in env.get(name, "").splitlines())
    return any(line and line in said for line in lines)


def _shows_ascii(stream: int) -> bool:
    encoding: str | None = getattr((sys.stdout, sys.stderr)[stream - 1], "encoding", None)
    return encoding is not None and "a\n".encode(encoding, "replace") == b"a\n"


def write_reply(reply: Reply) -> bool:
    """Write a reply as it is written when it is decided anew.

    :returns: whether that is done with; if not, whoever decides anew will say why.
    """
    if not _shows_ascii(reply.stream):
        return False
    view = memoryview(reply.text.encode("ascii"))
    while view:
        try:
            view = view[os.write(reply.stream, view) :]
        except BlockingIOError:
            import select  # noqa: PLC0415  # only where another program has set it so

            select.select([], [reply.stream], [])
        except OSError as error:
            # Lines beside the work are nobody's answer, and a reader that has seen enough is no error.
            return reply.stream != 1 or isinstance(error, BrokenPipeError)
    return True
