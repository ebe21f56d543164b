"""One target of the fuzzing, in a process of its own, which may crash or hang; see :mod:`tests.torture.fuzzing`.

``python -m tests.torture.fuzz_worker TARGET FOLDER --count N --seconds S --seed N [--atheris]``

Before each input is tried it stands in ``FOLDER/input``, so that it is there whatever happens. What was found is in
``FOLDER/result.json``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import random
import re
import resource
import signal
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.torture.fuzz_target import LONGEST_SECONDS, LONGEST_WAIT, MOST_MEMORY, corpus_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from tests.torture.fuzz_target import Target

_MOST_FAULTS = 20
_WRITE_EVERY = 5.0  # seconds


class HangError(BaseException):
    """An input takes longer than any should."""


class _Trial:
    """Tries inputs and notes what comes of them."""

    def __init__(self, folder: Path, check: Callable[[bytes], bool]) -> None:
        self._folder = folder
        self._check = check
        self._written = 0.0
        self._input = (folder / "input").open("wb", buffering=0)
        self.said: dict[str, Any] = {"tried": 0, "taken": 0, "slowest": 0.0, "faults": {}}

    def __call__(self, data: bytes) -> None:
        """Try one."""
        self._input.seek(0)
        self._input.truncate()
        self._input.write(data)
        begin = time.process_time()  # how long it takes by the clock says how busy the machine is
        signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, LONGEST_WAIT)
        try:
            self.said["taken"] += self._check(data)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # whatever it is, it is a fault
            self._note(error, data)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        self.said["tried"] += 1
        self.said["slowest"] = max(self.said["slowest"], round(time.process_time() - begin, 3))
        now = time.monotonic()
        if now - self._written >= _WRITE_EVERY:
            self._written = now
            self.write()

    def _note(self, error: BaseException, data: bytes) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "checkpoint_action" in frame.filename] or frames
        where = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}"
        name = f"{type(error).__name__} at {where}: {ascii(str(error))[:150]}"
        known = f"{type(error).__name__} {where}"
        if known not in self.said["faults"] and len(self.said["faults"]) < _MOST_FAULTS:
            number = len(self.said["faults"])
            path = self._folder / f"fault-{number}"
            path.write_bytes(data)
            (self._folder / f"fault-{number}.txt").write_text(
                "".join(traceback.format_exception(error))[-20_000:], errors="replace"
            )
            self.said["faults"][known] = [name, str(path)]

    def write(self) -> None:
        """Write what was found so far."""
        self.said["peak"] = _peak()
        (self._folder / "result.json").write_text(json.dumps(self.said))


def _peak() -> int:
    """Bytes that this process has had at most; what the system counts otherwise has that of who started it, too."""
    with suppress(OSError):
        if found := re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text()):
            return int(found[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << (10 if sys.platform == "linux" else 0)


def _hang(_signum: int, _frame: FrameType | None) -> None:
    raise HangError(f"more than {LONGEST_SECONDS:g} s of work, or {LONGEST_WAIT:g} s of waiting")


def main() -> int:
    """Fuzz one target; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--atheris", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _hang)
    signal.signal(signal.SIGALRM, _hang)
    resource.setrlimit(resource.RLIMIT_AS, (4 * MOST_MEMORY, 4 * MOST_MEMORY))
    if options.atheris:
        with _atheris().instrument_imports(include=["checkpoint_action"]):
            target = _target(options.target)
    else:
        target = _target(options.target)
    room = options.folder / "room"
    room.mkdir()
    trial = _Trial(options.folder, target.make(room))
    corpus = corpus_of(target)
    if options.atheris:
        return _guided(options, target, corpus, trial)
    for data in corpus:
        trial(data)
    _by_chance(options, target, corpus, trial)
    trial.write()
    return 0


def _target(name: str) -> Target:
    from tests.torture.fuzz_targets import TARGETS  # noqa: PLC0415  # instrumented where coverage guides

    return TARGETS[name]


def _atheris() -> Any:
    return importlib.import_module("atheris")  # on PyPI, for whoever wants it; it has no types


def _by_chance(options: argparse.Namespace, target: Target, corpus: list[bytes], trial: _Trial) -> None:
    from tests.torture.mutation import Mutator  # noqa: PLC0415

    mutate = Mutator(target.words, random.Random(options.seed))
    end = time.monotonic() + options.seconds
    for _ in range(options.count):
        if time.monotonic() >= end:
            break
        trial(mutate(corpus))


def _guided(options: argparse.Namespace, target: Target, corpus: list[bytes], trial: _Trial) -> int:
    """By libFuzzer, with what it finds beside the corpus; it never comes back."""
    from tests.torture.mutation import Mutator  # noqa: PLC0415

    atheris = _atheris()
    folder = options.folder / "corpus"
    folder.mkdir()
    for number, data in enumerate(corpus):
        (folder / f"{number:04d}").write_bytes(data)
    words = options.folder / "words"
    escaped = ["".join(f"\\x{byte:02x}" for byte in word[:60]) for word in target.words]
    words.write_text("".join(f'"{word}"\n' for word in escaped))

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        if seed % 2:
            made: bytes = atheris.Mutate(data, longest)
            return made
        return Mutator(target.words, random.Random(seed))([data, corpus[seed % len(corpus)]])[:longest]

    atheris.Setup(
        [
            sys.argv[0],
            f"-max_total_time={int(options.seconds)}",
            f"-runs={min(options.count, (1 << 31) - 1)}",
            f"-seed={options.seed % (1 << 31)}",
            f"-dict={words}",
            f"-artifact_prefix={options.folder}/",
            f"-rss_limit_mb={MOST_MEMORY >> 20}",
            "-max_len=65536",
            "-print_final_stats=1",
            str(folder),
        ],
        trial,
        custom_mutator=mutate,
    )
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
