"""YAML as values that know where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import JobFileError
from checkpoint_action.jobfile.document import Value, parse

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test holds for both of the YAML package's parsers."""
    name = str(request.param)
    if name == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("this YAML package was built without libyaml")
    return name


def value(text: str) -> Value:
    """The value of the key ``v``."""
    return parse(text, "f.yml", "the file").fields(("v",))["v"]


def fault(action: Callable[[], object]) -> str:
    with pytest.raises(JobFileError) as caught:
        action()
    return str(caught.value)


def fault_of(text: str) -> str:
    return fault(lambda: parse(text, "f.yml", "the file"))


@pytest.mark.parametrize(
    "text",
    ["on", "no", "yes", "1.10", "010", "0x1F", "1:30", "1_000", "12e03", "2001-01-01", "null-ish", ".inf", "=", "é"],
)
def test_a_text_is_kept_exactly_as_written(text: str) -> None:
    assert value(f"v: {text}\n").text() == text
    assert value(f'v: "{text}"\n').text() == text


def test_a_block_text_keeps_its_lines() -> None:
    assert value("v: |\n  a\n    b\n\n  c\n").text() == "a\n  b\n\nc\n"
    assert value("v: >-\n  a\n  b\n").text() == "a b"


@pytest.mark.parametrize(("text", "column"), [("~", 4), ("null", 4), ("Null", 4), ("NULL", 4), ("", 3)])
def test_nothing_is_told_apart_from_the_empty_text(text: str, column: int) -> None:
    assert value(f"v: {text}\n").is_null
    assert fault(value(f"v: {text}\n").text) == f"f.yml:1:{column}: the file: v must be a text, not nothing"
    assert value('v: ""\n').text() == ""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text("~nulNUL '\"!#|-", max_size=7))
@example("!!null x")
@example("!!str null")
@example("! null")
def test_nothing_is_what_the_yaml_package_takes_for_null(text: str) -> None:
    document = f"v: {text}\n"
    try:
        whole = yaml.compose(document, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return
    assert whole is not None
    node = whole.value[0][1]
    if isinstance(node, yaml.ScalarNode):
        assert value(document).is_null is (node.tag == "tag:yaml.org,2002:null")


@pytest.mark.parametrize(("text", "kind"), [("[a]", "a list"), ("{a: b}", "a mapping")])
def test_a_list_or_mapping_is_no_text(text: str, kind: str) -> None:
    assert fault(value(f"v: {text}").text) == f"f.yml:1:4: the file: v must be a text, not {kind}"


@pytest.mark.parametrize(("text", "truth"), [("true", True), ("True", True), ("TRUE", True), ("false", False)])
def test_true_and_false_are_the_only_booleans(text: str, truth: bool) -> None:
    assert value(f"v: {text}").boolean() is truth


@pytest.mark.parametrize("text", ["yes", "no", "on", "off", "1", "0", "y", "tRue"])
def test_other_words_for_true_and_false_are_refused(text: str) -> None:
    assert fault(value(f"v: {text}").boolean) == f"f.yml:1:4: the file: v must be true or false, not '{text}'"


def test_a_list_is_no_boolean() -> None:
    assert fault(value("v: []").boolean) == "f.yml:1:4: the file: v must be true or false, not a list"


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("7", 7), ("010", 10), ('"3"', 3), ("999999999", 999999999)])
def test_a_whole_number_is_decimal(text: str, number: int) -> None:
    assert value(f"v: {text}").integer() == number


@pytest.mark.parametrize("text", ["-1", "1.0", "1_000", "0x10", "ten", "٣", "9999999999"])
def test_anything_else_is_no_whole_number(text: str) -> None:
    assert fault(value(f"v: {text}").integer) == f"f.yml:1:4: the file: v must be a whole number from 0, not '{text}'"


def test_a_whole_number_has_its_least_value() -> None:
    v = value("v: 0")
    assert fault(lambda: v.integer(1)) == "f.yml:1:4: the file: v must be a whole number from 1, not '0'"
    assert fault(value("v: [1]").integer) == "f.yml:1:4: the file: v must be a whole number, not a list"


def test_a_duration_is_seconds() -> None:
    assert value("v: 1h30m").duration() == 5400
    assert value("v: 90").duration() == 90
    # YAML 1.1 would read a number to the base of sixty; here it is a mistake.
    assert "'1:30' is not a duration" in fault(value("v: 1:30").duration)
    assert "must be a duration such as 90s, 10m or 1h30m, not a mapping" in fault(value("v: {}").duration)


def test_a_single_text_stands_for_a_list_of_one() -> None:
    assert [item.text() for item in value("v: a").members()] == ["a"]
    assert [item.text() for item in value("v: [a, b]").members()] == ["a", "b"]
    assert value("v: []").members() == []
    assert fault(value("v: {a: b}").members) == "f.yml:1:4: the file: v must be a list, not a mapping"
    assert fault(value("v:").members) == "f.yml:1:3: the file: v must be a list, not nothing"


def test_a_list_is_not_made_of_a_single_text_where_one_is_needed() -> None:
    assert fault(value("v: a").items) == "f.yml:1:4: the file: v must be a list, not a text"


def test_the_faulty_member_of_a_list_is_named_not_the_list() -> None:
    members = value("v:\n  - a\n  - [b]\n").members()
    assert fault(members[1].text) == "f.yml:3:5: the file: v must be a text, not a list"


def test_an_unknown_key_is_named_with_its_place_and_the_nearest() -> None:
    document = parse("a: 1\ninptus: 2\n", "f.yml", "the file")
    assert fault(lambda: document.fields(("a", "inputs"))) == (
        "f.yml:2:1: the file: unknown key 'inptus'; did you mean 'inputs'?"
    )


def test_an_unknown_key_like_no_other_gets_the_whole_list() -> None:
    document = parse("zzz: 1\n", "f.yml", "the file")
    assert fault(lambda: document.fields(("a", "inputs"))) == (
        "f.yml:1:1: the file: unknown key 'zzz'; valid are a, inputs"
    )


def test_a_key_that_comes_twice_is_refused_at_the_second() -> None:
    document = parse("a: 1\nb: 2\n  \na: 3\n", "f.yml", "the file")
    assert fault(lambda: document.fields(("a", "b"))) == (
        "f.yml:4:1: the file: key 'a' is there twice (first in line 1); remove one"
    )


@pytest.mark.parametrize("key", ["on", "1.10", "010", "1:30"])
def test_a_key_is_kept_as_written_too(key: str) -> None:
    assert [name.text() for name, _ in parse(f"{key}: x", "f.yml", "the file").pairs()] == [key]


def test_a_key_must_be_a_text() -> None:
    document = parse("? [a]\n: b\n", "f.yml", "the file")
    assert fault(lambda: list(document.pairs())) == "f.yml:1:3: the file: a key must be a text, not a list"


def test_a_merge_key_is_a_key_like_any_other() -> None:
    document = parse("a: &x {b: c}\n<<: *x\n", "f.yml", "the file")
    assert "f.yml:2:1: the file: unknown key '<<'" in fault(lambda: document.fields(("a",)))


def test_an_alias_is_what_its_anchor_is() -> None:
    document = parse("a: &x [1, 2]\nb: *x\n", "f.yml", "the file").fields(("a", "b"))
    assert [item.text() for item in document["b"].items()] == ["1", "2"]


def test_an_anchor_that_holds_itself_does_no_harm() -> None:
    assert fault(value("v: &x [*x]").members()[0].text) == "f.yml:1:4: the file: v must be a text, not a list"


def test_a_tag_makes_nothing_of_a_text() -> None:
    assert value("v: !!python/object:os.system echo").text() == "echo"
    assert value("v: !!int 010").text() == "010"


def test_columns_count_characters_not_bytes() -> None:
    assert fault(value("v: {ä€𝄞: [x]}").fields(("ä€𝄞",))["ä€𝄞"].text) == (
        "f.yml:1:10: the file: v: ä€𝄞 must be a text, not a list"
    )


@pytest.mark.parametrize("text", ["", "\n\n", "# only words\n"])
def test_an_empty_document_is_named_so(text: str) -> None:
    assert fault_of(text) == "f.yml:1:1: the file is empty"


def test_a_document_of_nothing_is_no_mapping() -> None:
    document = parse("---\n", "f.yml", "the file")
    assert "the file must be a mapping, not nothing" in fault(lambda: document.fields(()))


def test_a_second_document_is_refused_where_it_begins() -> None:
    assert fault_of("v: 1\n---\nv: 2\n") == (
        "f.yml:2:1: not valid YAML: expected a single document in the stream but found another document"
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("v:\n\t- a\n", "2:1"),
        ("v: [a\n", "2:1"),
        ("v: 'a\n", "2:1"),
        ("v: *nowhere\n", "1:4"),
        ("v: a: b\n", "1:5"),
        ("v: @a\n", "1:4"),
        ("%YAML 3.0\n---\nv: 1", "1:1"),
    ],
)
def test_broken_yaml_is_one_line_with_its_place(text: str, place: str) -> None:
    said = fault_of(text)
    assert said.startswith(f"f.yml:{place}: not valid YAML: ")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ("v: \0\n", "1:4", "U+0000"),
        ("a: é\nb: €𝄞\nv: x\x07\n", "3:5", "U+0007"),
        ("v: \x1b[31m", "1:4", "U+001B"),
        ("v: \x7f", "1:4", "U+007F"),
        ("v: a\n\udcff", "2:1", "U+DCFF"),
        ("v: \ud800", "1:4", "U+D800"),
        ("v: \uffff", "1:4", "U+FFFF"),
    ],
)
def test_a_character_that_yaml_forbids_is_named_at_its_place(text: str, place: str, code: str) -> None:
    assert fault_of(text) == f"f.yml:{place}: not valid YAML: the character {code} is not allowed"


def test_a_nul_by_its_escape_is_refused() -> None:
    assert fault(value('v: "a\\0b"').text) == "f.yml:1:4: the file: v holds a NUL character"


def test_half_a_character_by_its_escape_is_refused(loader: str) -> None:
    with pytest.raises(JobFileError) as caught:
        value('v: "a\\ud800b"').text()
    if loader == "python":
        assert str(caught.value) == "f.yml:1:4: the file: v holds half of a character (a surrogate)"


@pytest.mark.parametrize(("opening", "closing"), [("[", ""), ("[", "]"), ("{a: ", ""), ("- ", "")])
def test_endless_nesting_is_one_line(loader: str, opening: str, closing: str) -> None:
    # The one runs out of its own limit, the other out of Python's, and far more slowly.
    depth = 100_000 if loader == "libyaml" else 800
    assert fault_of(opening * depth + closing * depth).startswith("f.yml:1:")


def test_many_aliases_of_aliases_cost_nothing() -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 60)]
    document = parse("\n".join(lines), "f.yml", "the file")
    assert len(dict(document.pairs())) == 60


def test_what_aliases_make_of_a_short_text_has_a_limit() -> None:
    members = ", ".join(["x"] * 800)
    steps = "".join(f"- {{id: s{number}, inputs: *a}}\n" for number in range(200))
    document = parse(f"a: &a [{members}]\nsteps:\n{steps}", "f.yml", "the file")
    steps_value = document.fields(("a", "steps"))["steps"]

    def read_all() -> None:
        for step in steps_value.items():
            step.fields(("id", "inputs"))["inputs"].items()

    assert "its aliases make too many values of it" in fault(read_all)


def test_a_long_text_without_aliases_has_none() -> None:
    document = parse("".join(f"- [x, y, z] # {number}\n" for number in range(3_000)), "f.yml", "the file")
    assert sum(len(item.items()) for _ in range(3) for item in document.items()) == 27_000
