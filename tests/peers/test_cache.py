"""The Actions cache both ways with the official client, which also shows that the loopback service is what it takes."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.toolkit.blob import DownloadPlan, UploadPlan
from checkpoint_action.toolkit.cache import Cache, cache_version
from checkpoint_action.toolkit.errors import DeniedError, ReservedError
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, Fault, make_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.peers.npm import Node

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform == "win32", reason="the archives are made with GNU or BSD tar and zstd"),
]

KINDS = ["v2", "v1", "act"]
both = pytest.mark.parametrize("kind", ["v2", "v1"])
every = pytest.mark.parametrize("kind", KINDS)
PATHS = ["out", "single.bin"]


class Official:
    """The official client in a job of the service.

    :param workspace: what it takes paths to be relative to.
    """

    def __init__(self, node: Node, env: dict[str, str], workspace: Path) -> None:
        self._node = node
        self._env = {**env, "GITHUB_WORKSPACE": str(workspace)}
        self.workspace = workspace
        self.stdout = ""

    def outcomes(self, *calls: list[Any], **env: str) -> list[dict[str, Any]]:
        """Make calls one after the other and return the ``value`` or the ``error`` of each."""
        answer = self._node.run("cache.mjs", calls, env=self._env | env, cwd=self.workspace, timeout=300)
        assert answer.error is None, answer
        self.stdout = answer.stdout
        outcomes = answer.value
        assert isinstance(outcomes, list)
        return outcomes

    def call(self, method: str, *arguments: Any, **env: str) -> Any:
        """Make one call.

        :raises AssertionError: it failed.
        """
        (outcome,) = self.outcomes([method, *arguments], **env)
        assert "error" not in outcome, outcome
        return outcome.get("value")


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as running:
        yield running


@pytest.fixture
def ours(service: ActionsService) -> Iterator[Callable[..., Cache]]:
    http = HttpClient(env={})

    def make(kind: str, token: str | None = None) -> Cache:
        runtime = Runtime.resolve(service.env(kind, token=token))
        return Cache(runtime, http, plan=UploadPlan(100_000, 50_000, 3), fetch_plan=DownloadPlan(40_000, 3))

    yield make
    http.close()


@pytest.fixture
def official(node: Node, service: ActionsService, tmp_path: Path) -> Callable[..., Official]:
    def make(kind: str, workspace: str = "workspace", token: str | None = None) -> Official:
        if kind == "act":
            service.v1.manner = "act"
        folder = tmp_path / workspace
        folder.mkdir(exist_ok=True)
        return Official(node, service.env(kind, token=token), folder)

    return make


def fill(workspace: Path) -> None:
    out = workspace / "out"
    (out / "empty").mkdir(parents=True)
    (out / "nested").mkdir()
    (out / "nested" / "grün.bin").write_bytes(random.Random(1).randbytes(300_000))
    (out / ".hidden").write_bytes(b"")
    (out / "run.sh").write_bytes(b"#!/bin/sh\n")
    (out / "run.sh").chmod(0o755)
    (out / "link").symlink_to("nested/grün.bin")
    (workspace / "single.bin").write_bytes(b"x" * 5000)


def tree(workspace: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(workspace.rglob("*")):
        name = path.relative_to(workspace).as_posix()
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_file():
            found[name] = (path.read_bytes(), path.stat().st_mode, path.stat().st_mtime_ns)
        else:
            found[name] = path.stat().st_mode
    return found


def pack(workspace: Path, archive: Path) -> str:
    """Make the archive that the official client would make of ``PATHS``, and return its compression's name."""
    program, word = (["zstd"], "zstd-without-long") if shutil.which("zstd") else (["gzip"], "gzip")
    command = ["tar", "-cf", str(archive), "-P", "-C", str(workspace), "--use-compress-program", *program, *PATHS]
    if sys.platform == "linux":
        command.insert(1, "--posix")
    subprocess.run(command, check=True)
    return word


@every
def test_what_the_official_client_saves_it_restores(official: Callable[..., Official], kind: str) -> None:
    client = official(kind)
    fill(client.workspace)
    before = tree(client.workspace)
    saved, missed = client.outcomes(["saveCache", PATHS, "key-1"], ["restoreCache", PATHS, "other"])
    assert saved["value"] > 0, client.stdout
    assert "value" not in missed
    shutil.rmtree(client.workspace)
    client.workspace.mkdir()
    assert client.call("restoreCache", PATHS, "missing", ["key-"]) == "key-1"
    assert tree(client.workspace) == before


@every
def test_what_the_official_client_saves_ours_fetches_and_unpacks(
    official: Callable[..., Official], ours: Callable[..., Cache], kind: str, tmp_path: Path
) -> None:
    client = official(kind)
    fill(client.workspace)
    assert client.call("saveCache", PATHS, "key-1") > 0
    word = "zstd-without-long" if shutil.which("zstd") else "gzip"
    cache = ours(kind)
    hit = cache.lookup(["key-"], cache_version(PATHS, word))
    assert hit is not None
    assert (hit.key, hit.exact) == ("key-1", False)
    archive = tmp_path / "archive"
    length = cache.download(hit, archive)
    assert archive.read_bytes().startswith(b"\x1f\x8b" if word == "gzip" else b"\x28\xb5\x2f\xfd")
    assert cache.read_range(hit, 0, 4).total == length
    again = tmp_path / "again"
    again.mkdir()
    unpacker = "unzstd" if word != "gzip" else "gunzip"
    subprocess.run(["tar", "-xf", str(archive), "-P", "-C", str(again), "--use-compress-program", unpacker], check=True)
    assert tree(again) == tree(client.workspace)


@every
@pytest.mark.parametrize("in_pieces", [False, True])
def test_what_ours_saves_the_official_client_restores(
    official: Callable[..., Official], ours: Callable[..., Cache], kind: str, in_pieces: bool, tmp_path: Path
) -> None:
    client = official(kind, "other")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    fill(workspace)
    archive = tmp_path / "archive"
    version = cache_version(PATHS, pack(workspace, archive))
    cache = ours(kind)
    if in_pieces:
        data = archive.read_bytes()
        with cache.begin("key-1", version) as entry:
            rest = entry.put(data[100:])
            entry.finish([entry.put(data[:100]), rest])
    else:
        cache.save("key-1", version, archive)
    assert client.call("restoreCache", PATHS, "key-1") == "key-1", client.stdout
    assert tree(client.workspace) == tree(workspace)


@both
def test_a_key_is_taken_for_both(
    official: Callable[..., Official], ours: Callable[..., Cache], kind: str, tmp_path: Path
) -> None:
    client = official(kind)
    fill(client.workspace)
    archive = tmp_path / "archive"
    version = cache_version(PATHS, pack(client.workspace, archive))
    ours(kind).save("ours", version, archive)
    taken, saved = client.outcomes(["saveCache", PATHS, "ours"], ["saveCache", PATHS, "theirs"])
    assert taken["value"] == -1
    assert "another job may be creating this cache" in client.stdout
    assert saved["value"] > 0
    with pytest.raises(ReservedError):
        ours(kind).save("theirs", version, archive)


@both
def test_both_are_denied_in_the_same_words(
    official: Callable[..., Official], ours: Callable[..., Cache], kind: str, tmp_path: Path
) -> None:
    reader, writer = make_token([("refs/heads/main", 1)]), make_token([("refs/heads/main", 2)])
    client = official(kind, token=reader)
    fill(client.workspace)
    assert client.call("saveCache", PATHS, "key-1") == -1
    assert "cache write denied: token has no writable scopes" in client.stdout
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(DeniedError, match="cache write denied: token has no writable scopes"):
        ours(kind, reader).save("key-1", "a" * 64, tmp_path / "file")
    client = official(kind, token=writer)
    assert client.call("restoreCache", PATHS, "key-1") is None
    assert "cache read denied: token has no readable scopes" in client.stdout
    with pytest.raises(DeniedError, match="cache read denied: token has no readable scopes"):
        ours(kind, writer).lookup(["key-1"], "a" * 64)


@both
@pytest.mark.parametrize("mode", ["read", "write-only", "none"])
def test_the_cache_mode_keeps_the_official_client_quiet_too(
    service: ActionsService, official: Callable[..., Official], kind: str, mode: str
) -> None:
    client = official(kind)
    fill(client.workspace)
    outcomes = client.outcomes(["restoreCache", PATHS, "key-1"], ["saveCache", PATHS, "key-1"], ACTIONS_CACHE_MODE=mode)
    assert [outcome.get("value") for outcome in outcomes] == [None, -1 if mode != "write-only" else 1]
    lookups = service.calls["GetCacheEntryDownloadURL"] + service.calls["lookup"]
    writes = service.calls["CreateCacheEntry"] + service.calls["reserve"]
    assert (lookups, writes) == (mode == "read", mode == "write-only")


def test_a_passing_fault_is_overcome_by_the_official_client(
    service: ActionsService, official: Callable[..., Official]
) -> None:
    client = official("v2")
    fill(client.workspace)
    service.faults.next("CreateCacheEntry", Fault.status(503))
    service.faults.next("FinalizeCacheEntryUpload", Fault.not_json())
    service.faults.next("PutBlob", Fault.status(500))
    assert client.call("saveCache", PATHS, "key-1") > 0, client.stdout


@both
def test_an_archive_of_many_blocks_goes_both_ways(
    service: ActionsService, official: Callable[..., Official], ours: Callable[..., Cache], kind: str, tmp_path: Path
) -> None:
    client = official(kind)
    (client.workspace / "single.bin").write_bytes(os.urandom(129 << 20))  # the client cuts from 128 MiB on
    word = "zstd-without-long" if shutil.which("zstd") else "gzip"
    (client.workspace / "out").mkdir()
    assert client.call("saveCache", PATHS, "key-1") > 0, client.stdout
    assert service.calls["PutBlock"] > 1 or service.calls["chunk"] > 1
    cache = ours(kind)
    hit = cache.lookup(["key-1"], cache_version(PATHS, word))
    assert hit is not None
    archive = tmp_path / "archive"
    assert cache.download(hit, archive) > 129 << 20
    service.requests.clear()
    cache.save("ours", cache_version(PATHS, word), archive)
    other = official(kind, "other")
    assert other.call("restoreCache", PATHS, "ours") == "ours"
    assert (other.workspace / "single.bin").read_bytes() == (client.workspace / "single.bin").read_bytes()
