"""Fuzzed: archives of a store and zips of artifacts, unpacked beside what must stay as it is, and names in stores."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import stat
import tempfile
import zipfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.errors import BundleError, StoreError, UsageError
from checkpoint_action.runner.archives import Archives
from checkpoint_action.runner.keys import KeyScheme, scheme_of
from checkpoint_action.runner.signing import signed
from checkpoint_action.runner.statefile import JournalReader, journal_line
from checkpoint_action.store import bundle, zstd
from checkpoint_action.store.apply import apply_layer
from checkpoint_action.store.base import Found
from checkpoint_action.store.bundle import header_frame
from checkpoint_action.store.bundle_pack import member_headers
from checkpoint_action.store.codec import layer_from_json, layer_to_json, record_to_json
from checkpoint_action.store.folder import FolderStore
from checkpoint_action.store.layout import age_in, common, folder_of, key_at, place
from checkpoint_action.store.paths import check_layer
from checkpoint_action.store.prune import prune
from checkpoint_action.store.tarstream import member_header, padding
from checkpoint_action.store.urls import store_for
from checkpoint_action.toolkit.artifact_messages import file_name
from checkpoint_action.toolkit.artifact_stored import entry_at
from checkpoint_action.toolkit.artifact_unzip import UnpackLimits, unpack
from checkpoint_action.toolkit.errors import ProtocolError
from tests.store.tars import BUILD, END, HEADER, frame
from tests.store.trees import layer_of, nothing_else
from tests.torture.fuzz_state import sample_records
from tests.torture.fuzz_target import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.model import Layer

__all__ = ["TARGETS"]

_BETWEEN = b"\n---\n"
_KEY = "cpr1-run-release-0123456789abcdef-build-1-1-000001-0123abcd"
_MOST = 1 << 20


class _Fence:
    """A folder to unpack into, with links that lead out of it, and all around it what must stay as it is."""

    def __init__(self, top: Path) -> None:
        self.work, self._outside = top / "work", top / "outside"
        self._top = top
        self._outside.mkdir()
        (self._outside / "canary").write_text("precious")
        (self._outside / "link").symlink_to("canary")
        self.root = self.work / "root"
        self.fresh()
        self._before = self._look()

    def fresh(self) -> None:
        """As it was in the beginning."""
        shutil.rmtree(self.work, ignore_errors=True)
        (self.root / "a").mkdir(parents=True)
        (self.root / "f").write_text("f")
        (self.root / "out").symlink_to("../../outside")
        (self.root / "a" / "canary").symlink_to("../../../outside/canary")

    def check(self) -> None:
        """Nothing happened outside, and inside is nothing that has powers."""
        assert self._look() == self._before, "something outside has changed"
        for at, folders, names in os.walk(self.work):
            for name in [*folders, *names]:
                mode = os.lstat(os.path.join(at, name)).st_mode
                assert stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode), f"a device or pipe: {name!r}"
                assert not mode & (stat.S_ISUID | stat.S_ISGID), f"setuid: {name!r}"

    def _look(self) -> list[tuple[str, int, int, bytes]]:
        found = [(name, 0, 0, b"") for name in sorted(os.listdir(self._top))]
        for name in sorted(os.listdir(self._outside)):
            info = os.lstat(self._outside / name)
            found.append((name, info.st_mode, info.st_mtime_ns, (self._outside / name).read_bytes()))
        return found


def _not_to_be_called(what: object) -> None:
    raise AssertionError(what)


def _manifest(folder: Path) -> Callable[[bytes], bool]:
    """What an archive says of itself. A ``{`` in front: the text of a header, else the archive."""
    store, fetched = FolderStore(folder / "store"), folder / "fetched"
    at, name = place(_KEY)
    path = folder / "store" / at / name
    path.parent.mkdir(parents=True)
    fetched.mkdir()
    keys = KeyScheme("run-1", "release-0123456789abcdef", "1", "1")

    def check(data: bytes) -> bool:
        path.write_bytes(_header_of(data) if data[:1] == b"{" else data)
        archives = Archives(
            *(store, keys, fetched),
            warn=_not_to_be_called,
            failed=_not_to_be_called,
            is_off=lambda: "",
            stop=None,
            seconds=20,
            signing_key=b"key" if data[-1:] == b" " else None,
        )
        state = archives.state_in(Found(_KEY))
        for left in fetched.iterdir():
            left.unlink()
        prune(store, older_than=0, keep=0, now=1e12, dry_run=True)
        if state is None:
            return False
        for record in state.records.values():
            check_layer(record.layer)
        reader = JournalReader(None, "journal")
        reader.read(b"".join(journal_line(number, record) for number, record in enumerate(state.records.values())))
        assert reader.records == state.records, "the journal does not take what an archive has told"
        return True

    return check


def _header_of(text: bytes) -> bytes:
    return zstd.compress(member_header(bundle.HEADER, "file", size=len(text)) + text + bytes(padding(len(text))))


def _manifest_seeds() -> list[bytes]:
    records = {record.step: record_to_json(record) for record in sample_records()}
    header = {"format": 1, "job": "release-0123456789abcdef", "records": records, "told": {"fetch": _KEY}}
    text = json.dumps(header).encode()
    sealed = json.dumps(signed(header, _KEY, b"key")).encode() + b" "
    return [text, sealed, header_frame(header), b"{}", b'{"format":1}']


def _archive(folder: Path) -> Callable[[bytes], bool]:
    """Archives, restored. In front: ``=`` a tar stream in good frames; ``{`` a manifest with all that belongs to it."""
    fence = _Fence(folder)
    sample = _sample(folder.parent / f"{folder.name}-sample")[1]

    def check(data: bytes) -> bool:
        layer = sample
        if data[:1] == b"=":
            data = HEADER + BUILD + frame(data[1:]) + frame(END)
        elif data[:1] == b"{":
            try:
                layer = _with_content(layer_from_json(json.loads(data)))
            except (ValueError, RecursionError, KeyError):
                return False
            try:
                data = HEADER + BUILD + frame(_stream(layer)) + frame(END)
            except (BundleError, OverflowError, ValueError, RecursionError, KeyError):  # no tar header could hold it
                return False
        packed = fence.work / "archive"
        packed.write_bytes(data)
        try:
            bundle.unpack_layer(packed, "build", layer, fence.work / "side")
            apply_layer(fence.work / "side", fence.root, layer, nothing_else)
        except BundleError:
            return False
        else:
            return True
        finally:
            fence.check()
            fence.fresh()

    return check


def _sample(folder: Path) -> tuple[bytes, Layer]:
    root = folder / "root"
    (root / "d" / "e").mkdir(parents=True)
    (root / "d" / "f").write_bytes(b"content")
    (root / "l").symlink_to("d/f")
    os.utime(root / "d" / "f", ns=(1, 1))
    layer = layer_of(root)
    bundle.pack_layer(root, "build", layer, folder / "layer")
    bundle.write_archive({"job": "demo"}, [folder / "layer"], folder / "archive")
    data = (folder / "archive").read_bytes()
    shutil.rmtree(folder)
    return data, layer


def _with_content(layer: Layer) -> Layer:
    """The layer with files of the size that it says, as far as that is little, and with their digests."""
    entries = []
    for entry in layer.entries:
        size = entry.size if entry.size < 1 << 16 else 1
        told = {"size": size, "sha256": hashlib.sha256(b"x" * size).hexdigest()} if entry.type == "file" else {}
        entries.append(replace(entry, **told))  # type: ignore[arg-type]  # both are as they must be
    return replace(layer, entries=tuple(entries))


def _stream(layer: Layer) -> bytes:
    parts = []
    for entry, header in member_headers("build", layer):
        parts += [header, b"x" * entry.size, bytes(padding(entry.size))]
    return b"".join(parts)


def _archive_seeds() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        whole, layer = _sample(Path(folder, "sample"))
    odd = {
        "entries": [
            {"path": "out/x", "type": "file", "mode": "4755", "mtime_ns": 1, "size": 3},
            {"path": "l", "type": "link", "mode": "0777", "mtime_ns": 1, "target": "../../outside"},
            {"path": "l/canary", "type": "file", "mode": "0644", "mtime_ns": 1, "size": 1},
            {"path": "a", "type": "dir", "mode": "2755", "mtime_ns": -1},
        ],
        "deleted": ["out", "a/canary", "f"],
        "before": {"out": "link:../../outside", "f": hashlib.sha256(b"f").hexdigest()},
    }
    tame = layer_to_json(layer) | {"deleted": ["f"], "before": {"f": hashlib.sha256(b"f").hexdigest()}}
    one = {"entries": [{"path": "a/x", "type": "file", "mode": "7777", "mtime_ns": 1, "size": 3}]}
    manifests = [json.dumps(value).encode() for value in (odd, tame, one)]
    return [whole, b"=" + _stream(_with_content(layer)), *manifests, whole[: len(whole) // 2]]


def _zip(folder: Path) -> Callable[[bytes], bool]:
    """Zips of artifacts; what is in front of a zip's first sign is a ``Content-Disposition``."""
    fence = _Fence(folder)
    limits = UnpackLimits(size=_MOST, entries=1000, directory=1 << 16)

    def check(data: bytes) -> bool:
        packed = fence.work / "zip"
        packed.write_bytes(data)
        name = file_name(data[:200].decode("latin-1"))
        assert "/" not in name, f"a name that is a path: {name!r}"
        assert name not in {".", ".."}
        with suppress(ProtocolError):
            entry_at(data[:256])
        try:
            unpack(packed, fence.root, limits=limits)
        except ProtocolError:
            return False
        else:
            return True
        finally:
            fence.check()
            fence.fresh()

    return check


def _zip_seeds() -> list[bytes]:
    made = []
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raw = io.BytesIO()
        with zipfile.ZipFile(raw, "w", method) as archive:
            for name in ("a/b", "f", "d/", "\u00e9", "../x", "out/y")[: 4 if method else 6]:
                info = zipfile.ZipInfo(name)
                info.external_attr, info.compress_type = 0o104755 << 16, method
                archive.writestr(info, b"" if name.endswith("/") else b"content" * 20)
        made.append(raw.getvalue())
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb", bytes(4 * _MOST))
    long = io.BytesIO()
    with zipfile.ZipFile(long, "w") as archive:
        archive.writestr("n" * 300, b"x")
        archive.writestr("d/" * 2500 + "x", b"x")
    return [*made, raw.getvalue(), long.getvalue(), b"attachment; filename*=utf-8''..%2fa%00; filename=\"a.zip\""]


def _layout(folder: Path) -> Callable[[bytes], bool]:
    """Names: as keys, as files in a store's folder, as URLs of stores. A line each."""
    root = folder / "store"

    def check(data: bytes) -> bool:
        names = data.decode("utf-8", "surrogateescape").split("\n")[:20]
        taken = [_as_key(name) for name in names]
        for name in names:
            with suppress(UsageError):
                store_for(name)
        root.mkdir()
        for number, name in enumerate(names):
            with suppress(OSError, ValueError):
                path = root / (name.strip("/").replace("..", "_") or "_")
                if number % 5 == 0:
                    path.symlink_to("/etc")
                elif number % 5 == 1:
                    path.mkdir(parents=True)
                else:
                    path.write_bytes(b"x")
        store = FolderStore(root)
        with suppress(StoreError):
            rows = store.entries()
            assert all(place(row.key) for row in rows)
            store.find_each([name for name in names if name])
            prune(store, older_than=0, keep=1, now=1e12)
        shutil.rmtree(root)
        return any(taken)

    return check


def _as_key(name: str) -> bool:
    folder_of(name)
    age_in(name)
    common([name, name[:5]])
    scheme_of(name)
    try:
        folder, file = place(name)
    except StoreError:
        return False
    assert key_at(folder, file) == name, "a key that is another one when it is read again"
    assert "/" not in folder + file, "a key that is a path"
    assert file not in {".", ".."}
    return True


_MANIFEST_WORDS = [b'"archive":{"key":"k","layer":"l"}', b'"told":', b'"sources":', b'"partial":']
_ARCHIVE_WORDS = [
    *(b"../", b"out/", b"/etc/", b'"deleted":["out"]', b'"type":"link"', b'"mode":"6777"'),
    *(b"\x28\xb5\x2f\xfd", b"\x5c\x2a\x4d\x18"),
]
_ZIP_WORDS = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06", b"PK\x06\x06", b"../", b"out/", b"filename="]
_LAYOUT_WORDS = [
    *(b"-0123456789abcdef-", b".tar.zst", b"cpr1-", b"../", b"s3://", b"file://", b"~-", b"-1-1-000001-0123abcd"),
]
_NAMES = [
    _KEY.encode() + b"\n" + _KEY.encode() + b".tar.zst\na/b\n.cpr-x",
    b"file:///a\ns3://b/c\ngs://x?y\naz://a@b/c",
]

TARGETS = (
    Target("manifest", _manifest, _manifest_seeds, _MANIFEST_WORDS),
    Target("archive", _archive, _archive_seeds, _ARCHIVE_WORDS),
    Target("zip", _zip, _zip_seeds, _ZIP_WORDS),
    Target("layout", _layout, lambda: _NAMES, _LAYOUT_WORDS),
)
