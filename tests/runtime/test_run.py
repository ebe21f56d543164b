"""The entry: from the script's last line to the package's first."""

from __future__ import annotations

import ast
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime import bootstrap, start

ROOT = Path(__file__).resolve().parents[2]
RUN = ROOT / "runtime" / "run.py"

STAND_IN = """
import ctypes, json, os, sys

def main(env, runtime):
    null = os.fstat(0)
    print(json.dumps({
        "env": env,
        "environ": dict(os.environ),
        "runtime": runtime,
        "path": sys.path,
        "modules": [name for name in sys.modules if name in ("yaml", "urllib3", "psutil", "site")],
        "stdin": [null.st_mode, null.st_rdev, sys.stdin.read()],
        "dumpable": ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) if sys.platform == "linux" else 0,
    }))
    return 7
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the entry, with a stand-in for the package and dependencies that are there already."""
    root = tmp_path / "checkpoint run"
    shutil.copytree(ROOT / "runtime", root / "runtime", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "checkpoint_action").mkdir()
    (root / "checkpoint_action" / "__init__.py").touch()
    (root / "checkpoint_action" / "action.py").write_text(STAND_IN)
    packages = tmp_path / "tools" / "checkpoint-run" / bootstrap.folder_name(requirements(root).read_bytes())
    packages.mkdir(parents=True)
    bootstrap.write_inventory(packages)
    return root


def requirements(root: Path) -> Path:
    return root / "runtime" / "requirements.txt"


def enter(root: Path, stdin: bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
    """Run the entry as action.yml does."""
    return subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", str(root / "runtime" / "run.py")],
        input=stdin,
        env={"PATH": os.environ["PATH"], "RUNNER_TOOL_CACHE": str(root.parent / "tools"), **env},
        stdout=subprocess.PIPE,
        check=False,
    )


def seen(root: Path, stdin: bytes, **env: str) -> dict[str, Any]:
    done = enter(root, stdin, **env)
    assert done.returncode == 7
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_hands_over_to_the_package(copy: Path) -> None:
    found = seen(copy, b'{"ACTIONS_RUNTIME_TOKEN": "t\xc3\xa9"}\n', CPR_INPUT_JOB="j", CPR_RUNTIME="stale", OTHER="o")
    assert found["runtime"] == {"ACTIONS_RUNTIME_TOKEN": "té"}
    assert (found["env"]["CPR_INPUT_JOB"], found["env"]["OTHER"]) == ("j", "o")
    assert "CPR_RUNTIME" not in found["env"]


def test_commands_do_not_inherit_our_inputs(copy: Path) -> None:
    found = seen(copy, b"{}", CPR_INPUT_JOB="j", OTHER="o")
    assert not [name for name in found["environ"] if name.startswith("CPR_")]
    assert found["environ"]["OTHER"] == "o"


def test_stdin_is_empty_afterwards(copy: Path) -> None:
    mode, device, rest = seen(copy, b"{}")["stdin"]
    null = os.stat(os.devnull)
    assert (mode, device, rest) == (null.st_mode, null.st_rdev, "")


def test_our_root_and_packages_come_first(copy: Path) -> None:
    found = seen(copy, b"{}", PYTHONPATH="/hostile")
    assert found["path"][0] == str(copy)
    assert found["path"][1].startswith(str(copy.parent / "tools" / "checkpoint-run"))
    assert "/hostile" not in found["path"]
    assert found["modules"] == []


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux")
def test_memory_is_closed_to_others(copy: Path) -> None:
    assert seen(copy, b"{}")["dumpable"] == 0


@pytest.mark.parametrize("text", [b"", b"\n", b"{", b"[]", b"null", b"\xff"])
def test_a_failed_handover_is_no_values(copy: Path, text: bytes) -> None:
    assert seen(copy, text)["runtime"] == {}


def test_only_text_values_count() -> None:
    runtime, _secrets = start.read_secrets(io.BytesIO(b'{"A": "1", "B": 2, "C": null}'))
    assert runtime == {"A": "1"}


def test_inputs_that_are_secrets_reach_the_package_and_nothing_that_a_command_inherits(copy: Path) -> None:
    found = seen(copy, b'{"A": "1"}\nghs_token\nkey, line 1\nline 2 \xc3\xa9\n')
    assert found["runtime"] == {"A": "1"}
    assert found["env"]["CPR_INPUT_TOKEN"] == "ghs_token"
    assert found["env"]["CPR_INPUT_SIGNING_KEY"] == "key, line 1\nline 2 é\n"
    assert not [name for name in found["environ"] if name.startswith("CPR_")]


def test_a_failed_handover_does_not_cost_the_secrets(copy: Path) -> None:
    found = seen(copy, b"\nghs_token\nkey\n")
    assert (found["runtime"], found["env"]["CPR_INPUT_TOKEN"]) == ({}, "ghs_token")


@pytest.mark.slow
def test_packages_that_cannot_be_installed_are_one_error_line(copy: Path, tmp_path: Path) -> None:
    requirements(copy).write_text("nothing==1 --hash=sha256:" + "0" * 64 + "\n")
    done = enter(copy, b"{}", PIP_NO_INDEX="1", UV_NO_INDEX="1", HOME=str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stdout.decode().splitlines()
    assert line.startswith("::error::the action's Python packages could not be installed: ")


def test_parses_where_python_is_old() -> None:
    ast.parse(RUN.read_text(), feature_version=(3, 6))
    annotations = [node for node in ast.walk(ast.parse(RUN.read_text())) if isinstance(node, ast.ImportFrom)]
    assert "__future__" not in {node.module for node in annotations}


def test_an_old_python_is_one_error_line() -> None:
    code = (
        "import runpy, sys; sys.version_info = (3, 8, 10, 'final', 0); runpy.run_path(sys.argv[1], run_name='__main__')"
    )
    env = {**os.environ, "CPR_INPUT_PYTHON": "python3"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(RUN)], env=env, stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stdout == (
        "::error::checkpoint-run needs Python 3.10 or newer, 'python3' is 3.8.10; "
        "use the input python or actions/setup-python\n"
    )
