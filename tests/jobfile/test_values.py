"""Names, durations, sizes, retry causes and shells."""

from __future__ import annotations

import math
import shlex
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.jobfile.values import (
    SHELLS,
    is_name,
    name_from,
    nearest,
    parse_duration,
    parse_retry_cause,
    parse_shell,
    parse_size,
)

NAME_START = string.ascii_letters + string.digits
NAME_REST = NAME_START + "._-"
TEN_YEARS = 10 * 365 * 86400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("90", 90),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("+5", 5),
        ("1e3", 1000),
        ("90s", 90),
        ("0.25s", 0.25),
        ("10m", 600),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1h30m5s", 5405),
        ("1h5s", 3605),
        ("90m", 5400),
        (" 90s ", 90),
        (str(TEN_YEARS), TEN_YEARS),
    ],
)
def test_a_duration_is_seconds_or_hours_minutes_and_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text",
    ["", " ", "s", "h", "m", "x", "1d", "30m1h", "1h 30m", "1s1s", "1.5m", "1,5", "1_000", "1:30", "0x10", "٣", "٣m"],
)
def test_what_is_no_duration_is_refused_with_the_right_forms(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration; write 90, 90s, 10m or 1h30m"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["-1", "-0.5", "1e400", "9" * 400, "9" * 400 + "h", "87601h", str(TEN_YEARS + 1)])
def test_a_duration_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration between 0 and ten years"):
        parse_duration(text)


@pytest.mark.parametrize("text", ["nan", "inf", "infinity", "-inf"])
def test_words_for_odd_numbers_are_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.integers(0, 999), st.integers(0, 9999), st.integers(0, 99999))
def test_a_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int) -> None:
    assert parse_duration(f"{hours}h{minutes}m{seconds}s") == 3600 * hours + 60 * minutes + seconds
    assert parse_duration(f"{minutes}m") == 60 * minutes
    assert parse_duration(str(seconds)) == seconds


@given(st.one_of(st.text(), st.text(alphabet="0123456789.hmse+-_ "), st.floats().map(repr)))
def test_any_text_is_a_duration_in_range_or_a_value_error(text: str) -> None:
    try:
        seconds = parse_duration(text)
    except ValueError as error:
        assert "is not a duration" in str(error)  # noqa: PT017  # one of two ends
    else:
        assert math.isfinite(seconds)
        assert 0 <= seconds <= TEN_YEARS


@pytest.mark.parametrize(
    "text", ["a", "0", "Z9", "a.b", "a_b", "a-b", "1.10", "010", "on", "no", "a.", "a-", "CON", "a" * 100]
)
def test_letters_digits_dots_and_dashes_make_a_name(text: str) -> None:
    assert is_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".a",
        "-a",
        "_a",
        "a b",
        "a/b",
        "a\\b",
        "a:b",
        "a\n",
        "\na",
        "x(1)",
        "../up",
        "Straße",
        "Strasse\u0301",
        "a\0",
        "é",
        "٣",
        "a" * 101,
        "a" * 300,
    ],
)
def test_anything_else_is_no_name(text: str) -> None:
    assert not is_name(text)


@given(st.text(max_size=120))
def test_a_name_is_exactly_what_the_rule_says(text: str) -> None:
    said = bool(text) and len(text) <= 100 and text[0] in NAME_START and all(char in NAME_REST for char in text)
    assert is_name(text) == said


@given(
    st.text(alphabet=NAME_REST, max_size=99).flatmap(lambda rest: st.sampled_from(NAME_START).map(lambda c: c + rest))
)
def test_a_folder_with_a_valid_name_gives_its_name_but_for_dashes_at_its_end(name: str) -> None:
    assert is_name(name)
    assert name_from(name, "job") == name.rstrip("-")


@given(st.text())
def test_any_folder_gives_a_valid_job_name(text: str) -> None:
    assert is_name(name_from(text, "job"))


@pytest.mark.parametrize(
    ("folder", "name"),
    [("my job", "my-job"), ("", "job"), ("日本", "job"), (".hidden", "hidden"), ("--a--", "a"), ("a" * 200, "a" * 100)],
)
def test_a_folder_name_is_made_a_job_name(folder: str, name: str) -> None:
    assert name_from(folder, "job") == name


def test_the_nearest_word_is_named_without_regard_to_case() -> None:
    assert nearest("BUIDL", ["test", "build"]) == "; did you mean 'build'?"
    assert nearest("ID", ["id"]) == "; did you mean 'id'?"


def test_no_word_is_named_when_none_is_near() -> None:
    assert nearest("qqq", ["test", "build"]) == ""
    assert nearest("x", []) == ""


@given(st.text(), st.lists(st.text(), max_size=4))
def test_the_nearest_word_is_always_one_of_the_valid_ones(word: str, valid: list[str]) -> None:
    hint = nearest(word, valid)
    assert hint == "" or hint in [f"; did you mean '{name}'?" for name in valid]


def test_a_retry_cause_is_error_timeout_or_an_exit_code() -> None:
    assert parse_retry_cause("error") == "error"
    assert parse_retry_cause("timeout") == "timeout"
    assert parse_retry_cause("75") == 75
    assert parse_retry_cause("3221225786") == 3221225786


@pytest.mark.parametrize("text", ["", "0", "00", "-1", "1.0", "Error", "err", "7_5", "٣", "1" * 11, "75 "])
def test_anything_else_is_no_retry_cause(text: str) -> None:
    with pytest.raises(ValueError, match="is neither error, timeout nor an exit code"):
        parse_retry_cause(text)


def test_a_misspelt_retry_cause_gets_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"did you mean 'timeout'\?$"):
        parse_retry_cause("timout")


@pytest.mark.parametrize("text", [*SHELLS, "zsh {0}", "perl -w {0} --", "'a b/tool' {0}", "{0}"])
def test_a_shell_is_a_known_one_or_a_command_with_a_place_for_the_script(text: str) -> None:
    assert parse_shell(text) == text


@pytest.mark.parametrize("text", ["zsh", "cat", "", "BASH", "/bin/sh", "bash -x", "{1}"])
def test_a_program_that_would_never_see_the_script_is_no_shell(text: str) -> None:
    with pytest.raises(ValueError, match="unknown shell"):
        parse_shell(text)


def test_a_misspelt_shell_gets_the_nearest_one() -> None:
    with pytest.raises(ValueError, match=r"unknown shell 'bsh'; did you mean 'bash'\?"):
        parse_shell("bsh")


@given(st.text(alphabet="ab '\"\\", max_size=20), st.text(alphabet="ab '\"\\", max_size=20))
def test_a_shell_that_is_taken_can_be_cut_into_words(before: str, after: str) -> None:
    text = f"{before}{{0}}{after}"
    try:
        parse_shell(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"quotation|escaped"):
            shlex.split(text)
    else:
        assert shlex.split(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1", 1),
        ("1000000", 1_000_000),
        ("7B", 7),
        ("500MB", 500_000_000),
        ("500mb", 500_000_000),
        ("2GiB", 2 << 30),
        ("2 gib", 2 << 30),
        (" 1.5 KiB ", 1536),
        ("0.5kB", 500),
        ("3TB", 3_000_000_000_000),
        ("1TiB", 1 << 40),
    ],
)
def test_a_size_is_a_number_of_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "write 500MB, 2GiB or a number of bytes"),
        ("big", "write 500MB"),
        ("-5MB", "write 500MB"),
        ("1e9", "write 500MB"),
        ("1,5MB", "write 500MB"),
        ("5 MB 3", "write 500MB"),
        ("٣MB", "write 500MB"),
        ("5Gi", "did you mean 'GiB'?"),
        ("0", "between a byte and 1000 TB"),
        ("0.1B", "between a byte and 1000 TB"),
        ("2000TB", "between a byte and 1000 TB"),
        ("9" * 400, "between a byte and 1000 TB"),
    ],
)
def test_what_is_no_size_is_refused_with_what_would_be_one(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="is not a size") as caught:
        parse_size(text)
    assert said in str(caught.value)


@given(st.integers(1, 10**15))
def test_every_number_of_bytes_is_a_size(size: int) -> None:
    assert parse_size(str(size)) == size
