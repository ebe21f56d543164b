"""Steps as drafts that can be edited in any way, and the sound job that they make."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from checkpoint_action.model import Step
from tests.resume.recipe import Read, Recipe, Variable, named_from

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["LINKS", "Draft", "Kind", "SoundStep", "Take", "sound"]

LINKS = {"src/link.c": ("a.c", "b.c", "nowhere.c"), "src/lib/up.h": ("../c.h", "../a.c", "e.h")}
"""Links among the sources, and what each may lead to."""

Kind: TypeAlias = Literal["none", "file", "copy", "folder", "glob", "tree"]


@dataclass(frozen=True, slots=True)
class Take:
    """A file of another step that is read.

    :param uid: that step.
    :param number: which of its files.
    :param listed: whether it is declared as an input besides.
    """

    uid: int
    number: int
    line: int
    head: bool
    listed: bool


@dataclass(frozen=True, slots=True)
class Draft:
    """A step as somebody writes it down, sound or not.

    :param uid: what it is known by here through all edits, its id included.
    :param slot: names its outputs; no two drafts of a job have one.
    :param extra: input patterns beyond what it reads.
    :param wording: which of two ways of declaring the same outputs it has.
    :param reads_variables: whether what it declares of the environment goes into what it makes.
    :param patches: uid of the step whose first file it edits.
    """

    uid: int
    name: str
    slot: int
    salt: int = 0
    remark: int = 0
    needs: frozenset[int] = frozenset()
    reads: tuple[Read, ...] = ()
    takes: tuple[Take, ...] = ()
    extra: tuple[str, ...] = ()
    kind: Kind = "file"
    count: int = 1
    mode: int = 0o644
    wording: int = 0
    patches: int | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    reads_variables: bool = True
    always: bool = False
    where: str = "."
    shell: str = "system"

    @property
    def files(self) -> list[str]:
        """What it makes."""
        out = f"out/{self.slot}"
        if self.kind == "none":
            return []
        if self.kind == "copy":
            return [f"{out}.0"]
        between = {"file": ".", "glob": "-"}.get(self.kind, "/")
        ending = ".o" if self.kind == "glob" else ""
        return [f"{out}{between}{number}{ending}" for number in range(self.count)]

    @property
    def can_be_patched(self) -> bool:
        """Whether another step may edit its first file."""
        return self.kind in {"file", "copy"}


@dataclass(frozen=True, slots=True)
class SoundStep:
    """A step that reads only what it declares or needs, and writes only what is its own or what it needs.

    :param inputs: patterns relative to the workspace; so are the outputs.
    """

    name: str
    recipe: Recipe
    shell: str
    env: Mapping[str, str]
    inherited: Mapping[str, str]
    pass_env: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    needs: tuple[str, ...]
    always: bool

    def step(self, root: Path) -> Step:
        """As the product has it."""
        where = self.recipe.where
        return Step(
            self.name,
            self.recipe.text(),
            self.shell,
            root / where if where != "." else root,
            env=self.env,
            inherited_env=self.inherited,
            pass_env=self.pass_env,
            inputs=tuple(_seen_from(where, pattern) for pattern in self.inputs) or None,
            outputs=tuple(_seen_from(where, pattern) for pattern in self.outputs),
            needs=self.needs,
            always=self.always,
        )

    def __str__(self) -> str:
        facts = {
            "needs": " ".join(self.needs),
            "inputs": " ".join(self.inputs),
            "outputs": " ".join(self.outputs),
            "env": " ".join(f"{name}={value!r}" for name, value in {**self.inherited, **self.env}.items()),
            "pass-env": " ".join(self.pass_env),
            "in": "" if self.recipe.where == "." else self.recipe.where,
            "shell": "" if self.shell == "system" else self.shell,
            "always": "yes" if self.always else "",
        }
        told = "; ".join(f"{name}: {value}" for name, value in facts.items() if value)
        reads = [
            f"{'head' if piece.head else 'cat'} {piece.pattern} -> {piece.line}"
            if isinstance(piece, Read)
            else f"${piece.name} -> {piece.line}"
            for piece in self.recipe.pieces
        ]
        does = [f"salt {self.recipe.salt}", *reads]
        does += [f"copy {self.recipe.copies}"] if self.recipe.copies else []
        does += [f"make {path} {mode:o}" for path, mode in self.recipe.files]
        does += [f"patch {self.recipe.patches[0]} {self.recipe.patches[1]:o}"] if self.recipe.patches else []
        return f"{self.name}: {told}{self.recipe.remark}\n      {', '.join(does)}"


def _seen_from(where: str, pattern: str) -> str:
    if pattern.startswith("!"):
        return f"!{named_from(where, pattern[1:])}"
    return named_from(where, pattern)


def sound(drafts: Sequence[Draft], job_env: Mapping[str, str]) -> list[SoundStep]:
    """The sound job that drafts make: what would make a step depend on what it does not declare is left out.

    A step reads from a step only what that leaves, and needs it then. A file that later steps edit is edited by each in
    turn, each needs the one before, and whoever reads it needs the last.
    """
    places = {draft.uid: number for number, draft in enumerate(drafts)}
    by_uid = {draft.uid: draft for draft in drafts}
    editors: dict[int, list[int]] = {}
    for draft in drafts:
        target = by_uid.get(-1 if draft.patches is None else draft.patches)
        if target is not None and target.can_be_patched and places[target.uid] < places[draft.uid]:
            editors.setdefault(target.uid, []).append(draft.uid)
    found = []
    for draft in drafts:
        here = places[draft.uid]
        needs = {uid for uid in draft.needs if places.get(uid, here) < here}
        patched = ""
        for target_uid, chain in editors.items():
            if draft.uid in chain:
                patched = by_uid[target_uid].files[0]
                before = chain.index(draft.uid)
                needs.add(chain[before - 1] if before else target_uid)
        taken = []
        listed = []
        for take in draft.takes:
            owner = by_uid.get(take.uid)
            if owner is None or places[take.uid] >= here or take.number >= len(owner.files):
                continue
            last = take.uid if take.number else editors.get(take.uid, [take.uid])[-1]
            if places[last] >= here:
                continue
            needs.add(last)
            taken.append(Read(owner.files[take.number], take.line, take.head))
            listed += [owner.files[take.number]] if take.listed else []
        found.append(_step(draft, taken, listed, patched, job_env, [by_uid[uid].name for uid in needs]))
    return found


def _step(
    draft: Draft,
    taken: Sequence[Read],
    listed: Sequence[str],
    patched: str,
    job_env: Mapping[str, str],
    needs: Sequence[str],
) -> SoundStep:
    out = f"out/{draft.slot}"
    # Whether a named link to nothing differs from nothing depends on the folder it is named from: not settled here.
    reads = [read for read in draft.reads if draft.where == "." or read.pattern not in LINKS]
    wordings: tuple[tuple[str, ...], tuple[str, ...]]
    wordings, clean = {
        "none": (((), ()), ""),
        "file": ((tuple(draft.files), (f"{out}.*",)), f"{out}.*"),
        "copy": ((tuple(draft.files), (f"{out}.*",)), f"{out}.*"),
        "folder": (((f"{out}/",), (out,)), out),
        "tree": (((f"{out}/**",), (f"{out}/*",)), out),
        "glob": (((f"{out}-*.o",), tuple(draft.files)), f"{out}-*.o"),
    }[draft.kind]
    outputs = wordings[draft.wording]
    folders = ((out, 0o700), (f"{out}/empty", 0o755)) if draft.kind in {"folder", "tree"} else ()
    names = list(dict.fromkeys([*job_env, *draft.env, *draft.pass_env])) if draft.reads_variables else []
    variables = [Variable(name, number % 2) for number, name in enumerate(names)]
    source = next((read.pattern for read in reads if "*" not in read.pattern and read.pattern != "src"), "")
    recipe = Recipe(
        draft.where,
        f"salt{draft.salt}",
        "" if not draft.remark else f"{' ' * draft.remark}# remark {draft.remark}",
        (*reads, *taken, *variables),
        (clean,) if clean else (),
        folders,
        tuple((path, draft.mode) for path in draft.files),
        source if draft.kind == "copy" else "",
        (patched, draft.mode) if patched else None,
        f"by {draft.slot}",
    )
    inputs = tuple(dict.fromkeys([*draft.extra, *(read.pattern for read in reads), *listed]))
    return SoundStep(
        draft.name,
        recipe,
        draft.shell,
        draft.env,
        job_env,
        draft.pass_env,
        inputs if any(not pattern.startswith("!") for pattern in inputs) else (),  # a job file takes no such list
        (*outputs, *([patched] if patched else [])),
        tuple(needs),
        draft.always,
    )
