"""Secrets are found in the forms in which logs show them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from checkpoint_action.runner.disguises import CREDENTIALS, LONGEST_ENCODED, disguised
from checkpoint_action.runner.redact import Redactor

SECRETS = st.text(st.characters(exclude_characters="*\r\n", exclude_categories=["Cs"]), min_size=4, max_size=40)
TOKEN = "abcdefghij0123456789KLMNOPQRSTUVWXYZ"


def redacted(values: list[str], pieces: list[bytes]) -> bytes:
    out: list[bytes] = []
    redactor = Redactor((), out.append, patterns=[*disguised(values), *CREDENTIALS])
    for piece in pieces:
        redactor.write(piece)
    redactor.close()
    return b"".join(out)


def cut(stream: bytes, at: list[int]) -> list[bytes]:
    places = sorted(min(place, len(stream)) for place in at)
    return [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]


def core(secret: bytes, before: bytes, behind: bytes) -> bytes:
    """What of the base64 text is made of the secret alone: it is the same whatever is around."""
    one = base64.b64encode(before + secret + behind)
    other = base64.b64encode(bytes(byte ^ 255 for byte in before) + secret + bytes(byte ^ 255 for byte in behind))
    same = [char == there for char, there in zip(one, other, strict=True)]
    first = next(at for at in range(len(before) * 4 // 3, len(one)) if same[at])
    last = next((at for at in range(first, len(one)) if not same[at]), len(one))
    return one[first:last].rstrip(b"=")


CUTS = st.lists(st.integers(0, 400), max_size=8)


@given(SECRETS, st.binary(max_size=8), CUTS)
def test_a_secret_never_remains_in_plain_or_percent_encoded(secret: str, around: bytes, cuts: list[int]) -> None:
    secret = " ".join(secret.split())
    assume(len(secret) >= 4 and len(secret.splitlines()) == 1)
    lower = "".join(f"%{byte:02x}" if not chr(byte).isalnum() or byte > 127 else chr(byte) for byte in secret.encode())
    forms = [secret, quote(secret), quote(secret, safe=""), quote_plus(secret), lower]
    if secret.isascii() and secret.isprintable():
        forms += [json.dumps(secret)[1:-1], secret.replace("/", "\\/")]
    stream = around.join(form.encode() for form in ["", *forms, ""])
    seen = redacted([secret], cut(stream, cuts))
    for form in forms:
        assert form.encode() not in seen, form
    assert seen == redacted([secret], [stream])


@pytest.mark.parametrize("secret", ["abc%", "%ab%", "a%25", "a%2", "a b%", "/%\\"])
def test_nothing_remains_of_a_percent_sign_at_the_end(secret: str) -> None:
    for form in (secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]):
        assert redacted([secret], [b"x ", form.encode(), b" y"]) == b"x *** y", form


@settings(max_examples=200)
@given(SECRETS, st.binary(max_size=5), st.binary(max_size=5), st.sampled_from([0, 20, 64, 76]), st.booleans(), CUTS)
def test_a_secret_never_remains_in_base64(
    secret: str, before: bytes, behind: bytes, width: int, url: bool, cuts: list[int]
) -> None:
    secret = " ".join(secret.split())
    assume(len(secret) >= 4 and len(secret.splitlines()) == 1)
    text = base64.b64encode(before + secret.encode() + behind).decode()
    kept = core(secret.encode(), before, behind).decode()
    if url:
        text, kept = (part.replace("+", "-").replace("/", "_") for part in (text, kept))
    lines = [text[at : at + (width or 999)] for at in range(0, len(text), width or 999)]
    stream = "\r\n".join(lines).encode()
    seen = redacted([secret], cut(stream, cuts))
    assert len(kept) >= 4
    assert kept.encode() not in seen.replace(b"\r\n", b"")
    assert len(seen.replace(b"***", b"").translate(None, b"\r\n=")) <= len(text.rstrip("=")) - len(kept)
    assert seen == redacted([secret], [stream])


def test_base64_without_its_padding_leaves_nothing() -> None:
    for secret in ("abcd", "abcde", "abcdef"):
        text = base64.b64encode(secret.encode()).rstrip(b"=")
        assert redacted([secret], [b"<" + text + b">"]) == b"<***>"


def test_each_line_of_a_secret_is_hidden_also_where_the_whole_is_encoded() -> None:
    key = "-----BEGIN KEY-----\nMIIEowIBAAKCAQEA7x\nb2+c/dE=\n-----END KEY-----"
    assert redacted([key], [key.replace("\n", "\r\n").encode()]) == b"***\r\n***\r\n***\r\n***"
    seen = redacted([key], [base64.encodebytes(key.encode())])
    assert len(seen.replace(b"***", b"")) < 12
    assert redacted([key], [quote(key).encode()]) == b"***%0A***%0A***%0A***"


def test_a_long_secret_is_hidden_as_it_is_and_up_to_its_limit_in_base64() -> None:
    secret = "".join(chr(33 + (at * at) % 90) for at in range(LONGEST_ENCODED))
    for text in (secret, quote(secret, safe="")):
        assert not redacted([secret], [text.encode()]).strip(b"*")
    assert redacted([secret], [base64.encodebytes(secret.encode())]).strip(b"*\n") in (b"", b"=", b"==")
    assert not redacted([secret * 3], [(secret * 3).encode()]).strip(b"*")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (f"a ghs_{TOKEN} b", "a *** b"),
        (f"ghp_{TOKEN}", "***"),
        (f"ghs_123_{'eyJ' + TOKEN}.{'eyJ' + TOKEN}.{TOKEN * 4}!", "***!"),
        (f"github_pat_11ABC_{TOKEN},", "***,"),
        (f"token eyJ{TOKEN}.eyJ{TOKEN}.{TOKEN};", "token ***;"),
        ("> Authorization: Bearer abc.def\r\n> Accept: */*", "> Authorization: ***\r\n> Accept: */*"),
        ("authorization=Basic eDp5\nnext", "authorization=***\nnext"),
        ('{"Authorization": "token x"}', '{"Authorization": ***'),
        ("https://x.example/a?sv=1&sig=abc%2Fdef%3D&se=2", "https://x.example/a?sv=1&sig=***&se=2"),
        ("u%3Fsig%3Dabc%252F", "u%3Fsig%3D***"),
        ("?X-Amz-Credential=AKIA%2F1&X-Amz-Date=2&X-Amz-Security-Token=t&X-Amz-Signature=ab12 ok",
         "?X-Amz-Credential=***&X-Amz-Date=2&X-Amz-Security-Token=***&X-Amz-Signature=*** ok"),
        ("?GoogleAccessId=a&Signature=b%2B&Expires=1", "?GoogleAccessId=a&Signature=***&Expires=1"),
        ("https://raw.example/f?token=ABC&x=1", "https://raw.example/f?token=***&x=1"),
        ("clone https://x-access-token:pass:word@github.com/o/r", "clone https://x-access-token:***@github.com/o/r"),
        ("http://localhost:8080/a@b and me@example.com", "http://localhost:8080/a@b and me@example.com"),
        ("::add-mask::a%25b\nx", "::add-mask::***\nx"),
        ("ghs_short design=1 eyJ.eyJ.x", "ghs_short design=1 eyJ.eyJ.x"),
    ],
)  # fmt: skip
def test_credentials_are_known_by_their_look_wherever_they_are_cut(text: str, seen: str) -> None:
    stream = text.encode()
    for place in range(len(stream) + 1):
        assert redacted([], [stream[:place], stream[place:]]) == seen.encode()
    assert redacted([], [stream[at : at + 1] for at in range(len(stream))]) == seen.encode()


@pytest.mark.parametrize("pattern", CREDENTIALS, ids=lambda pattern: pattern.regex.pattern[:20].decode())
def test_no_credential_is_longer_than_what_is_held_back(pattern: object) -> None:
    import re  # noqa: PLC0415

    assert hasattr(pattern, "regex")
    parser = re._parser if hasattr(re, "_parser") else re.sre_parse  # type: ignore[attr-defined]
    assert parser.parse(pattern.regex.pattern).getwidth()[1] <= pattern.longest  # type: ignore[attr-defined]
    before = pattern.regex.pattern.rpartition(b"([^")[0] if pattern.regex.groups else b""
    if before:
        assert parser.parse(before).getwidth()[1] <= pattern.lead  # type: ignore[attr-defined]


@given(
    st.lists(st.sampled_from([b"sig=", b"ghs_", TOKEN.encode(), b"&", b"\n", b"abcd", b"YWJj", b"Authorization: "])),
    CUTS,
)
def test_however_it_is_cut_the_result_is_that_of_the_whole(parts: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(parts)
    assert redacted(["abcd", "cdab", "=abc"], cut(stream, cuts)) == redacted(["abcd", "cdab", "=abc"], [stream])
