"""Archives in artifacts, seen by the official client: it lists and downloads them, and finds our archive inside."""

from __future__ import annotations

import hashlib
import random
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.store.base import FilePart, Found
from checkpoint_action.store.github_artifact import ENTRY, GithubArtifactStore
from checkpoint_action.toolkit import artifact_stored
from checkpoint_action.toolkit.artifact import ArtifactClient
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.peers.npm import Node

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONTENTS = {
    "empty": b"",
    "short": b"x",
    "like a zip": b"PK\x03\x04" * 9 + b"PK\x05\x06" + bytes(18) + b"PK\x07\x08",
    "large": random.Random(1).randbytes(20_000_001),
}


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as running:
        yield running


@pytest.fixture
def store(service: ActionsService) -> GithubArtifactStore:
    return GithubArtifactStore(ArtifactClient(Runtime.resolve(service.env()), HttpClient(env={})), retention_days=7)


def official(node: Node, service: ActionsService, *calls: list[Any]) -> list[Any]:
    """What the official client answers to some calls."""
    answer = node.run("artifact.mjs", list(calls), env={**service.env(), "GITHUB_API_URL": service.rest.url})
    assert answer.error is None, answer
    assert not [outcome for outcome in answer.value if "error" in outcome], answer.value
    return [outcome["value"] for outcome in answer.value]


@pytest.mark.parametrize("wide", [False, True], ids=["32 bits", "64 bits"])
def test_the_official_client_finds_every_archive_byte_for_byte(
    node: Node,
    service: ActionsService,
    store: GithubArtifactStore,
    tmp_path: Path,
    wide: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Case: lengths in 64 bits, as archives above 4 GiB have them."""
    if wide:
        narrow = artifact_stored.stored_zip

        def stored_zip(name: str, size: int, crc: int) -> tuple[bytes, bytes]:
            return narrow(name, size, crc, wide_from=0)

        monkeypatch.setattr("checkpoint_action.store.github_artifact.stored_zip", stored_zip)
    keys = {f"cpr1-run7-job-build-7-1-00000{number}-0123abcd": data for number, data in enumerate(CONTENTS.values())}
    for number, (key, data) in enumerate(keys.items()):
        source = tmp_path / f"source-{number}"
        source.write_bytes(data)
        if number % 2:
            store.save(key, source)
            continue
        with store.begin(key) as entry:
            tail = entry.put(FilePart(source, len(data) // 2, len(data) - len(data) // 2))
            entry.finish([entry.put(data[: len(data) // 2]), tail])
    [listed] = official(node, service, ["listArtifacts"])
    ids = {one["name"]: one["id"] for one in listed["artifacts"]}
    assert ids.keys() == keys.keys()
    calls = [["downloadArtifact", ids[key], {"path": str(tmp_path / "theirs" / key)}] for key in keys]
    for outcome in official(node, service, *calls):
        assert not outcome.get("digestMismatch"), outcome
    for key, data in keys.items():
        assert [path.name for path in (tmp_path / "theirs" / key).iterdir()] == [ENTRY]
        theirs = (tmp_path / "theirs" / key / ENTRY).read_bytes()
        store.fetch(Found(key), tmp_path / "ours")
        wanted = hashlib.sha256(data).hexdigest()
        assert hashlib.sha256(theirs).hexdigest() == wanted
        assert hashlib.sha256((tmp_path / "ours").read_bytes()).hexdigest() == wanted
        assert store.read(Found(key), 3, 100) == data[3:103]


def test_an_archive_that_the_official_client_uploads_again_is_ours_all_the_same(
    node: Node, service: ActionsService, store: GithubArtifactStore, tmp_path: Path
) -> None:
    """Case: somebody downloads a checkpoint and uploads it: its zip is deflated then."""
    (tmp_path / ENTRY).write_bytes(CONTENTS["large"])
    official(node, service, ["uploadArtifact", "job-1", [str(tmp_path / ENTRY)], str(tmp_path)])
    assert store.find("job-") == Found("job-1")
    store.fetch(Found("job-1"), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == CONTENTS["large"]
