"""The script that all integrations end in, run by the shells that CI systems use."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.integrations.machines import ROOT, SAYS_WHAT_IT_GETS, Ended, command_on_path, plain, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a script for sh")

SCRIPT = ROOT / "integrations" / "run.sh"
SHELLS = [shell for shell in ("sh", "bash", "dash", "busybox") if shutil.which(shell)]
NASTY = 'it\'s "q" $HOME `id` $(id) \\ * ; & <x>'


class Tried:
    """A run of the script with a command that tells what it gets."""

    def __init__(self, folder: Path, shell: str = "sh", **variables: str) -> None:
        self.folder = folder
        self.cwd = folder / "work"
        self.cwd.mkdir(exist_ok=True)
        tools = command_on_path(folder / "tools", SAYS_WHAT_IT_GETS)
        self.env = {
            **plain(folder, tools),
            "SAID_ARGUMENTS": str(folder / "arguments"),
            "SAID_ENVIRONMENT": str(folder / "environment"),
            "SAID_FILE": str(folder / "file"),
            "SAID_PID": str(folder / "pid"),
            **variables,
        }
        words = [shell, "sh", str(SCRIPT)] if shell == "busybox" else [shell, str(SCRIPT)]
        self.ended: Ended = run(words, self.cwd, self.env)

    @property
    def arguments(self) -> list[str]:
        return (self.folder / "arguments").read_text().split("\0")[:-1]

    @property
    def steps(self) -> object:
        return yaml.safe_load((self.folder / "file").read_text())

    def of(self, flag: str) -> list[str]:
        """All values of a flag."""
        return [value for name, value in pairwise(self.arguments) if name == flag]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_input_reaches_the_command_as_it_is(tmp_path: Path, shell: str) -> None:
    tried = Tried(
        tmp_path,
        shell,
        CPR_FILE=f"ci/{NASTY}.yml",
        CPR_JOB="release",
        CPR_STORE="s3://bucket/pre fix",
        CPR_SCOPE="commit",
        CPR_EXCLUDE=f"*.o\n\n{NASTY}\n",
        CPR_JOBS="3",
        CPR_BUDGET="50m",
        CPR_ARGUMENTS=f"--verify\nstat\n{NASTY}",
        CPR_LOGS="logs of it",
    )
    assert tried.ended.code == 0, tried.ended.said
    assert tried.arguments[0] == "run"
    assert tried.of("--file") == [f"ci/{NASTY}.yml"]
    assert tried.of("--job") == ["release"]
    assert tried.of("--store") == ["s3://bucket/pre fix"]
    assert tried.of("--scope") == ["commit"]
    assert tried.of("--exclude") == ["logs of it", "*.o", NASTY]
    assert tried.of("--jobs") == ["3"]
    assert tried.of("--budget") == ["50m"]
    assert tried.of("--logs-dir") == ["logs of it"]
    assert tried.of("--report") == ["logs of it/report.html"]
    assert tried.arguments[-3:] == ["--verify", "stat", NASTY]
    assert (tried.cwd / "logs of it").is_dir()


@pytest.mark.parametrize("shell", SHELLS)
def test_steps_become_a_job_file_whatever_is_in_them(tmp_path: Path, shell: str) -> None:
    steps = [
        {"id": "a", "run": f"echo '{NASTY}'\n\n  cat <<END\n\ttab\nEND\n"},
        {"id": "b", "run": "first line\n" + "x" * 300, "env": {"A": "two\nlines", "B": "  kept  "}},
    ]
    tried = Tried(tmp_path, shell, CPR_STEPS=yaml.safe_dump(steps))
    assert tried.ended.code == 0, tried.ended.said
    assert tried.steps == {"steps": steps}


def test_steps_may_be_json_and_indented(tmp_path: Path) -> None:
    assert Tried(tmp_path, CPR_STEPS='[{"id": "a", "run": "x"}]').steps == {"steps": [{"id": "a", "run": "x"}]}
    assert Tried(tmp_path, CPR_STEPS="\n    - id: a\n      run: x\n  ").steps == {"steps": [{"id": "a", "run": "x"}]}


def test_without_inputs_the_job_file_of_the_folder_is_left_to_the_command(tmp_path: Path) -> None:
    tried = Tried(tmp_path)
    assert tried.arguments[:2] == ["run", "--state-dir"]
    assert len(tried.arguments) == 3


def test_the_state_lies_outside_the_workspace_in_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second = Tried(tmp_path).of("--state-dir"), Tried(tmp_path).of("--state-dir")
    assert first != second
    assert first[0].startswith(str(tmp_path / "tmp"))


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({"CI_JOB_NAME": "build: [linux, debug]"}, "build-linux-debug"),
        ({"BUILDKITE_STEP_KEY": "build", "BUILDKITE_LABEL": "x"}, "build"),
        ({"BUILDKITE_LABEL": ":hammer: build it"}, "hammer-build-it"),
        ({"CIRCLE_JOB": "test-3.13"}, "test-3.13"),
        ({"JOB_NAME": "tool/main", "STAGE_NAME": "Build"}, "tool-main-Build"),
        ({"JOB_NAME": "tool/main"}, "tool-main"),
        ({"CI_JOB_NAME": "…"}, "job"),
        ({"CI_JOB_NAME": "x" * 140}, "x" * 100),
        ({}, "job"),
    ],
)
def test_steps_are_named_after_the_job_of_the_system(tmp_path: Path, variables: dict[str, str], name: str) -> None:
    assert Tried(tmp_path, CPR_STEPS="[]", **variables).of("--job") == [name]


def test_a_store_in_the_workspace_is_no_output(tmp_path: Path) -> None:
    store = f"file://{tmp_path / 'work'}/.kept/here"
    assert Tried(tmp_path, CPR_STORE=store).of("--exclude") == [".kept/here"]
    assert Tried(tmp_path, CPR_STORE=f"file://{tmp_path}/elsewhere").of("--exclude") == []


def test_steps_and_file_exclude_each_other(tmp_path: Path) -> None:
    tried = Tried(tmp_path, CPR_STEPS="[]", CPR_FILE="x.yml")
    assert tried.ended.code == 2
    assert tried.ended.said == "checkpoint-run: error: steps and file exclude each other; put the steps into the file\n"


def test_steps_see_none_of_our_variables(tmp_path: Path) -> None:
    Tried(tmp_path, CPR_STEPS="[]", CPR_STORE="s3://b", CPR_TEMPORARY=str(tmp_path), CPR_VERSION="9.9.9", CPR_LOGS="l")
    assert "CPR_" not in (tmp_path / "environment").read_text()


@pytest.mark.parametrize("code", [1, 2, 75])
def test_the_exit_code_is_the_commands(tmp_path: Path, code: int) -> None:
    assert Tried(tmp_path, ITS_EXIT_CODE=str(code)).ended.code == code


def test_a_signal_to_the_script_is_one_to_the_command(tmp_path: Path) -> None:
    tools = command_on_path(
        tmp_path / "tools", '#!/bin/sh\ntrap "echo once >>stopped; exit 143" TERM\n: >up\nsleep 60 & wait\n'
    )
    process = subprocess.Popen(["sh", str(SCRIPT)], cwd=tmp_path, env=plain(tmp_path, tools), stdin=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 60
        while not (tmp_path / "up").exists() and time.monotonic() < limit:
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    finally:
        process.kill()
        process.wait()
    assert (tmp_path / "stopped").read_text() == "once\n"


def _wheel(folder: Path, name: str, version: str, module: str, *metadata: str) -> None:
    """A package with one module, and a command ``checkpoint-run`` if the module has a ``main``."""
    folder.mkdir(exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    files = {
        f"{name.replace('-', '_')}.py": module,
        f"{info}/METADATA": "\n".join(["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", *metadata, ""]),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if "def main" in module:
        files[f"{info}/entry_points.txt"] = "[console_scripts]\ncheckpoint-run = checkpoint_run:main\n"
    record = "".join(f"{file},,\n" for file in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(file, text)


def _stand_in(folder: Path, version: str) -> None:
    """A package ``checkpoint-run`` whose command tells its version, its arguments, and what was installed with it."""
    cloud = "importlib.util.find_spec('cloud_stand_in') is not None"
    told = f"print('installed {version}, cloud', {cloud}, *sys.argv[1:])"
    module = f"import importlib.util\nimport sys\n\n\ndef main():\n    {told}\n"
    extra = ("Provides-Extra: cloud", "Requires-Dist: cloud-stand-in; extra == 'cloud'")
    _wheel(folder, "checkpoint-run", version, module, *extra)


@pytest.fixture
def without_the_command(tmp_path: Path) -> dict[str, str]:
    """Return the variables of a machine with Python, on which pip finds two versions."""
    release = next(line.partition("=")[2] for line in SCRIPT.read_text().splitlines() if line.startswith("release="))
    _stand_in(tmp_path / "index", release)
    _stand_in(tmp_path / "index", "0.7")
    _wheel(tmp_path / "index", "cloud-stand-in", "1", "")
    tools = tmp_path / "tools"
    tools.mkdir()
    os.symlink(sys.executable, tools / "python3")
    env = plain(tmp_path, tools)
    return {**env, "PYTHONPATH": "", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index"), "release": release}


@pytest.mark.slow
@pytest.mark.parametrize(("store", "cloud"), [("file:///kept", False), ("s3://bucket/x", True)])
def test_where_there_is_no_command_the_pinned_one_is_installed(
    tmp_path: Path, without_the_command: dict[str, str], store: str, cloud: bool
) -> None:
    ended = run(["sh", SCRIPT], tmp_path, {**without_the_command, "CPR_STORE": store})
    assert ended.code == 0, ended.said
    assert f"installed {without_the_command['release']}, cloud {cloud} run --state-dir" in ended.said


@pytest.mark.slow
def test_a_version_that_is_asked_for_is_installed_where_another_one_is(
    tmp_path: Path, without_the_command: dict[str, str]
) -> None:
    command_on_path(tmp_path / "tools", SAYS_WHAT_IT_GETS)
    ended = run(["sh", SCRIPT], tmp_path, {**without_the_command, "CPR_VERSION": "0.7"})
    assert "installed 0.7, cloud False run" in ended.said
    paths = {"SAID_ARGUMENTS": "/dev/null", "SAID_ENVIRONMENT": "/dev/null", "SAID_PID": "/dev/null"}
    there = run(["sh", SCRIPT], tmp_path, {**without_the_command, **paths, "CPR_VERSION": "9.9.9"})
    assert (there.code, there.said) == (0, "")


@pytest.mark.slow
def test_a_version_that_cannot_be_had_is_said_in_one_line(tmp_path: Path, without_the_command: dict[str, str]) -> None:
    ended = run(["sh", SCRIPT], tmp_path, {**without_the_command, "CPR_VERSION": "0.8", "CPR_STORE": "gs://b"})
    assert ended.code == 2
    assert ended.said.splitlines()[-1] == (
        "checkpoint-run: error: checkpoint-run[cloud]==0.8 could not be installed; Python 3.10 or newer with pip and "
        "venv is needed, or checkpoint-run itself"
    )
