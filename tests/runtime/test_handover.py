"""The JavaScript action, run by node as the runner runs it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "runtime" / "handover" / "handover.cjs"
VALUES = {
    "ACTIONS_RUNTIME_TOKEN": "header.claims.signature",
    "ACTIONS_RESULTS_URL": "https://results.example.com/",
    "ACTIONS_CACHE_URL": "https://cache.example.com/x/",
    "ACTIONS_RUNTIME_URL": "https://runtime.example.com/",
    "ACTIONS_CACHE_SERVICE_V2": "True",
    "ACTIONS_CACHE_MODE": "read",
    "ACTIONS_ORCHESTRATION_ID": "a.b.c",
}

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="needs node")


def node(env: dict[str, str], script: Path = SCRIPT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["node", str(script)], env=env, stdout=subprocess.PIPE, text=True, check=False)


def hand_over(tmp_path: Path, values: dict[str, str], script: Path = SCRIPT) -> tuple[list[str], dict[str, str]]:
    """Run the action.

    :returns: the lines it printed, and its outputs.
    """
    file = tmp_path / "outputs"
    file.write_text("before=1\n")
    env = {"PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(file), "OTHER": "not ours", **values}
    done = node(env, script)
    assert done.returncode == 0, done.stdout
    text = file.read_text()
    assert text.startswith("before=1\n")
    found = re.findall(r"^(\w+)<<(checkpoint-run-[0-9a-f]{32})\n(.*)\n\2\n", text, re.MULTILINE)
    assert len({delimiter for _, delimiter, _ in found}) == 2
    return done.stdout.split("\n")[:-1], {name: value for name, _, value in found}


def test_all_values_on_one_masked_line(tmp_path: Path) -> None:
    lines, outputs = hand_over(tmp_path, VALUES)
    assert json.loads(outputs["runtime"]) == VALUES
    assert lines == [f"::add-mask::{VALUES['ACTIONS_RUNTIME_TOKEN']}", f"::add-mask::{outputs['runtime']}"]


def test_names_the_file_that_has_to_be_emptied(tmp_path: Path) -> None:
    _, outputs = hand_over(tmp_path, VALUES)
    assert outputs["file"] == str(tmp_path / "outputs")


def test_missing_and_empty_values_are_left_out(tmp_path: Path) -> None:
    _, outputs = hand_over(tmp_path, {"ACTIONS_CACHE_URL": "http://cache/", "ACTIONS_CACHE_MODE": ""})
    assert json.loads(outputs["runtime"]) == {"ACTIONS_CACHE_URL": "http://cache/"}


def test_without_values_nothing_is_masked(tmp_path: Path) -> None:
    # A mask of `{}` would blank out every empty object in the log.
    lines, outputs = hand_over(tmp_path, {})
    assert (lines, outputs["runtime"]) == ([], "{}")


def test_odd_values_cannot_break_out(tmp_path: Path) -> None:
    value = 'a%0A"b\n::set-output name=x::y\nruntime=z\r\u2028é'
    lines, outputs = hand_over(tmp_path, {"ACTIONS_RUNTIME_TOKEN": value})
    assert json.loads(outputs["runtime"]) == {"ACTIONS_RUNTIME_TOKEN": value}
    assert len(lines) == 2
    assert lines[0].startswith('::add-mask::a%250A"b%0A::set-output')


def test_masks_come_before_the_output(tmp_path: Path) -> None:
    # With an output file that blocks, the masks are there already.
    fifo = tmp_path / "outputs"
    os.mkfifo(fifo)
    env = {"PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(fifo), **VALUES}
    with subprocess.Popen(["node", str(SCRIPT)], env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("::add-mask::")
        assert process.stdout.readline().startswith("::add-mask::")
        assert process.poll() is None
        assert "runtime<<" in fifo.read_text()
    assert process.returncode == 0


def test_no_output_file_is_an_error(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], **VALUES}
    done = node(env)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("::error::checkpoint-run: ")


def test_a_package_json_above_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}')
    folder = tmp_path / ".checkpoint-run-runtime"
    folder.mkdir()
    shutil.copy(SCRIPT, folder)
    _, outputs = hand_over(tmp_path, VALUES, folder / SCRIPT.name)
    assert json.loads(outputs["runtime"]) == VALUES
