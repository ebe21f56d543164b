"""Secret values taken out of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.runner.redact import Redactor, secret_values

if TYPE_CHECKING:
    from collections.abc import Iterable

FEW_LETTERS = st.lists(st.sampled_from([b"a", b"b"]), max_size=6).map(b"".join)  # so that secrets overlap


def covered(values: Iterable[bytes], stream: bytes) -> bytes:
    """What may be seen of a stream, found one byte at a time."""
    spans: list[tuple[int, int]] = []
    for at in range(len(stream)):
        end = max((at + len(value) for value in values if stream.startswith(value, at)), default=at)
        if spans and at < spans[-1][1] < end:
            spans[-1] = (spans[-1][0], end)
        elif end > at and not (spans and at < spans[-1][1]):
            spans.append((at, end))
    seen, at = b"", 0
    for start, end in spans:
        seen += stream[at:start] + b"***"
        at = end
    return seen + stream[at:]


def redacted(values: tuple[bytes, ...], pieces: list[bytes]) -> bytes:
    out: list[bytes] = []
    redactor = Redactor(values, out.append)
    for piece in pieces:
        redactor.write(piece)
    redactor.close()
    return b"".join(out)


def test_lines_of_a_secret_are_hidden_one_by_one_and_empty_ones_not_at_all() -> None:
    env = {"KEY": "-----BEGIN\nabc\n\n-----END", "EMPTY": "", "OTHER": "x"}
    assert secret_values(["KEY", "EMPTY", "MISSING"], env) == (b"-----BEGIN", b"-----END", b"abc")


def test_a_secret_that_is_part_of_a_longer_one_leaves_nothing_of_it() -> None:
    assert redacted((b"abcdef", b"abc"), [b"x abc", b"def y abc z"]) == b"x *** y *** z"


def test_secrets_that_overlap_are_hidden_together() -> None:
    assert redacted((b"abcdefgh", b"efghijkl"), [b"xabcdef", b"ghijkly"]) == b"x***y"


def test_secrets_that_overlap_are_hidden_together_where_the_second_is_cut() -> None:
    assert redacted((b"abcdefgh", b"efghijkl"), [b"xabcdefgh", b"ijkly"]) == b"x***y"


def test_what_may_not_be_seen_still_shows_where_a_secret_begins() -> None:
    for unseen, seen in ((0, b"..***.."), (2, b"***.."), (4, b".."), (7, b"..")):
        out: list[bytes] = []
        redactor = Redactor((b"secret",), out.append, unseen=unseen)
        redactor.write(b"..sec")
        redactor.write(b"ret..")
        redactor.close()
        assert b"".join(out) == seen


def test_bytes_without_a_secret_pass_unchanged_and_whole() -> None:
    assert redacted((b"secret",), [b"sec", b"", b"re", b"\xff\x00"]) == b"secre\xff\x00"


@given(
    st.one_of(
        st.lists(st.binary(min_size=1, max_size=4), min_size=1, max_size=3),
        st.lists(FEW_LETTERS.filter(bool), min_size=1, max_size=3),
    ),
    st.lists(st.one_of(st.binary(max_size=6), FEW_LETTERS), max_size=8),
)
def test_however_it_is_cut_all_that_is_secret_is_hidden_and_nothing_else(
    values: list[bytes], pieces: list[bytes]
) -> None:
    ordered = tuple(sorted(set(values), key=lambda value: (-len(value), value)))
    stream = b"".join(pieces)
    assert redacted(ordered, pieces) == redacted(ordered, [stream]) == covered(ordered, stream)


@given(st.binary(min_size=3, max_size=6), st.lists(st.binary(max_size=5), max_size=6), st.data())
def test_a_secret_in_the_stream_never_comes_out(secret: bytes, around: list[bytes], data: st.DataObject) -> None:
    if secret in b"***" or b"*" in secret:
        return
    stream = secret.join(around)
    cut = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=5)))
    pieces = [stream[start:end] for start, end in zip([0, *cut], [*cut, len(stream)], strict=True)]
    assert secret not in redacted((secret,), pieces)
