"""What there is between two runs: the job as drafted, the environment, and the workspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tests.resume.disk import File, Folder, Link, RememberedDisk
from tests.resume.drafts import LINKS, Draft, Kind, Take, sound
from tests.resume.recipe import Read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.resume.disk import Node, RealDisk, Tree
    from tests.resume.drafts import SoundStep

__all__ = ["EXTRA", "KINDS", "MODES", "READS", "SHELLS", "SOURCES", "VALUES", "Seed", "Situation", "source"]

SOURCES = (
    "a.c",
    "src/a.c",
    "src/b.c",
    "src/c.h",
    "src/.env",
    "src/lib/d.c",
    "src/lib/e.h",
    "src/lib/deep/f.txt",
    "src/gone.c",
)
FOLDERS = ("src", "src/lib", "src/lib/deep")
READS = (*SOURCES, *LINKS, "src/*.c", "src/*.c", "src/lib/*.h", "src")
EXTRA = ("src/*", "src/**", "**/*.h", "src/lib/", "src/lib/**", "src/none-*", "!src/lib/**", "!**/*.h", "src/lib/d.c")
KINDS: tuple[Kind, ...] = ("file", "file", "file", "copy", "folder", "glob", "tree", "none")
MODES = (0o644, 0o755, 0o600, 0o444)
VALUES = ("", "1", "2")
SHELLS = ("system", "system", "system", "sh", "bash")


def source(first: int, second: int) -> File:
    """One of the contents that a source may have."""
    return File(f"first {first % 3}\nsecond {second % 3}\n".encode())


@dataclass(frozen=True, slots=True)
class Seed:
    """What a step does; the numbers choose among what there is."""

    salt: int = 0
    needs: tuple[int, ...] = ()
    reads: tuple[tuple[int, int, int], ...] = ()
    takes: tuple[tuple[int, int, int, int, int], ...] = ()
    extra: tuple[int, ...] = ()
    kind: int = 0
    count: int = 1
    mode: int = 0
    patches: int | None = None
    env: tuple[tuple[str, str], ...] = ()
    pass_env: tuple[str, ...] = ()
    reads_variables: bool = True
    always: bool = False
    inside: bool = False
    shell: str = "system"


class Situation:
    """Changes to the workspace are made to a real folder and to one that is only remembered.

    :ivar gone: steps that were taken out.
    """

    def __init__(self, seeds: Sequence[Seed], real: RealDisk) -> None:
        self.real = real
        self.known = RememberedDisk()
        self.drafts: list[Draft] = []
        self.gone: list[Draft] = []
        self.job_env: dict[str, str] = {}
        self.outside: dict[str, str] = {}
        self._count = 0
        for path in FOLDERS:
            self.put(path, Folder())
        for path in SOURCES[:-1]:
            self.put(path, source(0, 0))
        for path, targets in LINKS.items():
            self.put(path, Link(targets[0]))
        for seed in seeds:
            self.drafts.append(self.drafted(seed, len(self.drafts)))

    def steps(self) -> list[SoundStep]:
        """The sound job of now."""
        return sound(self.drafts, self.job_env)

    def sources(self) -> Tree:
        """What a run from scratch finds."""
        mine = {*SOURCES, *LINKS, *FOLDERS}
        return {path: node for path, node in self.known.tree().items() if path in mine}

    def outputs(self) -> list[str]:
        """All that lies where steps leave their outputs."""
        return sorted(path for path in self.known.tree() if path.startswith("out/"))

    def put(self, path: str, node: Node) -> None:
        """Put something into both copies of the workspace."""
        self.real.put(path, node)
        self.known.put(path, node)

    def remove(self, path: str) -> None:
        """Remove something from both."""
        self.real.remove(path)
        self.known.remove(path)

    def free_slot(self) -> int:
        """The first name for outputs that no step of the job uses."""
        taken = {draft.slot for draft in self.drafts}
        return next(number for number in range(len(taken) + 1) if number not in taken)

    def fresh_name(self) -> str:
        """An id that there never was."""
        self._count += 1
        return f"s{self._count}"

    def drafted(self, seed: Seed, place: int) -> Draft:
        """A new step for a place in the job."""
        name = self.fresh_name()
        bare = Draft(self._count, name, self.free_slot(), always=seed.always, patches=self._before(place, seed.patches))
        return self.shaped(bare, seed, place)

    def _before(self, place: int, back: int | None) -> int | None:
        """Uid of a step that comes so many places before another."""
        return None if back is None or back >= place else self.drafts[place - 1 - back].uid

    def shaped(self, draft: Draft, seed: Seed, place: int) -> Draft:
        """A step at a place, doing what a seed says."""
        needs = {uid for back in seed.needs if (uid := self._before(place, back)) is not None}
        takes = [
            Take(uid, number, line, head == 1, listed == 1)
            for back, number, line, head, listed in seed.takes
            if (uid := self._before(place, back)) is not None
        ]
        return replace(
            draft,
            salt=seed.salt,
            needs=frozenset(needs),
            reads=tuple(Read(READS[number % len(READS)], line, head == 1) for number, line, head in seed.reads),
            takes=tuple(takes),
            extra=tuple(EXTRA[number % len(EXTRA)] for number in seed.extra),
            kind=KINDS[seed.kind % len(KINDS)],
            count=seed.count,
            mode=MODES[seed.mode % len(MODES)],
            env=dict(seed.env),
            pass_env=seed.pass_env,
            reads_variables=seed.reads_variables,
            where="src" if seed.inside else ".",
            shell=seed.shell,
        )
