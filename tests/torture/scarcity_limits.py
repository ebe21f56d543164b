"""Too few descriptors, too little memory and space, no folder for temporary files, a clock that jumps, a slow disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tests.torture.scarcity_scenes import STEPS, Room, store_words
from tests.torture.trouble import Trouble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.torture.scarcity_desk import Desk
    from tests.torture.scarcity_scenes import Run

__all__ = ["LIMITS"]

_MIB = 1 << 20
_CGROUPS = Path("/sys/fs/cgroup/memory")
_PAGE = 4096
_BOTH = (("local state", Room.words), ("a store", store_words))
_GOOD = frozenset({0})
_SAID = frozenset({0, 1, 5})
"""What a run may end with that lacks what it cannot do without: it says so, in a line."""


def _judge(desk: Desk, what: str, room: Room, run: Run, codes: frozenset[int], words: Sequence[str]) -> None:
    """Look at a run that lacked something, and at the same command once it lacks nothing."""
    desk.count(what)
    found = []
    if run.code is None:
        found.append(f"no end within {run.seconds:.0f} s")
    elif run.code not in codes:
        found.append(f"ended with {run.code}")
    if run.trace:
        found.append("a traceback")
    done, ran = room.done(), room.ran()
    if run.code == 0 and (room.files() != desk.expected or done != set(STEPS)):
        found.append("not all is there")
    room.fix()
    again = room.run(words)
    if again.code != 0 or room.files() != desk.expected or room.done() != set(STEPS):
        found.append(f"afterwards ended with {again.code}: {again.said[-500:]!r}")
    if lost := sorted(step for step in done if room.ran()[step] != ran[step]):
        found.append(f"afterwards ran again what was recorded as done: {lost}")
    if found:
        desk.fault(f"{what}: {'; '.join(found)}; said: {run.said[-1500:]!r}")
    else:
        shutil.rmtree(room.folder, ignore_errors=True)  # a disk that is mounted in it goes later


def descriptors(desk: Desk) -> None:
    """Few of them, one more each time, without a store and with one; and 4,096, with more files than that."""
    for kind, words_of, few in (("local state", Room.words, 9), ("a store", store_words, 20)):
        for number in range(6, 41) if desk.long else (few,):
            room = desk.room(fixed=True)
            words = words_of(room)
            # What a store lacks costs a warning; what a step lacks costs the step, which is to be seen.
            run = room.run(words, prefix=["prlimit", f"--nofile={number}"])
            _judge(desk, f"at most 6 to 40 descriptors, {kind}", room, run, _SAID, words)
    if not desk.long:
        return
    many = desk.room(fixed=True)
    (many.work / "checkpoint.yml").write_text(_many_files())
    words = store_words(many, "--jobs", "16")
    for _machine in range(2):
        run = many.run(words, prefix=["prlimit", "--nofile=4096"])
        desk.count("at most 4,096 descriptors, 40 steps, 16 at once, 6,000 files, a store")
        files = len(list(many.work.glob("out*/*")))
        if run.code != 0 or run.trace or "warning" in run.said or files != 6000:
            desk.fault(f"4,096 descriptors: ended with {run.code}, {files} files; said: {run.said[-1500:]!r}")
        job = many.work / "checkpoint.yml"
        text = job.read_text()
        many.fresh_machine()
        job.write_text(text)
    shutil.rmtree(many.folder)


def _many_files() -> str:
    steps = "".join(
        f"  - {{id: s{number}, needs: [], inputs: [], outputs: [out{number}/],"
        f" run: 'mkdir out{number}; touch out{number}/f{{1..150}}'}}\n"
        for number in range(40)
    )
    return f"job: demo\nsteps:\n{steps}"


def memory(desk: Desk) -> None:
    """64 MiB for the tool: of data (RLIMIT_DATA), and where a cgroup can be made of all that it and its steps use.

    And less than it needs, down to where Python just starts.
    """
    data = ["prlimit", f"--data={64 * _MIB}"]
    for kind, words_of in _BOTH:
        room = desk.room(fixed=True)
        run = room.run(words_of(room), prefix=data)
        _judge(desk, f"64 MiB of data (RLIMIT_DATA), {kind}", room, run, _GOOD, words_of(room))
    for limit, what in (("data", "of data"), ("as", "of addresses")):
        for size in (16, 24, 32, 40, 48) if desk.long else (32,):
            for kind, words_of in _BOTH:
                room = desk.room(fixed=True)
                run = room.run(words_of(room), prefix=["prlimit", f"--{limit}={size * _MIB}"])
                _judge(desk, f"16 to 48 MiB {what}, which is too little, {kind}", room, run, _SAID, words_of(room))
    with _cgroup(64 * _MIB) as group:
        if group is None:
            desk.outcome.tried["64 MiB in a cgroup: left out, none can be made here"] = 0
            return
        prefix = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"]
        room = desk.room(fixed=True)
        text = (room.work / "checkpoint.yml").read_text()
        large = text.replace("seq 3000 > d/numbers", 'seq 3000 > d/numbers; cp "$KEEP/large" d/')
        with (room.keep / "large").open("wb") as file:
            for _ in range(80 if desk.long else 20):
                file.write(os.urandom(_MIB))
        for machine in range(2):
            (room.work / "checkpoint.yml").write_text(large)
            run = room.run(store_words(room), prefix=prefix)
            same = (room.work / "d/large").exists() and (
                subprocess.run(["cmp", "-s", room.work / "d/large", room.keep / "large"], check=False).returncode == 0
            )
            desk.count("64 MiB for all together (cgroup), a file larger than that, a store")
            if run.code != 0 or run.trace or not same or (machine and "restored" not in run.said):
                desk.fault(f"64 MiB in a cgroup: ended with {run.code}; said: {run.said[-1500:]!r}")
            room.fresh_machine()
        shutil.rmtree(room.folder)


@contextmanager
def _cgroup(size: int) -> Iterator[Path | None]:
    """A memory cgroup of version 1 with a limit, or ``None``."""
    folder = _CGROUPS / f"torture-{os.getpid()}-{os.urandom(4).hex()}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text(str(size))
    except OSError:
        with suppress(OSError):
            folder.rmdir()
        yield None
        return
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()


def temporary_folder(desk: Desk) -> None:
    """No folder for temporary files: missing, not to be written, full."""
    for number, kind in enumerate(("is missing", "takes nothing", "is full")):
        for place, words_of in _BOTH if desk.long else _BOTH[number % 2 :][:1]:
            room = desk.room(fixed=True)
            words = words_of(room)
            script = _no_temporary(kind, room.folder / "gone")
            if script is None:
                desk.outcome.tried[f"TMPDIR {kind}: left out, this needs root"] = 0
                continue
            env = {name: str(room.folder / "gone") for name in ("TMPDIR", "TEMP", "TMP")}
            run = room.run(words, env, prefix=script)
            _judge(desk, f"TMPDIR {kind}, {place}", room, run, _GOOD, words)


def _no_temporary(kind: str, place: Path) -> list[str] | None:
    """What starts a program with no place for temporary files where it looks for one."""
    if kind == "is missing":
        return ["env"]
    if not _may_mount():
        return None
    place.mkdir()
    options = "ro" if kind == "takes nothing" else "size=4k"
    # Beside TMPDIR, Python looks for these; what the tests lie in must stay.
    rest = [one for one in ("/tmp", "/var/tmp") if not place.is_relative_to(Path(one).resolve())]
    mounts = "; ".join(f"mount -t tmpfs -o {options} none {one}" for one in (place, *rest))
    fill = "" if options == "ro" else f"; head -c 4096 /dev/zero > {place}/full"
    return ["unshare", "--mount", "sh", "-c", f'{mounts}{fill}; exec "$@"', "sh"]


def _may_mount() -> bool:
    return (
        sys.platform == "linux"
        and os.geteuid() == 0
        and subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode == 0
    )


def small_disks(desk: Desk) -> None:
    """File systems with a few pages of space, one more each time: for the state, for the store; and one of ext4."""
    if not _may_mount():
        desk.outcome.tried["small file systems: left out, mounting one needs root"] = 0
        return
    for pages in range(1, 40) if desk.long else (5,):
        for what in ("state", "store"):
            room = desk.room(fixed=True)
            words = room.words() if what == "state" else store_words(room)
            with _mounted(room.folder / what, ["-t", "tmpfs", "-o", f"size={pages * _PAGE}", "none"]) as grow:
                run = room.run(words)
                grow(["-o", f"remount,size={16 * _MIB}"])
                codes = frozenset({0, 1, 5}) if what == "state" else _GOOD
                _judge(desk, f"the {what} on a tmpfs of 1 to 39 pages", room, run, codes, words)
    for inodes in range(2, 20) if desk.long else (7,):
        room = desk.room(fixed=True)
        words = room.words()
        with _mounted(room.state, ["-t", "tmpfs", "-o", f"nr_inodes={inodes}", "none"]) as grow:
            run = room.run(words)
            grow(["-o", "remount,nr_inodes=9999"])
            _judge(desk, "the state on a tmpfs of 2 to 19 inodes", room, run, _SAID, words)
    for kind in ("read-only", "full"):
        _ext4(desk, kind)


def _ext4(desk: Desk, kind: str) -> None:
    """The state on a real disk's file system that is full, or becomes one that is only read after a first run."""
    if shutil.which("mkfs.ext4") is None:
        desk.outcome.tried["ext4: left out, mkfs.ext4 is not here"] = 0
        return
    room = desk.room(fixed=False)
    words = room.words()
    image = room.folder / "image"
    with image.open("wb") as file:
        file.truncate(2 * _MIB)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-N", "64", str(image)], check=True)
    with ExitStack() as stack:
        try:
            again = stack.enter_context(_mounted(room.state, ["-o", "loop", str(image)]))
        except subprocess.CalledProcessError:
            desk.outcome.tried["ext4: left out, no loop device is here"] = 0
            return
        room.run(words)
        room.fix()
        if kind == "full":
            with suppress(OSError), (room.state / "filling").open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 512)
        else:
            again(["-o", "remount,ro"])
        run = room.run(words)
        if kind == "full":
            (room.state / "filling").unlink()
        else:
            again(["-o", "remount,rw"])
        _judge(desk, f"the state on an ext4 that is {kind}", room, run, frozenset({0, 5}), words)


@contextmanager
def _mounted(place: Path, words: Sequence[str]) -> Iterator[Callable[[Sequence[str]], None]]:
    """A file system at a place; what mounts it again with other options."""
    place.mkdir()
    subprocess.run(["mount", *words, str(place)], check=True, capture_output=True)

    def again(options: Sequence[str]) -> None:
        subprocess.run(["mount", *options, str(place)], check=True)

    try:
        yield again
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=False)


def clock(desk: Desk) -> None:
    """A wall clock that jumps to and fro by seconds and by years, at every third look at it."""
    for kind, words_of in _BOTH:
        for _ in range(10 if desk.long else 1):
            room = desk.room(fixed=False)
            words = words_of(room)
            env = Trouble(clock=True).environment(desk.library, room.folder / "calls")
            first = room.run(words, env)
            if first.code != 1 or first.trace:
                desk.fault(f"a clock that jumps: ended with {first.code}; said: {first.said[-1500:]!r}")
            room.fix()
            if kind == "a store":
                room.fresh_machine()
            run = room.run(words, env)
            counts = room.ran()
            if (counts["one"], counts["two"]) != (1, 1):
                desk.fault(f"a clock that jumps: steps ran again: {counts}; said: {run.said[-1500:]!r}")
            _judge(desk, f"a wall clock that jumps to and fro, {kind}", room, run, _GOOD, words)


def slow_disk(desk: Desk) -> None:
    """Each call to the disk takes its time; a store's never comes back."""
    for what, words_of in (("state", Room.words), ("store", store_words)):
        room = desk.room(fixed=True)
        words = words_of(room)
        slow = Trouble([room.folder / what], ("open", "write", "sync", "rename"), first=1, delay=50)
        run = room.run(words, slow.environment(desk.library, room.folder / "calls"))
        _judge(desk, f"a slow disk under the {what}", room, run, _GOOD, words)
    for number in (1, 3, 6, 10, 15, 25, 40) if desk.long else (2,):
        room = desk.room(fixed=True)
        words = store_words(room)
        calls = ("open", "write", "sync", "rename", "mkdir", "look", "read")
        hanging = Trouble([room.store], calls, first=number, delay=-1)
        # The copy's limits are those of the real one, made shorter; the hanging call itself can be ended by nobody.
        run = room.run(
            words, {**hanging.environment(desk.library, room.folder / "calls"), "PYTHONPATH": str(desk.brisk)}
        )
        _judge(desk, "a store's disk whose calls never come back", room, run, _GOOD, words)


LIMITS: Mapping[str, Callable[[Desk], None]] = {
    "descriptors": descriptors,
    "memory": memory,
    "temporary folder": temporary_folder,
    "small disks": small_disks,
    "clock": clock,
    "slow disk": slow_disk,
}
"""What can be taken away, each with what takes it."""
