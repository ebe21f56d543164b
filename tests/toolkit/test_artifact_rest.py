"""Artifacts through REST."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.artifact import ArtifactClient, FindBy
from checkpoint_action.toolkit.errors import HttpStatusError, MissingEntryError, NetworkError, ProtocolError
from tests.actions_service import ActionsService, Fault
from tests.actions_service.messages import Reply, Request, Route
from tests.toolkit.trees import made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., ArtifactClient]


def test_a_list_is_read_page_by_page(service: ActionsService, make_artifacts: Make, find_by: FindBy) -> None:
    items = [service.artifact_store.add(f"a-{index}", b"") for index in range(250)]
    found = make_artifacts().list_artifacts(find_by=find_by)
    assert [one.id for one in found] == [item.number for item in reversed(items)]
    assert [request.query["page"] for request in service.requests] == ["1", "2", "3"]


def test_a_list_that_ends_with_its_page_is_not_asked_for_more(
    service: ActionsService, make_artifacts: Make, find_by: FindBy
) -> None:
    for index in range(200):
        service.artifact_store.add(f"a-{index}", b"")
    assert len(make_artifacts().list_artifacts(find_by=find_by)) == 200
    assert service.calls["ListRunArtifacts"] == 2


def test_a_run_that_there_is_not_has_no_artifacts(make_artifacts: Make, find_by: FindBy) -> None:
    other = FindBy(find_by.repository, 2, find_by.token, find_by.api_url)
    assert make_artifacts().list_artifacts(find_by=other) == []
    with pytest.raises(MissingEntryError):
        make_artifacts().get_artifact("logs", find_by=other)


def test_a_repository_that_may_not_be_seen_is_missing(make_artifacts: Make, find_by: FindBy) -> None:
    with pytest.raises(MissingEntryError):
        make_artifacts().list_artifacts(find_by=FindBy("octo/other", 1, find_by.token, find_by.api_url))


def test_an_artifact_is_downloaded_without_showing_the_token_to_the_store(
    service: ActionsService, make_artifacts: Make, find_by: FindBy, tmp_path: Path
) -> None:
    item = service.artifact_store.add("logs", made(a=b"x"))
    client = make_artifacts()
    client.download_artifact(client.get_artifact("logs", find_by=find_by), tmp_path / "out", find_by=find_by)
    assert (tmp_path / "out/a").read_bytes() == b"x"
    stored = [request for request in service.requests if item.blob in request.path]
    assert stored
    for request in stored:
        assert request.headers["host"].startswith("localhost:")
        assert "authorization" not in request.headers


class Inside:
    """Leads to a place on the very host that was asked."""

    def route(self, request: Request) -> Route | None:
        if request.path.endswith("/zip"):
            return Route("lead", lambda: Reply(302, b"", {"location": "/inside?sig=x"}))
        if request.path == "/inside":
            return Route("inside", lambda: Reply(200, made(a=b"x"), {"content-type": "application/zip"}))
        return None


def test_nor_to_a_store_on_the_same_host(
    service: ActionsService, make_artifacts: Make, find_by: FindBy, tmp_path: Path
) -> None:
    item = service.artifact_store.add("logs", b"")
    item.digest = ""
    service.parts.insert(0, Inside())
    make_artifacts().download_artifact(item.number, tmp_path / "out", find_by=find_by)
    assert (tmp_path / "out/a").read_bytes() == b"x"
    assert "authorization" not in service.requests[-1].headers
    assert service.requests[-1].target == "/inside?sig=x"


class Renamed:
    """The repository under a name that it had before."""

    def __init__(self, service: ActionsService) -> None:
        self._new = f"{service.rest.url}/repos/octo/demo"

    def route(self, request: Request) -> Route | None:
        _before, old, rest = request.target.partition("/repos/octo/old")
        return Route("renamed", lambda: Reply(301, b"{}", {"location": self._new + rest})) if old else None


def test_a_repository_that_was_renamed_is_found(
    service: ActionsService, make_artifacts: Make, find_by: FindBy, tmp_path: Path
) -> None:
    service.artifact_store.add("logs", made(a=b"x"))
    service.parts.insert(0, Renamed(service))
    old = FindBy("octo/old", 1, find_by.token, find_by.api_url)
    client = make_artifacts()
    client.download_artifact(client.get_artifact("logs", find_by=old), tmp_path / "out", find_by=old)
    assert (tmp_path / "out/a").read_bytes() == b"x"
    assert service.calls["renamed"] == 2


def test_the_signature_is_masked(
    service: ActionsService, make_artifacts: Make, find_by: FindBy, tmp_path: Path
) -> None:
    masks: list[str] = []
    item = service.artifact_store.add("logs", made(a=b"x"))
    make_artifacts(masks=masks).download_artifact(item.number, tmp_path / "out", find_by=find_by)
    assert masks


def test_an_address_that_expires_in_the_middle_is_asked_for_again(
    service: ActionsService, make_artifacts: Make, find_by: FindBy, tmp_path: Path
) -> None:
    item = service.artifact_store.add("logs", made(a=bytes(5000)))
    service.blobs.expire_after(1000)
    make_artifacts().download_artifact(item.number, tmp_path / "out", find_by=find_by)
    assert (tmp_path / "out/a").read_bytes() == bytes(5000)
    assert service.calls["DownloadRunArtifact"] == 2


def test_an_expired_artifact_is_not_listed_and_not_to_be_had(
    service: ActionsService, make_artifacts: Make, find_by: FindBy, tmp_path: Path
) -> None:
    item = service.artifact_store.add("logs", made(a=b"x"))
    client = make_artifacts()
    found = client.get_artifact("logs", find_by=find_by)
    item.expired = True
    assert client.list_artifacts(find_by=find_by) == []
    with pytest.raises(MissingEntryError, match="410"):
        client.download_artifact(found, tmp_path / "out", find_by=find_by)


def test_an_answer_that_leads_nowhere_is_refused(
    service: ActionsService, make_artifacts: Make, find_by: FindBy, tmp_path: Path
) -> None:
    item = service.artifact_store.add("logs", b"")
    for fault in (Fault.status(200, "{}"), Fault.status(302)):
        service.faults.next("DownloadRunArtifact", fault)
        with pytest.raises((ProtocolError, HttpStatusError)):
            make_artifacts().download_artifact(item.number, tmp_path / "out", find_by=find_by)
    service.faults.next("DownloadRunArtifact", Fault.status(302, location="ftp://elsewhere/x"))
    with pytest.raises(NetworkError, match="not a usable address"):
        make_artifacts().download_artifact(item.number, tmp_path / "out", find_by=find_by)


def test_an_artifact_is_deleted(service: ActionsService, make_artifacts: Make, find_by: FindBy) -> None:
    item = service.artifact_store.add("logs", b"")
    assert make_artifacts().delete_artifact("logs", find_by=find_by) == item.number
    assert service.artifact_store.items == []


def test_a_deletion_whose_answer_was_lost_is_done(
    service: ActionsService, make_artifacts: Make, find_by: FindBy
) -> None:
    service.artifact_store.add("logs", b"")
    service.faults.next("DeleteRunArtifact", Fault.reset(handled=True))
    make_artifacts().delete_artifact("logs", find_by=find_by)
    assert service.artifact_store.items == []
