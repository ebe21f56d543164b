"""The verbs that help around a job: ``init``, ``schema``, ``completion`` and ``doctor``."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import CheckpointError, Kind, UsageError
from checkpoint_action.intent import STORE
from checkpoint_action.jobfile.values import name_from

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from checkpoint_action.intent import Surroundings

__all__ = ["completion", "doctor", "init", "schema", "step_ids"]

_FILES = ("checkpoint.yml", "checkpoint.yaml")


def init(options: argparse.Namespace, around: Surroundings) -> int:
    """Write a commented job file, and say what of."""
    from checkpoint_action.jobfile.resolve import JobDefaults, load_job  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.starting.draft import command_for, draft_text  # noqa: PLC0415
    from checkpoint_action.starting.finding import find  # noqa: PLC0415

    target = Path(options.file or _FILES[0])
    there = [target] if options.file else [path for name in _FILES if (path := Path(name)).exists()]
    if not options.overwrite and any(path.exists() or path.is_symlink() for path in there):
        raise UsageError(
            f"init: {there[0]} is there already; give --overwrite, or another name with -f FILE", Kind.FILE_THERE
        )
    found = find(options.ids[0] if options.ids else None, options.job, options.target or ())
    draft = found.draft
    if target.name not in _FILES and not options.job:  # else two job files in one folder would share one state
        draft = replace(draft, job=name_from(target.stem, draft.job))
    named = "" if options.file is None or (options.file in _FILES and not _other(options.file)) else options.file
    text = draft_text(draft, named)
    here = Path.cwd()
    job = load_job(text, str(target), JobDefaults(name="job", root=here, base=here))
    _write(target, text, overwrite=options.overwrite)
    steps = f"{len(job.steps)} step" + ("s" if len(job.steps) != 1 else "")
    around.answer(f"checkpoint-run: wrote {target} with {steps}; {found.said}")
    around.answer(f"checkpoint-run: look it through, then: {command_for('plan', named)}")
    return 0


def _other(file: str) -> bool:
    """Whether another job file is found before this one."""
    return any(Path(name).exists() for name in _FILES[: _FILES.index(file)])


def _write(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a file, never through a link and never over what has come meanwhile."""
    try:
        if overwrite:
            temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            try:
                temporary.write_text(text, encoding="utf-8", newline="\n")
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        else:
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except FileExistsError:
        raise UsageError(
            f"init: {path} is there already; give --overwrite, or another name with -f FILE", Kind.FILE_THERE
        ) from None
    except OSError as error:
        raise UsageError(f"init: cannot write {path}: {error.strerror}", Kind.ANSWER_LOST) from None


def schema(_options: argparse.Namespace, around: Surroundings) -> int:
    """Print the JSON Schema of the job file."""
    from checkpoint_action.jobfile.schema import schema_text  # noqa: PLC0415  # only what the verb needs

    _print(around, schema_text().splitlines())
    return 0


def completion(options: argparse.Namespace, around: Surroundings) -> int:
    """Print the completion script for a shell."""
    from checkpoint_action.completion.scripts import script  # noqa: PLC0415  # only what the verb needs

    _print(around, script(options.shell_name).splitlines())
    return 0


def step_ids(options: argparse.Namespace, around: Surroundings) -> int:
    """Print the step ids of the job that a half-written command line means; nothing where that cannot be told."""
    words: list[str] = options.words
    folder = _last(words, ("-C", "--directory")) or "."
    ids = [word.partition(":")[0] for word in _values(words, ("--step",))]
    if not ids:
        file = _last(words, ("-f", "--file"))
        names = [file] if file else list(_FILES)
        path = next((path for name in names if (path := Path(folder, name)).is_file()), None)
        ids = _ids_in(path) if path else []
    for name in ids:
        around.answer(name)
    return 0


def _ids_in(path: Path) -> list[str]:
    """The ids in a job file, which may have any mistake elsewhere."""
    from checkpoint_action.jobfile.document import parse  # noqa: PLC0415  # YAML
    from checkpoint_action.jobfile.resolve import read_job_file  # noqa: PLC0415

    try:
        document = parse(read_job_file(path, str(path)), str(path), "")
        steps = [step for key, value in document.pairs() if key.text() == "steps" for step in value.items()]
        return [name for step in steps if (name := step.peek("id"))]
    except CheckpointError:
        return []


def _values(words: Sequence[str], flags: Sequence[str]) -> Iterator[str]:
    """The values that options have in a command line."""
    for number, word in enumerate(words):
        flag, equals, value = word.partition("=")
        if flag in flags and equals:
            yield value
        elif word in flags and number + 1 < len(words):
            yield words[number + 1]


def _last(words: Sequence[str], flags: Sequence[str]) -> str:
    return (list(_values(words, flags)) or [""])[-1]


def doctor(options: argparse.Namespace, around: Surroundings) -> int:
    """Look at this machine and say what could go wrong, and what to do."""
    from checkpoint_action.health.checkup import checkup  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.health.finding import Level  # noqa: PLC0415
    from checkpoint_action.health.lines import finding_json, finding_lines  # noqa: PLC0415

    url = options.store or around.env.get(STORE, "")
    findings = checkup(around.env, Path(options.state_dir), around.out, store=url)
    if options.json:
        around.answer(finding_json(findings))
    else:
        _print(around, finding_lines(findings))
    return 1 if any(finding.level is Level.PROBLEM for finding in findings) else 0


def _print(around: Surroundings, lines: Sequence[str]) -> None:
    for line in lines:
        around.answer(line)
