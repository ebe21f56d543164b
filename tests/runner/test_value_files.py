"""What a step hands on is read as GitHub's runner reads it."""

from __future__ import annotations

import os
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.model import Values
from checkpoint_action.runner.value_files import (
    SUMMARY_LIMIT,
    ValueFileError,
    ValueFiles,
    ValueFilesPool,
    parse_paths,
    parse_values,
)

WINDOWS = sys.platform == "win32"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", {}),
        ("\n\n", {}),
        ("A=1", {"A": "1"}),
        ("A=1\nB=2\n", {"A": "1", "B": "2"}),
        ("A=1\nA=2\n", {"A": "2"}),
        ("A=", {"A": ""}),
        ("A= x \n", {"A": " x "}),
        (" A=x\n", {" A": "x"}),
        ("A=b=c", {"A": "b=c"}),
        ("A=b<<c", {"A": "b<<c"}),
        ("A<<E\nE\n", {"A": ""}),
        ("A<<E\n\nE\n", {"A": ""}),
        ("A<<E\nx\nE", {"A": "x"}),
        ("A<<E\nx\ny\nE\nB=1", {"A": "x\ny", "B": "1"}),
        ("A<<E\nx\n\nE\n", {"A": "x\n"}),
        ("A<<E\n E\nE \nEE\nE\n", {"A": " E\nE \nEE"}),
        ("A<<E=F\nx\nE=F\n", {"A": "x"}),
        ("A<<E F\nx\nE F\n", {"A": "x"}),
        ("A<< E\nx\n E\n", {"A": "x"}),
        ("A<<<<\nx\n<<\n", {"A": "x"}),
        ("A <<E\nx\nE\n", {"A ": "x"}),
        ("A<<E\nB=1\nC<<D\nE\n", {"A": "B=1\nC<<D"}),
        ("\n\nA=1\n\nB<<E\n\nE\n\n", {"A": "1", "B": ""}),
        ("A=ü\udcff", {"A": "ü\udcff"}),
    ],
)
def test_a_file_of_values_is_read(text: str, values: dict[str, str]) -> None:
    assert parse_values(text) == values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A", "line 1 is neither NAME=VALUE nor NAME<<DELIMITER"),
        ("A=1\n\nrubbish\n", "line 3 is neither NAME=VALUE nor NAME<<DELIMITER"),
        ("=1", "line 1 has no name before its '='"),
        ("<<E\nx\nE", "line 1 has no name before its '<<', or no delimiter after it"),
        ("A<<\nx\n\n", "line 1 has no name before its '<<', or no delimiter after it"),
        ("B<<F\n1\nF\nA<<E\nx\n", "the value that begins in line 4 does not end: no later line is its delimiter alone"),
        ("A<<E\nxE\n", "the value that begins in line 1 does not end: no later line is its delimiter alone"),
        ("A=a\0b", "the value of line 1 has a NUL in it"),
        ("A\0=b", "the value of line 1 has a NUL in it"),
    ],
)
def test_what_the_runner_would_not_take_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueFileError) as caught:
        parse_values(text)
    assert str(caught.value) == said


@pytest.mark.skipif(WINDOWS, reason="there it belongs to the end of a line")
def test_a_carriage_return_is_a_part_of_the_value() -> None:
    assert parse_values("A=1\r\nB<<E\nx\r\ny\nE\n") == {"A": "1\r", "B": "x\r\ny"}


names = st.text(st.characters(exclude_characters="=<\n\r\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
texts = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]), max_size=30)


@given(st.dictionaries(names, texts, max_size=5))
def test_whatever_is_written_with_a_delimiter_of_its_own_is_read_back(values: dict[str, str]) -> None:
    delimiter = "ghadelimiter_5b1e6bd0"
    text = "".join(f"{name}<<{delimiter}\n{value}\n{delimiter}\n" for name, value in values.items())
    assert parse_values(text) == values


@given(st.text(max_size=60))
def test_any_text_is_values_or_a_fault(text: str) -> None:
    try:
        fault, values = "", parse_values(text)
    except ValueFileError as error:
        fault, values = str(error), {}
    assert "\n" not in fault
    assert all(values)


@pytest.mark.parametrize(
    ("text", "folders"),
    [("", ()), ("/a\n/b\n", ("/a", "/b")), ("/a\r\n\n/b", ("/a", "/b")), ("/a\n/b\n/a\n", ("/b", "/a"))],
)
def test_a_file_of_folders_is_read(text: str, folders: tuple[str, ...]) -> None:
    assert parse_paths(text) == folders


def test_a_folder_with_a_nul_is_refused() -> None:
    with pytest.raises(ValueFileError, match="NUL"):
        parse_paths("/a\0b")


@pytest.fixture
def files(tmp_path: Path) -> ValueFiles:
    return ValueFiles(tmp_path, "t")


def write(files: ValueFiles, name: str, data: bytes) -> None:
    Path(files.variables()[f"GITHUB_{name}"]).write_bytes(data)


def test_the_files_are_there_empty_and_for_their_owner_alone(files: ValueFiles) -> None:
    variables = files.variables()
    assert {name.partition("_")[2] for name in variables} == {"ENV", "PATH", "OUTPUT", "STEP_SUMMARY"}
    for name, path in variables.items():
        assert variables[f"CHECKPOINT_{name.partition('_')[2]}"] == path
        assert Path(path).read_bytes() == b""
        if not WINDOWS:
            assert Path(path).stat().st_mode & 0o777 == 0o600
    assert files.read() == Values()


def test_what_was_written_is_read(files: ValueFiles) -> None:
    write(files, "ENV", b"A=1\n")
    write(files, "PATH", b"/tools\n")
    write(files, "OUTPUT", b"version<<E\n1\n2\nE\n")
    write(files, "STEP_SUMMARY", b"# Done\n")
    assert files.read() == Values({"A": "1"}, ("/tools",), {"version": "1\n2"}, "# Done\n")


@pytest.mark.parametrize("data", ["A=ü".encode("utf-8-sig"), "A=ü".encode("utf-16"), "A=ü".encode()])
def test_the_encodings_of_powershell_are_read(files: ValueFiles, data: bytes) -> None:
    write(files, "ENV", data)
    assert files.read().env == {"A": "ü"}


def test_bytes_that_are_no_text_survive(files: ValueFiles) -> None:
    write(files, "ENV", b"A=\xff\xfe\n")
    assert files.read().env["A"].encode("utf-8", "surrogateescape") == b"\xff\xfe"


def test_a_fault_names_the_variable(files: ValueFiles) -> None:
    write(files, "OUTPUT", b"rubbish\n")
    with pytest.raises(ValueFileError, match=r"^\$GITHUB_OUTPUT: line 1 is neither"):
        files.read()


def test_a_file_that_the_step_removed_hands_nothing_on(files: ValueFiles) -> None:
    for path in set(files.variables().values()):
        os.unlink(path)
    assert files.read() == Values()
    files.remove()


@pytest.mark.skipif(WINDOWS, reason="no named pipes in folders")
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(files: ValueFiles) -> None:
    path = files.variables()["GITHUB_ENV"]
    os.unlink(path)
    os.mkfifo(path)
    assert files.read() == Values()


def test_a_folder_in_the_place_of_a_file_is_a_fault(files: ValueFiles) -> None:
    path = files.variables()["GITHUB_ENV"]
    os.unlink(path)
    os.mkdir(path)
    with pytest.raises(ValueFileError, match=r"^\$GITHUB_ENV cannot be read"):
        files.read()


def test_as_much_memory_is_taken_as_there_is_to_read(files: ValueFiles) -> None:
    write(files, "OUTPUT", b"a=1\n")
    tracemalloc.start()
    try:
        assert files.read().outputs == {"a": "1"}
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_summary_is_kept_up_to_what_github_shows(files: ValueFiles) -> None:
    write(files, "STEP_SUMMARY", b"x" * SUMMARY_LIMIT)
    assert len(files.read().summary) == SUMMARY_LIMIT
    write(files, "STEP_SUMMARY", b"x" * (SUMMARY_LIMIT + 1))
    assert files.read().summary == ""


def test_a_file_that_is_far_too_large_is_refused(files: ValueFiles) -> None:
    with open(files.variables()["GITHUB_ENV"], "wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(ValueFileError, match="more than 16 MiB"):
        files.read()


def test_the_files_go(files: ValueFiles, tmp_path: Path) -> None:
    files.remove()
    assert list(tmp_path.iterdir()) == []


def test_files_that_nobody_wrote_into_are_used_again(tmp_path: Path) -> None:
    pool = ValueFilesPool(tmp_path)
    first = pool.take()
    pool.give_back(first, alone=True)
    assert pool.take() is first


def test_files_that_were_written_into_go_at_once(tmp_path: Path) -> None:
    pool = ValueFilesPool(tmp_path)
    first = pool.take()
    write(first, "ENV", b"SECRET=1")
    pool.give_back(first, alone=True)
    assert list(tmp_path.iterdir()) == []
    assert pool.take().variables() != first.variables()


def test_files_that_a_process_left_behind_may_still_write_into_are_not_used_again(tmp_path: Path) -> None:
    pool = ValueFilesPool(tmp_path)
    first = pool.take()
    pool.give_back(first, alone=False)
    assert list(tmp_path.iterdir()) == []


def test_tries_at_once_have_each_their_own(tmp_path: Path) -> None:
    pool = ValueFilesPool(tmp_path)
    assert pool.take().variables() != pool.take().variables()
