"""Records, layers and entries survive JSON, and what is not one of them is named."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.model import ArchiveRef, Entry, Layer, Partial, Record, Status, Values
from checkpoint_action.store import codec

calm = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
paths = st.binary(min_size=1, max_size=12).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
digests = st.text("0123456789abcdef", min_size=64, max_size=64)
finite = st.floats(allow_nan=False, allow_infinity=False)
seconds = st.floats(0, 1e9)
plain = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=12)
entries = st.builds(
    Entry,
    path=paths,
    type=st.sampled_from(["file", "dir", "link"]),
    mode=st.integers(0, 0o7777),
    mtime_ns=st.integers(-(1 << 63), (1 << 63) - 1),
    size=st.integers(0, 1 << 60),
    sha256=st.one_of(st.just(""), digests),
    target=st.one_of(st.just(""), paths),
)
layers = st.builds(
    Layer,
    entries=st.lists(entries, max_size=3).map(tuple),
    deleted=st.lists(paths, max_size=3).map(tuple),
    before=st.dictionaries(paths, paths, max_size=3),
)
archives = st.builds(ArchiveRef, key=plain, layer=plain)
records = st.builds(
    Record,
    step=texts,
    status=st.sampled_from(Status),
    fingerprint=digests,
    command=texts,
    parts=st.dictionaries(texts, texts, max_size=3),
    exit_code=st.none() | st.integers(-255, 255),
    signal=st.none() | st.integers(1, 64),
    tries=st.integers(0, 99),
    started=finite,
    duration=seconds,
    error=texts,
    layer=layers,
    result=digests,
    log=texts,
    archive=st.none() | archives,
    values=st.builds(
        Values,
        env=st.dictionaries(texts, paths, max_size=2),
        path=st.lists(paths, max_size=2).map(tuple),
        outputs=st.dictionaries(texts, paths, max_size=2),
        summary=texts,
    ),
    withheld=st.lists(texts, max_size=2).map(tuple),
    partial=st.none() | st.builds(Partial, workspace=layers, folder=layers, archive=archives),
)
ENTRY = {"path": "a", "type": "file", "mode": "0644", "mtime_ns": 5, "size": 1, "sha256": "ab" * 32}
RECORD = {"step": "build", "status": "done", "fingerprint": "f", "command": "make"}


@calm
@given(records)
def test_any_record_comes_back_from_ascii_json(record: Record) -> None:
    text = json.dumps(codec.record_to_json(record), ensure_ascii=True)
    assert text.isascii()
    assert codec.record_from_json(json.loads(text)) == record


@calm
@given(layers)
def test_any_layer_comes_back(layer: Layer) -> None:
    assert codec.layer_from_json(json.loads(json.dumps(codec.layer_to_json(layer)))) == layer


def test_bytes_that_are_not_utf_8_survive() -> None:
    name = b"caf\xe9 \xff".decode("utf-8", "surrogateescape")
    text = json.dumps(codec.entry_to_json(Entry(name, "link", 0o777, 0, target=name)), ensure_ascii=True)
    back = codec.entry_from_json(json.loads(text))
    assert back.path.encode("utf-8", "surrogateescape") == b"caf\xe9 \xff" == os.fsencode(back.target)


def test_fields_that_equal_their_default_are_left_out() -> None:
    assert codec.entry_to_json(Entry("d", "dir", 0o755, 7)) == {
        "path": "d",
        "type": "dir",
        "mode": "0755",
        "mtime_ns": 7,
    }
    assert codec.layer_to_json(Layer()) == {}
    assert codec.record_to_json(Record("build", Status.DONE, "f", "make")) == RECORD


def test_an_exit_code_of_zero_is_not_the_default() -> None:
    value = codec.record_to_json(Record("build", Status.DONE, "f", "make", exit_code=0))
    assert value["exit_code"] == 0
    assert codec.record_from_json(value).exit_code == 0


def test_unknown_keys_are_ignored_for_a_later_version() -> None:
    value = {**RECORD, "colour": "green", "layer": {"entries": [{**ENTRY, "xattrs": {}}], "moved": []}}
    assert codec.record_from_json(value).layer.entries[0].path == "a"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"path": None}, r"entry\.path"),
        ({"path": ""}, r"entry\.path"),
        ({"type": "fifo"}, r"entry\.type"),
        ({"mode": 420}, r"entry\.mode"),
        ({"mode": "0o644"}, r"entry\.mode"),
        ({"mode": "0648"}, r"entry\.mode"),
        ({"mode": "0644\n"}, r"entry\.mode"),
        ({"mtime_ns": 1.5}, r"entry\.mtime_ns"),
        ({"mtime_ns": True}, r"entry\.mtime_ns"),
        ({"size": -1}, r"entry\.size"),
        ({"size": "1"}, r"entry\.size"),
        ({"sha256": "AB" * 32}, r"entry\.sha256"),
        ({"sha256": "ab"}, r"entry\.sha256"),
        ({"target": []}, r"entry\.target"),
    ],
)
def test_a_bad_field_of_an_entry_is_named(change: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=field):
        codec.entry_from_json({**ENTRY, **change})


@pytest.mark.parametrize("name", ["path", "type", "mode", "mtime_ns"])
def test_a_missing_field_of_an_entry_is_named(name: str) -> None:
    value = {key: field for key, field in ENTRY.items() if key != name}
    with pytest.raises(ValueError, match=rf"entry\.{name}"):
        codec.entry_from_json(value)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"status": "finished"}, r"record\.status.*one of pending, running"),
        ({"status": 3}, r"record\.status"),
        ({"parts": {"a": 1}}, r"record\.parts"),
        ({"exit_code": "0"}, r"record\.exit_code"),
        ({"exit_code": False}, r"record\.exit_code"),
        ({"signal": 9.0}, r"record\.signal"),
        ({"tries": None}, r"record\.tries"),
        ({"started": "now"}, r"record\.started"),
        ({"started": float("nan")}, r"record\.started"),
        ({"started": float("-inf")}, r"record\.started"),
        ({"duration": 10**400}, r"record\.duration"),
        ({"duration": 10**5000}, r"record\.duration"),
        ({"duration": 1e9 + 1}, r"record\.duration: must be from 0 to 1000000000"),
        ({"duration": -0.1}, r"record\.duration"),
        ({"duration": float("nan")}, r"record\.duration"),
        ({"exit_code": 1 << 32}, r"record\.exit_code"),
        ({"exit_code": -(1 << 31) - 1}, r"record\.exit_code"),
        ({"signal": 256}, r"record\.signal"),
        ({"signal": -1}, r"record\.signal"),
        ({"tries": -1}, r"record\.tries"),
        ({"tries": 10**9 + 1}, r"record\.tries"),
        ({"layer": []}, r"record\.layer: must be an object, not list"),
        ({"layer": {"entries": {}}}, r"record\.layer\.entries"),
        ({"layer": {"entries": [ENTRY, {**ENTRY, "mode": "9"}]}}, r"record\.layer\.entries\[1\]\.mode"),
        ({"layer": {"deleted": ["a", 1]}}, r"record\.layer\.deleted\[1\]"),
        ({"layer": {"before": {"a": None}}}, r"record\.layer\.before"),
        ({"archive": {"key": "k"}}, r"record\.archive\.layer"),
        ({"archive": "k"}, r"record\.archive"),
        ({"archive": {"key": "a\nb", "layer": "l"}}, r"record\.archive\.key"),
        ({"archive": {"key": "\ud800", "layer": "l"}}, r"record\.archive\.key"),
        ({"archive": {"key": "k" * 513, "layer": "l"}}, r"record\.archive\.key"),
        ({"archive": {"key": "", "layer": "l"}}, r"record\.archive\.key"),
        ({"archive": {"key": "k", "layer": "\u00e9"}}, r"record\.archive\.layer"),
    ],
)
def test_a_bad_field_of_a_record_is_named(change: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=field) as caught:
        codec.record_from_json({**RECORD, **change})
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", [None, [], "record", 1])
def test_what_is_no_object_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"record: must be an object"):
        codec.record_from_json(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.slow
@calm
@given(
    st.dictionaries(
        st.sampled_from([*RECORD, "parts", "exit_code", "tries", "started", "layer", "archive"]), json_values
    )
)
def test_no_json_value_raises_anything_but_value_error(change: dict[str, object]) -> None:
    try:
        record = codec.record_from_json({**RECORD, **change})
    except ValueError:
        return
    assert codec.record_from_json(codec.record_to_json(record)) == record


def test_the_local_journal_can_use_it_without_zstd_or_http() -> None:
    code = (
        "import sys, checkpoint_action.store.codec\n"
        "heavy = {'urllib3', 'backports', 'compression.zstd', 'yaml', 'psutil', 'tarfile', 'http'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    # backports may be put there by an editable install's start-up file; it is zstd that counts
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() in ("[]", "['backports']")
