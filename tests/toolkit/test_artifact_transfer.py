"""Bodies that the caller makes, and the ways by which a run's own artifacts are read."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.artifact import ArtifactClient, FindBy
from checkpoint_action.toolkit.artifact_stored import entry_at, stored_zip
from checkpoint_action.toolkit.errors import (
    DeniedError,
    DigestError,
    HttpStatusError,
    InputError,
    MissingEntryError,
    ReservedError,
)
from tests.actions_service import ActionsService, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Make = Callable[..., ArtifactClient]

CONTENT = bytes(range(256)) * 40
HEAD, TAIL = stored_zip("file", len(CONTENT), zlib.crc32(CONTENT))
BODY = HEAD + CONTENT + TAIL


def body() -> Iterator[bytes]:
    yield HEAD
    yield from (CONTENT[start : start + 999] for start in range(0, len(CONTENT), 999))
    yield TAIL


@pytest.fixture
def fallback(service: ActionsService) -> FindBy:
    return FindBy("octo/demo", 1, "rest-token", service.rest.url)


@pytest.mark.parametrize("kind", ["v2", "act"])
def test_a_zip_that_the_caller_makes_is_kept_and_read_in_parts(make_artifacts: Make, tmp_path: Path, kind: str) -> None:
    client = make_artifacts(kind)
    sent = client.upload_zip("logs", body, retention_days=3)
    assert sent.size == len(BODY)
    found = client.get_artifact("logs")
    offset = entry_at(client.read_range(found, 0, 100).data).offset
    assert client.read_range(found, offset + 500, 20).data == CONTENT[500:520]
    assert client.read_range(found, len(BODY) - 3, 99).data == BODY[-3:]
    assert client.read_range(found, len(BODY) + 3, 99).data == b""
    client.download_body(found, tmp_path / "body")
    assert (tmp_path / "body").read_bytes() == BODY
    [file] = client.download_artifact(found, tmp_path / "out").files
    assert file.read_bytes() == CONTENT


def test_a_body_is_made_anew_when_act_needs_all_of_it_again(service: ActionsService, make_artifacts: Make) -> None:
    client = make_artifacts("act")
    service.faults.next("PutBlock", Fault.reset(handled=True))
    client.upload_zip("logs", body)
    assert bytes(service.artifacts_of_act.content["logs"]) == BODY


def test_a_name_is_looked_at_before_any_call(service: ActionsService, make_artifacts: Make) -> None:
    with pytest.raises(InputError, match="artifact's name"):
        make_artifacts().upload_zip("a/b", body)
    assert not service.calls
    make_artifacts().upload_zip("ab", body)
    with pytest.raises(ReservedError):
        make_artifacts().upload_zip("ab", body)


def test_a_body_of_another_digest_leaves_no_file(service: ActionsService, make_artifacts: Make, tmp_path: Path) -> None:
    client = make_artifacts()
    client.upload_zip("logs", body)
    [item] = service.artifact_store.items
    service.blobs.content[item.blob] = BODY[:-1] + b"x"
    with pytest.raises(DigestError):
        client.download_body(client.get_artifact("logs"), tmp_path / "body")
    assert list(tmp_path.iterdir()) == []


def test_a_part_is_read_at_a_new_address_when_the_old_one_has_expired(
    service: ActionsService, make_artifacts: Make
) -> None:
    client = make_artifacts()
    client.upload_zip("logs", body)
    found = client.get_artifact("logs")
    service.blobs.expire_after(50)
    assert client.read_range(found, 0, 5000).data == BODY[:5000]
    assert service.calls["GetSignedArtifactURL"] == 2


def test_a_token_that_may_not_read_finds_by_rest_what_there_is(
    service: ActionsService, make_artifacts: Make, fallback: FindBy, tmp_path: Path
) -> None:
    make_artifacts().upload_zip("logs", body)
    for call in ("ListArtifacts", "GetSignedArtifactURL"):
        service.faults.next(call, Fault.status(403), times=9)
    with pytest.raises(DeniedError):
        make_artifacts().list_artifacts()
    client = make_artifacts(fallback=fallback)
    [found] = client.list_artifacts()
    assert client.read_range(found, 1, 5).data == BODY[1:6]
    client.download_body(found, tmp_path / "body")
    assert (tmp_path / "body").read_bytes() == BODY
    assert service.calls["GetSignedArtifactURL"] == 0, "what REST has told is asked for there"


def test_a_service_that_fails_is_no_reason_to_ask_rest(
    service: ActionsService, make_artifacts: Make, fallback: FindBy
) -> None:
    service.faults.next("ListArtifacts", Fault.status(500), times=9)
    with pytest.raises(HttpStatusError, match="500"):
        make_artifacts(fallback=fallback).list_artifacts()
    assert service.calls["ListRunArtifacts"] == 0


def test_what_neither_has_is_missing(service: ActionsService, make_artifacts: Make, fallback: FindBy) -> None:
    client = make_artifacts(fallback=fallback)
    client.upload_zip("logs", body)
    found = client.get_artifact("logs")
    service.artifact_store.remove(service.artifact_store.items[0])
    with pytest.raises(MissingEntryError):
        client.read_range(found, 0, 5)
