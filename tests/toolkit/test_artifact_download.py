"""What comes of the body of an artifact: its type, its digest, its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.artifact import ArtifactClient, UnpackLimits
from checkpoint_action.toolkit.errors import DigestError, ProtocolError
from tests.toolkit.trees import made, there

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.actions_service import ActionsService

    Make = Callable[..., ArtifactClient]


def test_another_digest_than_expected_leaves_nothing(
    service: ActionsService, make_artifacts: Make, tmp_path: Path
) -> None:
    item = service.artifact_store.add("logs", made(a=b"x"))
    service.blobs.content[item.blob] = made(a=b"y")
    client = make_artifacts()
    with pytest.raises(DigestError, match="was stored with"):
        client.download_artifact(item.number, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
    item.digest = "md5:00"
    with pytest.raises(ProtocolError, match="'md5'"):
        client.download_artifact(item.number, tmp_path / "out")
    item.digest = ""
    with pytest.raises(DigestError):
        client.download_artifact(item.number, tmp_path / "out", expected_digest=f"sha256:{'0' * 64}")
    client.download_artifact(item.number, tmp_path / "out")
    assert there(tmp_path / "out") == {"a": b"y"}


def test_a_digest_counts_in_capitals_too(service: ActionsService, make_artifacts: Make, tmp_path: Path) -> None:
    item = service.artifact_store.add("logs", made(a=b"x"))
    item.digest = item.digest.upper()
    make_artifacts().download_artifact(item.number, tmp_path / "out")
    assert there(tmp_path / "out") == {"a": b"x"}


@pytest.mark.parametrize(
    ("kind", "disposition", "files"),
    [
        ("application/zip; charset=binary", "", {"a"}),
        ("application/x-zip-compressed", "", {"a"}),
        ("Application/Zip-Compressed", 'attachment; filename="logs.zip"', {"a"}),
        ("application/octet-stream", 'attachment; filename="told.bin"', {"told.bin"}),
        ("application/octet-stream", 'attachment; filename="../told.bin"', {"told.bin"}),
        ("application/octet-stream", "", {"logs"}),
        ("text/html", 'attachment; filename=".."', {"logs"}),
    ],
)
def test_what_the_body_is_says_its_type(
    service: ActionsService,
    make_artifacts: Make,
    tmp_path: Path,
    kind: str,
    disposition: str,
    files: set[str],
) -> None:
    item = service.artifact_store.add("logs", made(a=b"x"), kind=kind)
    if disposition:
        service.blobs.headers[item.blob]["content-disposition"] = disposition
    make_artifacts().download_artifact(item.number, tmp_path / "out")
    assert set(there(tmp_path / "out")) == files


def test_an_address_that_ends_in_zip_says_it_too(service: ActionsService, make_artifacts: Make, tmp_path: Path) -> None:
    item = service.artifact_store.add("logs", b"")
    item.blob = "some.ZIP"
    service.blobs.content["some.ZIP"] = made(a=b"x")
    item.digest = ""
    make_artifacts().download_artifact(item.number, tmp_path / "out")
    assert set(there(tmp_path / "out")) == {"a"}


def test_a_zip_is_kept_as_it_is_where_that_is_wanted(
    service: ActionsService, make_artifacts: Make, tmp_path: Path
) -> None:
    item = service.artifact_store.add("logs", made(a=b"x"))
    got = make_artifacts().download_artifact(item.number, tmp_path / "out", skip_decompress=True)
    assert got.files == (tmp_path / "out/logs.zip",)
    assert got.files[0].read_bytes() == made(a=b"x")


def test_a_name_from_the_service_leads_nowhere(service: ActionsService, make_artifacts: Make, tmp_path: Path) -> None:
    for number, name in enumerate(("..", "a/b", "/etc/x")):
        item = service.artifact_store.add(name, b"x", kind="text/plain", run=f"run-1.{number}")
        with pytest.raises(ProtocolError):
            make_artifacts().download_artifact(item.number, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_damaged_or_dangerous_zip_leaves_nothing(
    service: ActionsService, make_artifacts: Make, tmp_path: Path
) -> None:
    client = make_artifacts()
    for name, body in {"damaged": b"PK\x03\x04 not really", "escape": made(**{"../x": b"x"})}.items():
        item = service.artifact_store.add(name, body)
        with pytest.raises(ProtocolError):
            client.download_artifact(item.number, tmp_path / "out")
    bomb = service.artifact_store.add("bomb", made(a=bytes(1000)))
    with pytest.raises(ProtocolError, match="1000 bytes"):
        client.download_artifact(bomb.number, tmp_path / "out", limits=UnpackLimits(size=999))
    assert list((tmp_path / "out").iterdir()) == []
