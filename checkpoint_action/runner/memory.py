"""What a run has kept of its end, as a file that docs/state.md describes. Imports next to nothing."""

from __future__ import annotations

import os

from checkpoint_action.runner.basis import Basis, content

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from typing_extensions import Self

__all__ = ["FORMAT", "Answers", "Memory", "Sights"]

FORMAT = 2
"""Number of the layout of the file."""

_BETWEEN = "\0\0"  # no path, name or text is empty or holds one


class Answers:
    """What is said of a job of which all is done.

    :param lines: what ``plan`` says to people.
    :param json: what it says to programs.
    :param run: what a run says up to the time it took.
    :param rest: what it says after that.
    """

    __slots__ = ("json", "lines", "rest", "run")

    def __init__(self, lines: str, json: str, run: str, rest: str) -> None:
        self.lines, self.json, self.run, self.rest = lines, json, run, rest


class Sights:
    """What a look at the basis showed; empty where no answer is given after such a look.

    :param stamps: where size, times and inode stood for contents.
    :param contents: where files were read.
    """

    __slots__ = ("contents", "stamps")

    def __init__(self, stamps: str, contents: str) -> None:
        self.stamps, self.contents = stamps, contents


class Memory:
    """What a run has kept.

    :param key: of the question.
    :param shells: the programs that run the steps, each with the ``PATH`` that finds it; empty for the environment's.
    :param secrets: variables whose values are hidden in what a run says.
    """

    __slots__ = ("answers", "basis", "key", "secrets", "shells", "sights")

    def __init__(
        self,
        key: str,
        sights: Sights,
        answers: Answers,
        basis: Basis,
        *,
        shells: Sequence[tuple[str, str]],
        secrets: Sequence[str],
    ) -> None:
        self.key, self.sights, self.answers, self.basis = key, sights, answers, basis
        self.shells, self.secrets = shells, secrets

    def pieces(self) -> Iterator[bytes]:
        """As a file: a line with a digest over all that follows it. It comes in pieces, as there may be much."""
        basis, said, seen = self.basis, self.answers, self.sights
        lists: tuple[Sequence[str], ...] = (
            basis.variables,
            basis.files,
            basis.dated,
            basis.listed,
            basis.kept,
            basis.links,
            [f"{program}\n{path}" for program, path in self.shells],
            self.secrets,
        )
        texts = (self.key, seen.stamps, seen.contents, said.lines, said.json, said.run, said.rest, f"{int(basis.git)}")
        body = (*texts, *map("\0".join, lists))
        yield _head(_encoded(body))
        yield from _encoded(body)

    @classmethod
    def of(cls, path: str, file: str) -> Self:
        """What a file holds.

        :param file: the job file.
        :raises OSError: it cannot be read.
        :raises ValueError: it is damaged or of another format.
        """
        head, _, body = content(path).partition(b"\n")
        if head + b"\n" != _head([body]):
            raise ValueError("damaged")
        key, stamps, contents, lines, json, run, rest, git, *lists = os.fsdecode(body).split(_BETWEEN)
        if not f"{lines}{json}{run}{rest}".isascii():  # as we never write it, and could not show it
            raise ValueError("damaged")
        names, files, dated, listed, kept, links, shells, secrets = (text.split("\0") if text else [] for text in lists)
        return cls(
            key,
            Sights(stamps, contents),
            Answers(lines, json, run, rest),
            Basis(
                file,
                path.removesuffix(".plan"),
                names,
                git=git == "1",
                files=files,
                dated=dated,
                listed=listed,
                kept=kept,
                links=links,
            ),
            shells=[(program, where) for program, _, where in (text.partition("\n") for text in shells)],
            secrets=secrets,
        )


def _encoded(texts: Sequence[str]) -> Iterator[bytes]:
    for number, text in enumerate(texts):
        if number:
            yield os.fsencode(_BETWEEN)
        yield os.fsencode(text)


def _head(body: Iterable[bytes]) -> bytes:
    from hashlib import sha256  # noqa: PLC0415  # most command lines do not come this far

    digest = sha256()
    for piece in body:
        digest.update(piece)
    return b"checkpoint-run plan %d %s\n" % (FORMAT, digest.hexdigest().encode())
