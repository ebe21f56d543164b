"""Codes of errors: published once and for all, each with its page, and shown wherever an error is."""

from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from checkpoint_action import cli
from checkpoint_action.error_texts import CHAPTERS, PAGES
from checkpoint_action.errors import (
    BundleError,
    CheckpointError,
    JobFileError,
    Kind,
    StateWriteError,
    StoreDeniedError,
    UsageError,
    code_of,
    kind_of_write,
)
from checkpoint_action.runner.lock import JobLock
from tests.console import Console, lines_of

PUBLISHED = Path(__file__).with_name("published_codes.txt")
posix = pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh")


def test_published_codes_keep_their_meaning_for_ever() -> None:
    lines = [line.split() for line in PUBLISHED.read_text().splitlines() if not line.startswith("#")]
    published = {code: name for code, name in lines}  # noqa: C416  # a line that is no pair is an error
    assert len(published) == len(lines)
    assert {kind.value: kind.name for kind in Kind} == published


def test_each_kind_has_a_page_with_a_remedy() -> None:
    assert set(PAGES) == set(Kind)
    for kind, page in PAGES.items():
        assert kind.value[:4] in CHAPTERS
        assert page.title[0].isupper()
        assert page.means.endswith(".")
        assert page.remedy.endswith(".")
        assert "\n" not in page.example


def test_a_page_tells_the_exit_code_that_errors_of_its_kind_have() -> None:
    def all_below(base: type[CheckpointError]) -> list[type[CheckpointError]]:
        return [base, *(one for below in base.__subclasses__() for one in all_below(below))]

    for kind in all_below(CheckpointError):
        if "kind" in vars(kind):
            assert PAGES[kind.kind].exit_code == kind.exit_code, kind


def test_an_error_has_the_code_of_its_class_or_the_one_it_is_given() -> None:
    assert UsageError("x").code == "CPR101"
    assert UsageError("x", Kind.NO_SUCH_STEP).code == "CPR104"
    assert str(UsageError("x", Kind.NO_SUCH_STEP)) == "x"
    assert JobFileError("x", source="f").code == "CPR202"
    assert JobFileError("x", source="f", kind=Kind.CIRCLE).told == "CPR207: f:1:1: x"
    assert (StoreDeniedError("x").code, BundleError("x").code) == ("CPR502", "CPR505")
    full = StateWriteError("x", kind_of_write(OSError(errno.ENOSPC, "No space left on device")))
    assert (full.code, full.exit_code) == ("CPR406", 5)
    assert kind_of_write(OSError(errno.EACCES, "Permission denied")) is Kind.STATE_NOT_WRITTEN


@pytest.mark.parametrize(
    ("text", "code"),
    [("CPR501: cache: 503", "CPR501"), ("cache: CPR501: x", ""), ("CPR501", ""), ("CPRabc: x", ""), ("", "")],
)
def test_a_line_tells_its_code_where_it_begins_with_one(text: str, code: str) -> None:
    assert code_of(text) == code


STEPS = "job: j\nsteps:\n- {id: a, run: 'true'}\n- {id: b, run: 'true'}\n"
NEWER = '{\n"format": 99,\n"job": "j",\n"sequence": 1,\n"steps": {\n},\n"checksum": "00000000"\n}\n'


def _job(step: str, head: str = "") -> dict[str, str]:
    return {"checkpoint.yml": f"{head}steps:\n- {step}\n"}


MISTAKES: list[tuple[Kind, dict[str, str], list[str]]] = [
    (Kind.COMMAND_LINE, {}, ["-j", "0"]),
    (Kind.UNKNOWN_WORD, {}, ["--setp", "a:x"]),
    (Kind.EXCLUSIVE, {"checkpoint.yml": STEPS}, ["--only", "a", "--from", "b"]),
    (Kind.NO_SUCH_STEP, {"checkpoint.yml": STEPS}, ["--only", "zzz"]),
    (Kind.NO_STEPS, {}, ["run"]),
    (Kind.NO_JOB_FILE, {}, ["-f", "nothere.yml"]),
    (Kind.BAD_NAME, {}, ["--job", "../up", "--step", "a:true"]),
    (Kind.DUPLICATE_STEP, {}, ["--job", "j", "--step", "a:true", "--step", "A:true"]),
    (Kind.BAD_VALUE, {}, ["--job", "j", "--step", "a:true", "--step-timeout", "a:soon"]),
    (Kind.FOLDER, {}, ["-C", "none"]),
    (Kind.SAME_LOG, {"checkpoint.yml": STEPS}, ["--step-log", "a:x.log", "--step-log", "b:x.log"]),
    (Kind.NO_LOG, {"checkpoint.yml": STEPS}, ["logs", "b"]),
    (Kind.NOT_IN_A_STEP, {}, ["save"]),
    (Kind.FILE_THERE, {"checkpoint.yml": STEPS, "Makefile": "all:\n\ttrue\n"}, ["init", "Makefile"]),
    (Kind.NO_DRAFT, {}, ["init", "build.sh"]),
    (Kind.NOT_YAML, {"checkpoint.yml": "steps:\n- id: a\n  run: echo hi: there\n"}, ["plan"]),
    (Kind.JOB_FILE_VALUE, _job("{id: a, run: x, always: maybe}"), ["plan"]),
    (Kind.UNKNOWN_KEY, _job("{id: a, rum: x}"), ["plan"]),
    (Kind.DUPLICATE_KEY, _job("{id: a, run: x, run: y}"), ["plan"]),
    (Kind.MISSING_KEY, _job("{id: a}"), ["plan"]),
    (Kind.UNKNOWN_NEED, _job("{id: a, run: x, needs: [z]}"), ["plan"]),
    (Kind.CIRCLE, _job("{id: a, run: x, needs: [b]}\n- {id: b, run: x}"), ["plan"]),
    (Kind.SECRET_COUNTS, _job("{id: a, run: x}", "secrets: A\npass-env: A\n"), ["plan"]),
    (Kind.VARIABLE_NAME, _job("{id: a, run: x}", "pass-env: [CI_*]\n"), ["plan"]),
    (Kind.NO_SHELL, _job("{id: a, run: x, shell: 'nosuchshell {0}'}"), ["run"]),
    (Kind.NOT_ACCEPTED, _job("{id: b, run: x, outputs: b.out}"), ["accept", "b"]),
    (Kind.STATE_UNREADABLE, {"checkpoint.yml": STEPS, ".checkpoint-run-j.json/x": ""}, ["run"]),
    (Kind.STATE_NEWER, {"checkpoint.yml": STEPS, ".checkpoint-run-j.json": NEWER}, ["run"]),
    (Kind.STATE_NOT_WRITTEN, {"checkpoint.yml": STEPS, "file": ""}, ["--state-dir", "file/deep"]),
]


@posix
@pytest.mark.parametrize(("kind", "files", "words"), MISTAKES, ids=lambda value: getattr(value, "name", ""))
def test_the_example_of_a_page_is_what_the_mistake_really_says(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    kind: Kind,
    files: dict[str, str],
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CHECKPOINT_SAVE", raising=False)
    for name, text in files.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    page = PAGES[kind]
    assert cli.main(words) == page.exit_code
    out, err = capfd.readouterr()
    said = err.splitlines()[-1]
    assert said.startswith(f"checkpoint-run: error {kind.value}: ")
    assert out == ""
    assert said.removeprefix(f"checkpoint-run: error {kind.value}: ") == page.example.replace("{folder}", str(tmp_path))


@posix
def test_a_damaged_state_is_a_warning_with_its_code_for_people_and_programs(tmp_path: Path) -> None:
    console = Console(tmp_path)
    (tmp_path / "checkpoint.yml").write_text(STEPS)
    assert console.run().returncode == 0
    state = tmp_path / ".checkpoint-run-j.json"
    state.write_text(state.read_text()[:50])
    told = console.run("plan")
    assert told.returncode == 0
    assert told.stderr.startswith(f"checkpoint-run: warning: CPR404: {PAGES[Kind.STATE_DAMAGED].example}")


def test_the_example_of_a_held_job_is_what_a_second_run_says(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text(STEPS)
    lock = JobLock(tmp_path / ".checkpoint-run-j.lock")
    lock.acquire()
    try:
        told = Console(tmp_path).run()
    finally:
        lock.release()
    example = PAGES[Kind.HELD].example.replace("process 4711", f"process {os.getpid()}")
    assert (told.returncode, told.stderr.splitlines()[-1]) == (4, f"checkpoint-run: error CPR407: {example}")


@posix
def test_the_doctor_names_the_code_that_a_run_would_end_with(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    console = Console(tmp_path)
    told = console.run("doctor", "--state-dir", "file", "--json")
    found: dict[str, dict[str, Any]] = {one["what"]: one for one in json.loads(told.stdout)["findings"]}
    assert found["state dir"]["code"] == "CPR405"
    assert found["python"]["code"] == ""
    assert "(CPR405)\n" in console.run("doctor", "--state-dir", "file").stdout


@posix
def test_a_warning_from_an_error_has_its_code_in_the_events() -> None:
    from checkpoint_action.report.jsonlines import JsonReport  # noqa: PLC0415
    from checkpoint_action.runner.events import Warned  # noqa: PLC0415

    lines: list[str] = []
    report = JsonReport(lines.append)
    report(Warned("CPR501: cache: 503; going on without the store"))
    report(Warned("a background process still runs"))
    assert [one["code"] for one in lines_of("\n".join(lines))] == ["CPR501", ""]


def test_the_action_has_the_code_in_the_title_of_the_annotation(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from checkpoint_action import action  # noqa: PLC0415

    env = {
        **os.environ,
        "CPR_INPUT_STEPS": "- {id: a, rum: x}",
        "GITHUB_WORKSPACE": str(tmp_path),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    (tmp_path / "output").touch()
    assert action.main(env, {}) == 2
    out, _ = capfd.readouterr()
    assert "::error title=checkpoint-run CPR203::steps:1:" in out
