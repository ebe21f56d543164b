"""One of several processes that write to a store, read it and prune it at once; prints what it did.

``python -m tests.store.contender URL SECONDS NUMBER contested|apart``: whether all want one key, too
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from checkpoint_action.errors import StoreMissingError, StoreTakenError
from checkpoint_action.runner.keys import KeyScheme, job_slug
from checkpoint_action.store.bundle import END_FRAME, header_frame
from checkpoint_action.store.prune import prune
from checkpoint_action.store.urls import store_for

if TYPE_CHECKING:
    from checkpoint_action.store.layout import ListingStore

SHARED = job_slug("shared", "all")
KEPT = 3
_LARGE = 17 << 20


def archive(job: str, writer: int, size: int, needs: str = "") -> bytes:
    """An archive whose end tells whether it is whole."""
    records = {"first": {"archive": {"key": needs, "layer": "first"}}} if needs else {}
    body = header_frame({"job": job, "writer": writer, "records": records}) + os.urandom(size) + END_FRAME
    return body + hashlib.sha256(body).digest()


def is_whole(content: bytes) -> bool:
    """Whether it is all of an archive that :func:`archive` made."""
    return hashlib.sha256(content[:-32]).digest() == content[-32:]


def contend(store: ListingStore, folder: Path, seconds: float, number: int, *, contested: bool) -> None:
    rng = random.Random(number)
    mine = job_slug(f"mine{number}", number)
    own, shared = (KeyScheme("content", job, str(number + 1), "1") for job in (mine, SHARED))
    source, target = folder / "source", folder / "target"

    def save(key: str, content: bytes, word: str) -> None:
        source.write_bytes(content)
        store.save(key, source)
        print(word, key, number, flush=True)

    root = own.new("first", time.time_ns() // 1_000_000)
    save(root, archive(mine, number, 100), "root")
    end = time.monotonic() + seconds
    count = 0
    while time.monotonic() < end or count < 6:
        count += 1
        sequence = time.time_ns() // 1_000_000
        size = _LARGE if count == 2 else rng.choice([0, 10, 100_000, 300_000])
        save(own.new("second", sequence), archive(mine, number, size, root), "wrote")
        save(shared.new(f"step-{number}", sequence), archive(SHARED, number, size % _LARGE), "wrote")
        slot = int(2 * time.time())  # all want the same at the same time
        wanted = f"{shared.prefix}same-1-1-{500 * slot:013d}-{slot & 0xFFFFFFFF:08x}"
        if contested:
            try:
                save(wanted, archive(SHARED, number, 1000), "won")
            except StoreTakenError:
                print("lost", wanted, flush=True)
        for prefix in (own.prefix, shared.prefix, own.of_step("second")):
            found = store.find(prefix)
            assert found is not None, f"nothing under {prefix}"
            try:
                store.fetch(found, target)
                assert is_whole(target.read_bytes()), f"{found.key} is torn"
                size = target.stat().st_size
                assert store.read(found, size - 10, 100) == target.read_bytes()[-10:], f"{found.key} is torn"
            except StoreMissingError:
                print("missed", found.key, flush=True)
        if count % 2 == 0:
            done = prune(store, older_than=1.0, keep=KEPT, now=time.time())
            assert not done.failed or sys.platform == "win32", done.failed  # there nobody deletes what is being read
            for row in done.deleted:
                print("pruned", row.key, flush=True)


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        contend(
            store_for(sys.argv[1]),
            Path(name),
            float(sys.argv[2]),
            int(sys.argv[3]),
            contested=sys.argv[4] == "contested",
        )
