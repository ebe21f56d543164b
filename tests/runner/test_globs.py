"""Path patterns, held against a plain recursive matcher."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_action.runner.globs import Excludes, has_magic, matcher, static_prefix

calm = settings(max_examples=50, deadline=None)


@dataclass(frozen=True)
class Piece:
    """A piece of a pattern: its text, and what it means: ``*``, ``?`` or one of ``chars`` (or none of them)."""

    text: str
    kind: str = ""
    chars: frozenset[str] = frozenset()
    negated: bool = False

    def fits(self, char: str) -> bool:
        return self.kind == "?" or (char in self.chars) is not self.negated


CHARS = "ab]-!^.c\n&|~\\"
literals = st.sampled_from("ab-!^.c\n&|~\\").map(lambda char: Piece(char, "1", frozenset(char)))


@st.composite
def classes(draw: st.DrawFn) -> Piece:
    chars = draw(st.frozensets(st.sampled_from(CHARS), min_size=1, max_size=4))
    ranges = draw(st.sampled_from([[], [("a", "c")], [("!", "-")], [("+", "-")], [("-", "a")]]))
    negated = draw(st.booleans())
    if ranges == [("-", "a")]:
        chars -= {"]"}  # its place is the first, and a range from "]" is something else
    body = "]" if "]" in chars else ""
    body += "".join(f"{low}-{high}" for low, high in ranges)
    body += "".join(sorted(chars - {"]", "-", "!"}))
    body += "!" if "!" in chars and (body or negated) else ""
    body += "-" if "-" in chars else ""
    if not body:
        body, chars = "a", frozenset("a")
    if not negated and body.startswith("!"):
        body = f"a{body}"
        chars |= {"a"}
    meant = {chr(code) for low, high in ranges for code in range(ord(low), ord(high) + 1)}
    meant |= chars if "!" in body or "!" not in chars else chars - {"!"}
    return Piece(f"[{'!' if negated else ''}{body}]", "1", frozenset(meant), negated)


pieces = st.lists(
    st.one_of(literals, st.just(Piece("*", "*")), st.just(Piece("?", "?")), classes()), min_size=1, max_size=5
).filter(lambda parts: [piece.text for piece in parts] != ["*", "*"])
anywhere = st.just([Piece("**", "**")])
patterns = st.lists(st.one_of(pieces, anywhere), min_size=1, max_size=4)
names = st.text(CHARS, min_size=1, max_size=4).filter(lambda name: name not in {".", ".."})
paths = st.lists(names, min_size=1, max_size=4)


def text_of(pattern: list[list[Piece]]) -> str:
    return "/".join("".join(piece.text for piece in part) for part in pattern)


def part_fits(part: list[Piece], name: str) -> bool:
    if not part:
        return not name
    if part[0].kind == "*":
        return part_fits(part[1:], name) or (bool(name) and part_fits(part, name[1:]))
    return bool(name) and part[0].fits(name[0]) and part_fits(part[1:], name[1:])


def fits(pattern: list[list[Piece]], path: list[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0][0].kind == "**":
        if len(pattern) == 1:
            return bool(path)
        return any(fits(pattern[1:], path[skip:]) for skip in range(len(path) + 1))
    return bool(path) and part_fits(pattern[0], path[0]) and fits(pattern[1:], path[1:])


@calm
@given(patterns, paths)
def test_a_pattern_matches_what_a_plain_matcher_says(pattern: list[list[Piece]], path: list[str]) -> None:
    assert (matcher(text_of(pattern)).match("/".join(path)) is not None) == fits(pattern, path)


@calm
@given(patterns, paths)
def test_what_a_pattern_matches_lies_below_its_static_prefix(pattern: list[list[Piece]], path: list[str]) -> None:
    prefix = static_prefix(text_of(pattern))
    whole = "/".join(path)
    if matcher(text_of(pattern)).match(whole) and prefix:
        assert whole.startswith(f"{prefix}/")


@given(st.text(st.characters(blacklist_characters="*?[/"), min_size=1, max_size=20))
def test_a_path_without_magic_matches_itself_only(name: str) -> None:
    assert not has_magic(name)
    assert matcher(name).match(name)
    assert not matcher(name).match(f"{name}x")
    assert not matcher(name).match(f"x/{name}")


@settings(max_examples=200, deadline=None)
@given(st.text("a-[]!^&|~\\*?z+", max_size=10))
def test_any_text_is_a_pattern_without_a_warning(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher.__wrapped__(text)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.py", ["a.py", ".py"], ["a/b.py", "a.pyc"]),
        ("src/**", ["src/a", "src/a/b"], ["src", "srcs/a"]),
        ("**/a", ["a", "b/a", "c/b/a"], ["ba", "a/b"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("**", ["a", "a/b"], []),
        ("dist/", ["dist"], ["dist/a"]),
        ("[!-a]", ["b", "1", "Z"], ["-", "a"]),
        ("[!]a]", ["b"], ["]", "a"]),
        ("[]]", ["]"], ["a"]),
        ("[z-a]", ["[z-a]"], ["z", "a"]),
        ("[ab", ["[ab"], ["a"]),
        ("a[--0]b", ["a-b", "a.b", "a0b"], ["a/b"]),
        ("[!a]", ["b"], ["/"]),
        ("caf\u00e9?", ["caf\u00e9s"], ["cafes"]),
        ("a\nb*", ["a\nb\n"], ["a"]),
    ],
)
def test_examples(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not matcher(pattern).match(path)] == []
    assert [path for path in no if matcher(pattern).match(path)] == []


rules = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), patterns), max_size=4)


@calm
@given(rules, paths, st.booleans())
def test_the_last_rule_that_matches_decides(
    drawn: list[tuple[bool, bool, bool, list[list[Piece]]]], path: list[str], folder: bool
) -> None:
    texts = []
    expected = False
    for keep, rooted, only_folders, pattern in drawn:
        text = text_of(pattern)
        if text.startswith("!"):
            continue  # that would be another rule
        texts.append(f"{'!' if keep else ''}{'/' if rooted else ''}{text}{'/' if only_folders else ''}")
        anchored = rooted or len(pattern) > 1
        matches = fits(pattern if anchored else [[Piece("**", "**")], *pattern], path)
        if matches and (folder or not only_folders):
            expected = not keep
    assert Excludes(tuple(texts)).excluded("/".join(path), folder=folder) == expected


def test_excludes_without_a_rule_are_false() -> None:
    assert not Excludes(())
    assert not Excludes(("", "/", "!"))
    assert Excludes(("a",))


@pytest.mark.parametrize(
    ("patterns", "path", "folder", "excluded"),
    [
        (("node_modules/",), "a/node_modules", True, True),
        (("node_modules/",), "a/node_modules", False, False),
        (("/build",), "a/build", True, False),
        (("a/build",), "a/build", True, True),
        (("*.o", "!keep.o"), "x/keep.o", False, False),
        (("!keep.o", "*.o"), "x/keep.o", False, True),
    ],
)
def test_excludes_like_gitignore(patterns: tuple[str, ...], path: str, folder: bool, excluded: bool) -> None:
    assert Excludes(patterns).excluded(path, folder=folder) is excluded


_PATHS = st.lists(st.text("abc", min_size=1, max_size=5), min_size=1, max_size=6).map("/".join)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 20 + "b", "a" * 500),
        ("**/a/" * 10 + "b", "a/" * 500 + "c"),
        ("**/*a*/" * 6 + "*b", "/".join(["aaa"] * 200)),
        ("**/" * 40 + "b", "/".join(["a"] * 500)),
        ("[a-z]*" * 12 + "!", "a" * 500),
        ("*" * 60 + "b", "a" * 5000),
    ],
)
def test_no_pattern_takes_for_ever(pattern: str, path: str) -> None:
    """A job file or an input may come from anybody; tried in a process that can be ended, which this one could not."""
    match = f"matcher({pattern!r}).match({path!r})"
    text = f"import sys; from checkpoint_action.runner.globs import matcher; sys.exit({match} is not None)"
    done = subprocess.run([sys.executable, "-c", text], timeout=120, check=False)
    assert done.returncode == 0


@given(st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "/", "/**/", "**"]), max_size=12).map("".join), _PATHS)
@settings(max_examples=400)
def test_stars_match_what_trying_every_place_matches(pattern: str, path: str) -> None:
    assert bool(matcher(pattern).match(path)) == _tries(pattern.rstrip("/").split("/"), path.split("/"))


def _tries(parts: list[str], names: list[str]) -> bool:
    """Whether the parts of a pattern fit the parts of a path, found by trying."""
    if not parts or not names:
        return not parts and not names
    if parts[0] == "**":
        if len(parts) == 1:
            return True
        return _tries(parts[1:], names) or _tries(parts, names[1:])
    return _part_tries(parts[0], names[0]) and _tries(parts[1:], names[1:])


def _part_tries(part: str, name: str) -> bool:
    if not part:
        return not name
    if part[0] == "*":
        return _part_tries(part[1:], name) or (bool(name) and _part_tries(part, name[1:]))
    if not name:
        return False
    width, fits = (4, name[0] in "ab") if part.startswith("[ab]") else (1, part[0] in ("?", name[0]))
    return fits and _part_tries(part[width:], name[1:])
