"""What a first job file can be made of: the file that was named, or what lies in the folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.values import name_from
from checkpoint_action.starting.draft import Draft, DraftStep
from checkpoint_action.starting.makefiles import MAKEFILES, draft_of_makefile
from checkpoint_action.starting.scripts import draft_of_script
from checkpoint_action.starting.workflows import draft_of_workflow

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Found", "find"]

_WORKFLOWS = Path(".github", "workflows")
_SCRIPTS = ("build.sh", "run.sh", "ci.sh", "main.sh")
_BUILDS = ("build", "ci", "test", "main")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Found:
    """A draft and where it comes from.

    :param said: one line for the person who asked.
    """

    draft: Draft
    said: str


def find(source: str | None, job: str | None, targets: Sequence[str] = ()) -> Found:
    """Make a draft of a file, or of what the current folder has.

    :param source: the file as it was named, or ``None``.
    :param job: a name for the job, which of a workflow names one of its jobs.
    :param targets: those of a Makefile that are to be made.
    :raises UsageError: the file cannot be read or used.
    """
    name = job or name_from(Path.cwd().name, "job")
    if source is not None:
        return Found(_draft(Path(source), name, job, targets), f"took {source}")
    there = _candidates()
    if targets and not (there and _is_makefile(there[0])):
        raise UsageError(
            "init: --target is for a Makefile, and there is none here; name it: init FILE --target NAME", Kind.NO_DRAFT
        )
    others: list[str] = []
    for path in there:
        try:
            draft = _draft(path, name, job, targets)
        except UsageError:
            if path == there[-1] or targets:
                raise
            others.append(path.as_posix())
            continue
        others += [other.as_posix() for other in there if other != path and other.as_posix() not in others]
        more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
        also = f"; 'init FILE' takes another: {', '.join(others[:_SHOWN])}{more}" if others else ""
        return Found(draft, f"took {path.as_posix()}{also}")
    return Found(_example(name), "found no Makefile, shell script or workflow here, so this is an example")


def _candidates() -> list[Path]:
    """What may be taken, the likeliest first."""
    found = [path for name in MAKEFILES if (path := Path(name)).is_file() and _is_so_called(name)][:1]
    scripts = sorted(path for path in Path().glob("*.sh") if path.is_file())
    found += sorted(scripts, key=lambda path: _SCRIPTS.index(path.name) if path.name in _SCRIPTS else len(_SCRIPTS))
    flows = sorted(path for path in _WORKFLOWS.glob("*.y*ml") if path.suffix in (".yml", ".yaml"))
    return found + sorted(flows, key=lambda path: _BUILDS.index(path.stem) if path.stem in _BUILDS else len(_BUILDS))


def _is_so_called(name: str) -> bool:
    """Whether the folder has the name in just this spelling, also where upper and lower case count as one."""
    return any(path.name == name for path in Path().iterdir())


def _is_makefile(path: Path) -> bool:
    return path.name in MAKEFILES or path.suffix == ".mk" or path.name.startswith("Makefile.")


def _draft(path: Path, name: str, job: str | None, targets: Sequence[str]) -> Draft:
    text = _read(path)
    shown = path.as_posix()
    if targets and not _is_makefile(path):
        raise UsageError(f"init {shown}: --target is for a Makefile; leave it out", Kind.NO_DRAFT)
    if path.suffix in (".yml", ".yaml"):
        return draft_of_workflow(text, shown, job)
    if _is_makefile(path):
        return draft_of_makefile(text, shown, name, targets)
    return draft_of_script(text, shown, name)


def _read(path: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise UsageError(f"init {path}: there is no such file; check its name and folder", Kind.NO_DRAFT) from None
    except UnicodeDecodeError:
        raise UsageError(f"init {path}: it is not UTF-8 text; save it as UTF-8", Kind.NO_DRAFT) from None
    except OSError as error:
        what = "it is a folder; name the file in it" if path.is_dir() else error.strerror
        raise UsageError(f"init {path}: {what}", Kind.NO_DRAFT) from None
    odd = re.search("[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]", text)
    if odd:
        line = text.count("\n", 0, odd.start()) + 1
        raise UsageError(
            f"init {path}:{line}: it is no text, it holds the character U+{ord(odd[0]):04X}", Kind.NO_DRAFT
        )
    return text


def _example(name: str) -> Draft:
    return Draft(
        job=name,
        source="nothing but an example",
        steps=(
            DraftStep("prepare", "mkdir -p out", ("Replace the commands by your own.",)),
            DraftStep(
                "work",
                "date >out/made",
                ("It runs again only when its command, or 'prepare', changes.",),
                outputs=("out/made",),
            ),
            DraftStep("report", "ls -l out\ncat out/made\n", ("Several lines: any that fails ends the step.",)),
        ),
    )
