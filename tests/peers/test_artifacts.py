"""Artifacts both ways with the official client: what one uploads, the other lists, downloads, unpacks and deletes."""

from __future__ import annotations

import json
import os
import random
import sys
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.toolkit.artifact import ArtifactClient, FindBy
from checkpoint_action.toolkit.artifact_zip import zip_entries, zip_pieces
from checkpoint_action.toolkit.errors import InputError, MissingEntryError, QuotaError, ReservedError, UnavailableError
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.peers.npm import Node

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

REPOSITORY = {"repositoryOwner": "octo", "repositoryName": "demo", "token": "rest-token", "workflowRunId": 1}


class Official:
    """The official client in a job of the service."""

    def __init__(self, node: Node, service: ActionsService) -> None:
        self._node = node
        self._env = {**service.env(), "GITHUB_API_URL": service.rest.url}

    def outcomes(self, *calls: list[Any], **env: str) -> list[dict[str, Any]]:
        """Make calls one after the other and return the ``value`` or the ``error`` of each."""
        answer = self._node.run("artifact.mjs", calls, env=self._env | env)
        assert answer.error is None, answer
        outcomes = answer.value
        assert isinstance(outcomes, list)
        return outcomes

    def call(self, method: str, *arguments: Any) -> Any:
        """Make one call.

        :raises AssertionError: it failed.
        """
        (outcome,) = self.outcomes([method, *arguments])
        assert "error" not in outcome, outcome
        return outcome["value"]

    def failure(self, method: str, *arguments: Any, **env: str) -> dict[str, str]:
        """Make one call that fails, and return its error."""
        (outcome,) = self.outcomes([method, *arguments], **env)
        assert "error" in outcome, outcome
        error = outcome["error"]
        assert isinstance(error, dict)
        return error


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as running:
        yield running


@pytest.fixture
def official(node: Node, service: ActionsService) -> Official:
    return Official(node, service)


@pytest.fixture
def ours(service: ActionsService) -> Iterator[ArtifactClient]:
    http = HttpClient(env={})
    yield ArtifactClient(Runtime.resolve(service.env()), http)
    http.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with what is easily lost: empty and large files, modes, spaces, letters of other alphabets."""
    root = tmp_path / "tree"
    contents = {
        "a.txt": b"hello\n",
        "empty": b"",
        "deep/er/run.sh": b"#!/bin/sh\nexit 0\n",
        "deep/zeros": bytes(3_000_000),
        "deep/noise": random.Random(1).randbytes(20_000_000),
        "with space/grün ✓.log": "ü".encode() * 1000,
        ".hidden": b"h",
    }
    for name, content in contents.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (root / "deep/er/run.sh").chmod(0o755)
    return root


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def files(root: Path) -> list[str]:
    return [str(path) for path in sorted(root.rglob("*")) if path.is_file()]


@pytest.mark.parametrize("level", [0, 6])
def test_the_official_client_unpacks_what_ours_uploaded(
    official: Official, ours: ArtifactClient, tree: Path, tmp_path: Path, level: int
) -> None:
    (tree / "void").mkdir()
    sent = ours.upload_artifact("logs", [*files(tree), tree / "void"], tree, compression_level=level)
    listed = official.call("listArtifacts")
    assert [(item["name"], item["id"], item["size"], item["digest"]) for item in listed["artifacts"]] == [
        ("logs", sent.id, sent.size, sent.digest)
    ]
    options = {"path": str(tmp_path / "out"), "expectedHash": sent.digest}
    assert official.call("downloadArtifact", sent.id, options)["digestMismatch"] is False
    assert contents(tmp_path / "out") == contents(tree)
    assert (tmp_path / "out/void").is_dir()


@pytest.mark.parametrize("level", [0, 9])
def test_ours_unpacks_what_the_official_client_uploaded(
    official: Official, ours: ArtifactClient, tree: Path, tmp_path: Path, level: int
) -> None:
    sent = official.call("uploadArtifact", "logs", files(tree), str(tree), {"compressionLevel": level})
    (found,) = ours.list_artifacts()
    assert (found.name, found.id, found.size, found.digest) == (
        "logs",
        sent["id"],
        sent["size"],
        f"sha256:{sent['digest']}",
    )
    ours.download_artifact(found, tmp_path / "out")
    assert contents(tmp_path / "out") == contents(tree)


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes")
def test_modes_come_as_far_as_either_client_keeps_them(
    official: Official, ours: ArtifactClient, tree: Path, tmp_path: Path
) -> None:
    number = ours.upload_artifact("ours", files(tree), tree).id
    official.call("uploadArtifact", "theirs", files(tree), str(tree))
    ours.download_artifact(number, tmp_path / "ours-by-ours")
    ours.download_artifact(ours.get_artifact("theirs"), tmp_path / "theirs-by-ours")
    official.call("downloadArtifact", number, {"path": str(tmp_path / "ours-by-theirs")})

    def executable(folder: str) -> bool:
        return os.access(tmp_path / folder / "deep/er/run.sh", os.X_OK)

    assert executable("ours-by-ours")
    assert executable("theirs-by-ours")
    assert not executable("ours-by-theirs")  # the official client stores the bits, but does not look at them


def test_sizes_in_64_bits_are_read_by_the_official_client(
    official: Official, service: ActionsService, tree: Path, tmp_path: Path
) -> None:
    body = b"".join(zip_pieces(zip_entries(files(tree), tree), zip64_from=0))
    item = service.artifact_store.add("large", body)
    official.call("downloadArtifact", item.number, {"path": str(tmp_path / "out")})
    assert contents(tmp_path / "out") == contents(tree)


def test_a_file_that_is_no_zip_goes_both_ways(
    official: Official, ours: ArtifactClient, tree: Path, tmp_path: Path
) -> None:
    source = tree / "with space/grün ✓.log"
    sent = ours.upload_artifact("unused", [source], tree, skip_archive=True)
    assert sent.name == source.name
    official.call("downloadArtifact", sent.id, {"path": str(tmp_path / "theirs")})
    assert contents(tmp_path / "theirs") == {source.name: source.read_bytes()}

    official.call("uploadArtifact", "unused", [str(tree / "a.txt")], str(tree), {"skipArchive": True})
    got = ours.download_artifact(ours.get_artifact("a.txt"), tmp_path / "ours")
    assert [path.name for path in got.files] == ["a.txt"]
    assert contents(tmp_path / "ours") == {"a.txt": b"hello\n"}


def test_either_client_deletes_what_the_other_uploaded(official: Official, ours: ArtifactClient, tree: Path) -> None:
    number = ours.upload_artifact("ours", [tree / "a.txt"], tree).id
    sent = official.call("uploadArtifact", "theirs", [str(tree / "a.txt")], str(tree))
    assert official.call("deleteArtifact", "ours") == {"id": number}
    assert ours.delete_artifact("theirs") == sent["id"]
    assert official.call("listArtifacts")["artifacts"] == ours.list_artifacts() == []


def test_both_clients_agree_on_the_newest_of_each_name_within_an_attempt(
    official: Official, ours: ArtifactClient, service: ActionsService
) -> None:
    for name in ("a", "b", "c"):
        service.artifact_store.add(name, b"")
    found = official.call("listArtifacts", {"latest": True})["artifacts"]
    assert [item["id"] for item in found] == [item.id for item in ours.list_artifacts(latest=True)]


def test_ours_finds_the_newest_of_two_attempts_where_the_official_client_goes_by_number(
    official: Official, ours: ArtifactClient, service: ActionsService
) -> None:
    old = service.artifact_store.add("same", b"old", run="run-1.1")
    new = service.artifact_store.add("same", b"new", run="run-1.2")
    assert ours.get_artifact("same").id == new.number
    assert official.call("getArtifact", "same")["artifact"]["id"] == old.number


def test_both_go_through_rest_for_another_run(
    official: Official, ours: ArtifactClient, service: ActionsService, tree: Path, tmp_path: Path
) -> None:
    number = ours.upload_artifact("logs", files(tree), tree).id
    for index in range(120):
        service.artifact_store.add(f"more-{index}", b"")
    find_by = FindBy("octo/demo", 1, "rest-token", service.rest.url)
    listed = official.call("listArtifacts", {"findBy": REPOSITORY})["artifacts"]
    assert [item["id"] for item in listed] == [item.id for item in ours.list_artifacts(find_by=find_by)]
    assert len(listed) == 121

    official.call("downloadArtifact", number, {"path": str(tmp_path / "theirs"), "findBy": REPOSITORY})
    ours.download_artifact(number, tmp_path / "ours", find_by=find_by)
    assert contents(tmp_path / "theirs") == contents(tmp_path / "ours") == contents(tree)
    assert official.call("deleteArtifact", "logs", {"findBy": REPOSITORY}) == {"id": number}
    with pytest.raises(MissingEntryError):
        ours.get_artifact("logs", find_by=find_by)


def test_both_refuse_the_same_names(
    official: Official, ours: ArtifactClient, service: ActionsService, tree: Path
) -> None:
    names = ["", *(f"a{character}b" for character in '":<>|*?\\/\r\n')]
    for outcome in official.outcomes(*(["uploadArtifact", name, files(tree), str(tree)] for name in names)):
        assert "artifact name" in outcome["error"]["message"]
    for name in names:
        with pytest.raises(InputError, match="artifact's name"):
            ours.upload_artifact(name, files(tree), tree)
    assert service.calls["CreateArtifact"] == 0


def test_both_fail_at_a_name_that_is_taken(official: Official, ours: ArtifactClient, tree: Path) -> None:
    ours.upload_artifact("logs", [tree / "a.txt"], tree)
    error = official.failure("uploadArtifact", "logs", [str(tree / "a.txt")], str(tree))
    assert "already exists" in error["message"]
    with pytest.raises(ReservedError):
        ours.upload_artifact("logs", [tree / "a.txt"], tree)


def test_both_refuse_an_enterprise_server(official: Official, service: ActionsService) -> None:
    enterprise = {"GITHUB_SERVER_URL": "https://github.example.com"}
    assert official.failure("listArtifacts", **enterprise)["name"] == "GHESNotSupportedError"
    with pytest.raises(UnavailableError, match="Enterprise"):
        ArtifactClient(Runtime.resolve(service.env() | enterprise), HttpClient(env={})).list_artifacts()
    assert not service.calls


def test_both_see_that_the_storage_is_used_up_at_once(
    official: Official, ours: ArtifactClient, service: ActionsService, tree: Path
) -> None:
    quota = json.dumps({"code": "resource_exhausted", "msg": "insufficient usage to create artifact"})
    service.faults.next("CreateArtifact", Fault.status(403, quota), times=2)
    error = official.failure("uploadArtifact", "logs", [str(tree / "a.txt")], str(tree))
    assert "quota" in error["message"]
    with pytest.raises(QuotaError, match="insufficient usage"):
        ours.upload_artifact("logs", [tree / "a.txt"], tree)
    assert service.calls["CreateArtifact"] == 2


def test_both_ask_for_the_same_retention(
    official: Official, ours: ArtifactClient, service: ActionsService, tree: Path
) -> None:
    ours.upload_artifact("ours", [tree / "a.txt"], tree, retention_days=7)
    official.call("uploadArtifact", "theirs", [str(tree / "a.txt")], str(tree), {"retentionDays": 7})
    one, other = (
        datetime.fromisoformat(item.expires_at.replace("Z", "+00:00")) for item in service.artifact_store.items
    )
    assert abs(one - other) < timedelta(hours=2)  # they count days of a local calendar
