"""action.yml: what it promises, and what its scripts do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS: dict[str, dict[str, Any]] = {step["name"]: step for step in ACTION["runs"]["steps"]}
PLACE, HAND_OVER, CLEAR, RUN = STEPS.values()
SCRIPTS = [step["run"] for step in STEPS.values() if "run" in step]
SECRETS = ("ACTIONS_RUNTIME_TOKEN", "ACTIONS_RUNTIME_URL", "ACTIONS_RESULTS_URL", "ACTIONS_CACHE_URL")


def bash(script: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script as the runner does."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
        env={"PATH": os.environ["PATH"], **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_every_input_and_output_is_described() -> None:
    for kind in ("inputs", "outputs"):
        for name, content in ACTION[kind].items():
            assert content["description"].endswith("."), name
    assert not [name for name, content in ACTION["inputs"].items() if content["required"]]


def test_every_input_goes_through_the_environment() -> None:
    wanted = {f"CPR_INPUT_{name.upper().replace('-', '_')}": f"${{{{ inputs.{name} }}}}" for name in ACTION["inputs"]}
    given = dict(RUN["env"])
    assert given.pop("CPR_RUNTIME") == "${{ steps.runtime.outputs.runtime }}"
    assert given == wanted


def test_every_output_is_one_of_the_python_step() -> None:
    for name, content in ACTION["outputs"].items():
        assert content["value"] == f"${{{{ steps.run.outputs.{name} }}}}"


@pytest.mark.parametrize("script", SCRIPTS)
def test_nothing_is_pasted_into_scripts(script: str) -> None:
    assert "${{" not in script


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck(script: str) -> None:
    shellcheck = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if shellcheck is None:
        pytest.skip("needs shellcheck")
    command = [shellcheck, "--shell=bash", "--severity=style", "--enable=all", "--exclude=SC2154,SC2250,SC2292,SC2312"]
    done = subprocess.run([*command, "-"], input=script, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_signals_reach_python() -> None:
    assert "if" not in RUN
    assert "continue-on-error" not in RUN
    assert RUN["shell"] == "bash"
    assert RUN["run"].splitlines()[-1].startswith('exec "$python" ')


def test_only_the_python_step_can_fail_the_job() -> None:
    assert [step.get("continue-on-error") for step in (PLACE, HAND_OVER, CLEAR)] == [True] * 3
    assert HAND_OVER["if"] == "steps.place.outcome == 'success'"
    assert CLEAR["if"] == "always()"


def test_the_handover_needs_nothing_but_its_two_files() -> None:
    manifest = yaml.safe_load((ROOT / "runtime/handover/action.yml").read_text())
    assert manifest["runs"] == {"using": "node24", "main": "handover.cjs"}
    assert {path.name for path in (ROOT / "runtime/handover").iterdir()} == {"action.yml", "handover.cjs"}


@pytest.mark.parametrize("planted", ["nothing", "file", "folder", "link", "dangling link"])
def test_place_replaces_what_was_planted(tmp_path: Path, planted: str) -> None:
    prey = tmp_path / "prey"
    prey.mkdir()
    (prey / "kept").touch()
    folder = tmp_path / "work space" / ".checkpoint-run-runtime"
    folder.parent.mkdir()
    if planted == "file":
        folder.touch()
    elif planted == "folder":
        folder.mkdir()
        (folder / "handover.cjs").write_text("hostile")
        (folder / "prey").symlink_to(prey)
    elif planted != "nothing":
        folder.symlink_to(prey if planted == "link" else tmp_path / "nowhere")
    done = bash(PLACE["run"], {"GITHUB_WORKSPACE": str(folder.parent), "GITHUB_ACTION_PATH": str(ROOT)})
    assert done.returncode == 0, done.stdout
    assert not folder.is_symlink()
    assert {path.name for path in folder.iterdir()} == {"action.yml", "handover.cjs"}
    assert [path.name for path in prey.iterdir()] == ["kept"]


def test_clear_removes_folder_and_empties_file(tmp_path: Path) -> None:
    folder = tmp_path / ".checkpoint-run-runtime"
    folder.mkdir()
    (folder / "handover.cjs").touch()
    file = tmp_path / "set_output_1"
    file.write_text("a secret")
    done = bash(CLEAR["run"], {"GITHUB_WORKSPACE": str(tmp_path), "CPR_OUTPUT_FILE": str(file)})
    assert (done.returncode, done.stdout) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["set_output_1"]
    assert file.read_text() == ""


def test_clear_after_a_handover_that_failed(tmp_path: Path) -> None:
    done = bash(CLEAR["run"], {"GITHUB_WORKSPACE": str(tmp_path), "CPR_OUTPUT_FILE": ""})
    assert (done.returncode, done.stdout) == (0, "")


def test_run_hands_the_values_over_on_stdin_alone(tmp_path: Path) -> None:
    python = tmp_path / "my python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "{tmp_path}/probe.py" "$@"\n')
    python.chmod(0o755)
    (tmp_path / "probe.py").write_text(
        "import json, os, sys\n"
        "started = open('/proc/self/environ').read() if os.path.exists('/proc/self/environ') else ''\n"
        "print(json.dumps([sys.argv[1:], sys.stdin.read(), dict(os.environ), started]))\n"
    )
    blob = '{"ACTIONS_RUNTIME_TOKEN":"a \'b\' $c `d` \\\\ \\" é"}'
    kept = {"ACTIONS_ID_TOKEN_REQUEST_TOKEN": "id", "ACTIONS_ID_TOKEN_REQUEST_URL": "url"}
    secrets = {"CPR_RUNTIME": blob, "CPR_INPUT_TOKEN": "ghs_token", "CPR_INPUT_SIGNING_KEY": "a key\nof two lines"}
    env = {**secrets, "CPR_INPUT_PYTHON": str(python), "GITHUB_ACTION_PATH": "/action", **kept}
    done = bash(RUN["run"], {**env, **dict.fromkeys(SECRETS, "planted")})
    assert done.returncode == 0, done.stdout
    arguments, stdin, environ, started = json.loads(done.stdout)
    assert arguments == ["-I", "-S", "-X", "utf8", "/action/runtime/run.py"]
    assert stdin == f"{blob}\nghs_token\na key\nof two lines\n"
    assert kept.items() <= environ.items()
    assert not {*secrets, *SECRETS} & set(environ)
    assert "planted" not in started
    assert not [value for value in secrets.values() if value in started]


def test_every_runtime_variable_that_is_handed_over_is_unset() -> None:
    script = (ROOT / "runtime/handover/handover.cjs").read_text()
    handed = set(re.findall(r"'(ACTIONS_\w+)'", script))
    unset = {name for line in RUN["run"].splitlines() if line.startswith("unset ") for name in line.split()[1:]}
    # The orchestration id is no secret, and the runner gives it to `run:` steps too.
    assert unset == handed - {"ACTIONS_ORCHESTRATION_ID"} | {"CPR_RUNTIME", "CPR_INPUT_TOKEN", "CPR_INPUT_SIGNING_KEY"}


def test_run_says_that_python_is_missing() -> None:
    done = bash(RUN["run"], {"CPR_RUNTIME": "{}", "CPR_INPUT_PYTHON": "no-such\n::python", "GITHUB_ACTION_PATH": "/a"})
    assert done.returncode == 2
    (line,) = done.stdout.splitlines()
    assert line.startswith("::error::checkpoint-run needs Python 3.10 or newer, and ")
    assert "no-such" in line
