"""What a step does, as a text for ``sh`` and as the same thing done in Python."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Literal, TypeAlias

from tests.resume.disk import File, Folder, follow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.resume.disk import Disk

__all__ = ["Read", "Recipe", "Trip", "Variable", "named_from"]

Trip: TypeAlias = Literal["early", "half", "late", "missing"]
"""Where a step goes wrong for a reason that lies outside: before it does anything, with half of its first output
written, with all of it written, or in that it ends well but its outputs are gone again."""

_HALF = File(b"half\n")


@dataclass(frozen=True, slots=True)
class Read:
    """Files that are read.

    :param pattern: a path, a path with ``*`` in its last part, or a folder for all the files below it.
    :param line: which line of what the step makes depends on them.
    :param head: whether only their first lines are read.
    """

    pattern: str
    line: int
    head: bool = False


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable that is read."""

    name: str
    line: int


@dataclass(frozen=True, slots=True)
class Recipe:
    """A deterministic command: two check sums of what it reads go into all that it makes.

    What it leaves depends on nothing else: it removes first what an older version of it may have left. Files of an even
    number hold both sums, those of an odd number only the first.

    :param where: the folder it runs in; all other paths are relative to the workspace.
    :param remark: text that changes nothing.
    :param clean: what is removed first; a ``*`` in a last part stands for any name.
    :param copies: a file whose content and mode the first file gets, instead of the sums.
    :param patches: a file of another step, of which it keeps the first line and replaces the second.
    :param signature: goes into the second line, so that no two steps replace it by the same.
    """

    where: str
    salt: str
    remark: str
    pieces: tuple[Read | Variable, ...]
    clean: tuple[str, ...] = ()
    folders: tuple[tuple[str, int], ...] = ()
    files: tuple[tuple[str, int], ...] = ()
    copies: str = ""
    patches: tuple[str, int] | None = None
    signature: str = ""

    @property
    def targets(self) -> list[str]:
        """All files that it writes."""
        return [*(path for path, _ in self.files), *([self.patches[0]] if self.patches else [])]

    # ------------------------------------------------------------------------------------------ in Python

    def perform(self, disk: Disk, env: Mapping[str, str], trip: Trip | None = None) -> int:
        """Do it.

        :returns: the exit code.
        """
        if trip == "early":
            return 3
        one, two = self._sums(disk, env)
        source = follow(disk, self.copies) if self.copies else None
        for pattern in self.clean:
            for path in _matching(disk, pattern, hidden=True):
                disk.remove(path)
        for path, _ in self.folders:
            disk.put(path, Folder())
        if trip == "half":
            for path in self.targets[:1]:
                disk.put(path, _HALF)
            return 3
        for number, (path, mode) in enumerate(self.files):
            second = f"{two} {number}" if number % 2 == 0 else ""
            disk.put(path, File(f"{one} {number}\n{second}\n".encode(), mode))
        if self.copies:
            disk.put(self.files[0][0], source or File(b""))
        for path, mode in self.folders:
            disk.put(path, Folder(mode))
        if self.patches is not None:
            path, mode = self.patches
            there = disk.get(path)
            kept = there.content.partition(b"\n")[0] if isinstance(there, File) else b""
            disk.put(path, File(kept + f"\n{two} {self.signature}\n".encode(), mode))
        if trip == "missing":
            for path in [*self.targets, *(path for path, _ in self.folders)]:
                disk.remove(path)
        return 3 if trip == "late" else 0

    def _sums(self, disk: Disk, env: Mapping[str, str]) -> tuple[str, str]:
        texts = [f"{self.salt}\n".encode(), f"{self.salt}\n".encode()]
        for piece in self.pieces:
            if isinstance(piece, Variable):
                texts[piece.line] += f"{env.get(piece.name, 'unset')}\n".encode()
                continue
            for path in _matching(disk, piece.pattern):
                file = follow(disk, path)
                content = file.content if file else b""
                end = content.find(b"\n") + 1
                texts[piece.line] += content[:end] if piece.head and end else content
        return _cksum(texts[0]), _cksum(texts[1])

    # ------------------------------------------------------------------------------------------ in sh

    def text(self) -> str:
        """The same for ``sh``.

        It leaves its id in ``$RUNS`` each time, and goes wrong where there is a file ``$TRIPS/<id>.<trip>``.
        """
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield "umask 022"
        yield 'trip() { [ -e "$TRIPS/$CHECKPOINT_STEP.$1" ]; }'
        yield 'echo "$CHECKPOINT_STEP" >>"$RUNS"'
        yield "if trip early; then exit 3; fi"
        for line, name in enumerate(("one", "two")):
            pieces = "".join(self._piece(piece) for piece in self.pieces if piece.line == line)
            yield f"{name}=$({{ echo {self.salt}; {pieces}}} 2>/dev/null | cksum)"
        for pattern in self.clean:
            yield f"rm -rf {self._at(pattern)}"
        for path, _ in self.folders:
            yield f"mkdir -p {self._at(path)}"
        folders = {path.rpartition("/")[0] for path in self.targets}
        yield from (f"mkdir -p {self._at(folder)}" for folder in sorted(folders) if folder)
        yield f"if trip half; then {self._half()}exit 3; fi"
        for number, (path, mode) in enumerate(self.files):
            second = f"$two {number}" if number % 2 == 0 else ""
            yield f'printf "%s\\n" "$one {number}" "{second}" >{self._at(path)}; chmod {mode:o} {self._at(path)}'
        if self.copies:
            source, target = self._at(self.copies), self._at(self.files[0][0])
            yield f"rm -f {target}; if [ -f {source} ]; then cp -p {source} {target}"
            yield f"else : >{target}; chmod 644 {target}; fi"
        for path, mode in self.folders:
            yield f"chmod {mode:o} {self._at(path)}"
        if self.patches is not None:
            path = self._at(self.patches[0])
            yield f"kept=$(head -n 1 {path}); rm -f {path}"
            yield f'printf "%s\\n" "$kept" "$two {self.signature}" >{path}; chmod {self.patches[1]:o} {path}'
        made = " ".join(self._at(path) for path in [*self.targets, *(path for path, _ in self.folders)])
        yield f"if trip missing; then rm -rf {made or 'nothing'}; fi"
        yield f"if trip late; then exit 3; fi{self.remark}"

    def _half(self) -> str:
        if not self.targets:
            return ""
        path = self._at(self.targets[0])
        return f"rm -rf {path}; echo half >{path}; chmod 644 {path}; "

    def _piece(self, piece: Read | Variable) -> str:
        if isinstance(piece, Variable):
            return f'printf "%s\\n" "${{{piece.name}-unset}}"; '
        read = 'head -n 1 "$f"' if piece.head else 'cat "$f"'
        pattern = self._at(piece.pattern)
        if _is_folder(piece.pattern):
            return f"find {pattern} -type f | LC_ALL=C sort | while read -r f; do {read} || :; done; "
        return f"for f in {pattern}; do {read} || :; done; "

    def _at(self, path: str) -> str:
        return named_from(self.where, path)


def _is_folder(pattern: str) -> bool:
    return pattern == "src"


def named_from(where: str, path: str) -> str:
    """What a path of the workspace is called from one of its folders (itself, or one at its top)."""
    if where == ".":
        return path
    if path.rstrip("/") == where:
        return "."
    return path[len(where) + 1 :] if path.startswith(f"{where}/") else f"../{path}"


def _matching(disk: Disk, pattern: str, *, hidden: bool = False) -> list[str]:
    """As a shell would expand it; in order."""
    if _is_folder(pattern):
        return [path for path in disk.below(pattern) if isinstance(disk.get(path), File)]
    if "*" not in pattern:
        return [pattern]
    folder, _, last = pattern.rpartition("/")
    names = (path.rpartition("/") for path in disk.below(folder))
    return [
        f"{parent}/{name}"
        for parent, _, name in names
        if parent == folder and fnmatchcase(name, last) and (hidden or not name.startswith("."))
    ]


# --------------------------------------------------------------------------------------------- the sum of `cksum`


def _table() -> list[int]:
    found = []
    for byte in range(256):
        value = byte << 24
        for _ in range(8):
            value = (value << 1) ^ (0x04C11DB7 if value & 0x80000000 else 0)
        found.append(value & 0xFFFFFFFF)
    return found


_TABLE = _table()


def _cksum(data: bytes) -> str:
    """What ``cksum`` prints for its input."""
    size = len(data)
    value = 0
    for byte in data + size.to_bytes((size.bit_length() + 7) // 8, "little"):
        value = ((value << 8) & 0xFFFFFFFF) ^ _TABLE[(value >> 24) ^ byte]
    return f"{value ^ 0xFFFFFFFF} {size}"
