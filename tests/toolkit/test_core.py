from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit import core
from checkpoint_action.toolkit.errors import CommandFileError, InputError

if TYPE_CHECKING:
    from pathlib import Path


def _parse(text: str) -> dict[str, str]:
    """Read a command file as the runner does."""
    values: dict[str, str] = {}
    lines = text.split("\n")
    while lines:
        line = lines.pop(0)
        if not line:
            continue
        equals, heredoc = line.find("="), line.find("<<")
        if heredoc < 0 or 0 <= equals < heredoc:
            name, _, values[name] = line.partition("=")
            continue
        name, _, delimiter = line.partition("<<")
        end = lines.index(delimiter)
        values[name] = "\n".join(lines[:end])
        del lines[: end + 1]
    return values


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "commands"
    path.touch()
    return path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        (None, ""),
        ("two\nlines\n", "two\nlines\n"),
        ("a=b<<c", "a=b<<c"),
        ("grün ✓", "grün ✓"),
        (True, "true"),
        (3, "3"),
        ({"a": [1, "ü"]}, '{"a":[1,"ü"]}'),
    ],
)
def test_an_output_comes_back_from_the_file_as_it_was(file: Path, value: object, text: str) -> None:
    core.set_output("before", "x", env={"GITHUB_OUTPUT": str(file)})
    core.set_output("name", value, env={"GITHUB_OUTPUT": str(file)})
    assert _parse(file.read_bytes().decode()) == {"before": "x", "name": text}


def test_the_delimiter_is_another_each_time(file: Path) -> None:
    for _ in range(2):
        core.save_state("n", "v", env={"GITHUB_STATE": str(file)})
    delimiters = {line for line in file.read_text().splitlines() if line.startswith("ghadelimiter_")}
    assert len(delimiters) == 2


@pytest.mark.parametrize("name", ["", "a=b", "a<<b", "a\nb", "a\rb"])
def test_a_name_that_would_be_misread_is_refused(file: Path, name: str) -> None:
    with pytest.raises(CommandFileError):
        core.set_output(name, "v", env={"GITHUB_OUTPUT": str(file)})
    assert file.read_bytes() == b""


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandFileError, match="missing"):
        core.set_output("a", "b", env={"GITHUB_OUTPUT": str(tmp_path / "none")})


def test_without_files_the_older_commands_are_printed(capfd: pytest.CaptureFixture[str]) -> None:
    env: dict[str, str] = {}
    core.set_output("o:1", "50%\n", env=env)
    core.export_variable("V", "x", env=env)
    core.add_path("/bin/a,b", env=env)
    core.save_state("s", "y", env=env)
    assert capfd.readouterr().out.splitlines() == [
        "",
        "::set-output name=o%3A1::50%25%0A",
        "::set-env name=V::x",
        "::add-path::/bin/a,b",
        "::save-state name=s::y",
    ]


def test_a_variable_is_set_here_and_for_later_steps(file: Path) -> None:
    env = {"GITHUB_ENV": str(file)}
    core.export_variable("V", {"a": 1}, env=env)
    assert env["V"] == '{"a":1}'
    assert _parse(file.read_text()) == {"V": '{"a":1}'}


def test_a_folder_is_put_in_front_of_path(file: Path, tmp_path: Path) -> None:
    env = {"GITHUB_PATH": str(file), "PATH": "old"}
    core.add_path(tmp_path, env=env)
    assert env["PATH"] == f"{tmp_path}{os.pathsep}old"
    assert file.read_text() == f"{tmp_path}\n"
    with pytest.raises(CommandFileError):
        core.add_path("a\nb", env=env)


def test_state_is_read_back() -> None:
    assert core.get_state("s", env={"STATE_s": "v"}) == "v"
    assert core.get_state("s", env={}) == ""


def test_inputs_are_found_under_the_runners_names() -> None:
    env = {"INPUT_MY_NAME": "  v ", "INPUT_LIST": "a\n\n b \n", "INPUT_MY-DASH": "d"}
    assert core.get_input("my name", env=env) == "v"
    assert core.get_input("my name", trim_whitespace=False, env=env) == "  v "
    assert core.get_input("my-dash", env=env) == "d"
    assert core.get_input("none", env=env) == ""
    assert core.get_multiline_input("list", env=env) == ["a", "b"]
    assert core.get_multiline_input("list", trim_whitespace=False, env=env) == ["a", " b "]


def test_a_required_input_must_be_there() -> None:
    with pytest.raises(InputError, match="required and not supplied: x"):
        core.get_input("x", required=True, env={"INPUT_X": ""})


@pytest.mark.parametrize(("text", "value"), [("true", True), ("TRUE", True), ("False", False), (" false ", False)])
def test_booleans_are_those_of_yaml(text: str, value: bool) -> None:
    assert core.get_boolean_input("x", env={"INPUT_X": text}) is value


@pytest.mark.parametrize("text", ["", "yes", "1", "tRue"])
def test_other_texts_are_no_booleans(text: str) -> None:
    with pytest.raises(InputError):
        core.get_boolean_input("x", env={"INPUT_X": text})


def test_the_environment_of_the_process_is_the_default(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    monkeypatch.setenv("INPUT_X", "v")
    monkeypatch.setenv("RUNNER_DEBUG", "1")
    monkeypatch.setenv("GITHUB_OUTPUT", str(file))
    assert core.get_input("x") == "v"
    assert core.is_debug()
    core.set_output("a", "b")
    assert _parse(file.read_text()) == {"a": "b"}


def test_failing_prints_an_error_and_gives_the_exit_code(capfd: pytest.CaptureFixture[str]) -> None:
    assert core.set_failed(ValueError("no\ngood")) == 1
    assert capfd.readouterr().out == "::error::Error: no%0Agood\n"


def test_a_summary_grows_up_to_its_limit(file: Path) -> None:
    env = {"GITHUB_STEP_SUMMARY": str(file)}
    assert core.append_summary("# Title\n", env=env)
    assert core.append_summary("ü" * 1000, env=env)
    before = file.read_bytes()
    with pytest.raises(CommandFileError, match="larger"):
        core.append_summary("ü" * (core.SUMMARY_LIMIT // 2), env=env)
    assert file.read_bytes() == before == b"# Title\n" + "ü".encode() * 1000


def test_without_a_summary_file_nothing_is_written() -> None:
    assert not core.append_summary("x", env={})
