"""What is different under act, as it was seen there. The real act: tests/peers/test_artifacts_under_act.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.errors import HttpStatusError, NetworkError
from tests.actions_service import ActionsService, Fault, make_token

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.artifact import ArtifactClient
    from tests.toolkit.clock import Clock

    Make = Callable[..., ArtifactClient]


def test_files_come_back_although_blocks_are_kept_as_they_arrive(
    service: ActionsService, make_artifacts: Make, source: Path, tmp_path: Path
) -> None:
    client = make_artifacts("act")
    sent = client.upload_artifact("logs", [source], source.parent, compression_level=0)
    assert service.calls["PutBlock"] > 5
    (found,) = client.list_artifacts()
    assert (found.id, found.size, found.digest) == (sent.id, 4096, "")
    client.download_artifact(found, tmp_path / "out")
    assert (tmp_path / "out/source").read_bytes() == source.read_bytes()
    assert client.delete_artifact("logs") == sent.id


def test_a_run_without_artifacts_has_none_although_the_connection_breaks(
    service: ActionsService, make_artifacts: Make, clock: Clock
) -> None:
    assert make_artifacts("act").list_artifacts() == []
    assert service.calls["ListArtifacts"] == 1
    assert clock.sleeps == []


def test_elsewhere_a_broken_connection_is_no_empty_list(service: ActionsService, make_artifacts: Make) -> None:
    service.faults.next("ListArtifacts", Fault.reset(), times=99)
    with pytest.raises(NetworkError):
        make_artifacts().list_artifacts()


def test_no_server_at_all_is_no_empty_list(make_artifacts: Make) -> None:
    with pytest.raises(NetworkError, match="no connection"):
        make_artifacts("act", ACTIONS_RESULTS_URL="http://127.0.0.1:9/").list_artifacts()


@pytest.mark.parametrize("fault", [Fault.reset(), Fault.reset(handled=True), Fault.status(503)])
def test_a_block_that_fails_has_all_of_them_sent_anew(
    service: ActionsService, make_artifacts: Make, source: Path, tmp_path: Path, fault: Fault
) -> None:
    client = make_artifacts("act")
    for _ in range(2):
        service.faults.next("PutBlock", fault)
    client.upload_artifact("logs", [source], source.parent, compression_level=0)
    assert service.calls["CreateArtifact"] == 3
    client.download_artifact(client.get_artifact("logs"), tmp_path / "out")
    assert (tmp_path / "out/source").read_bytes() == source.read_bytes()


def test_an_upload_that_goes_on_failing_ends(service: ActionsService, make_artifacts: Make, source: Path) -> None:
    service.faults.next("PutBlock", Fault.status(500), times=99)
    with pytest.raises(HttpStatusError):
        make_artifacts("act").upload_artifact("logs", [source], source.parent)
    assert service.calls["CreateArtifact"] == 3


def test_an_upload_that_is_refused_is_not_repeated(service: ActionsService, make_artifacts: Make, source: Path) -> None:
    service.faults.next("PutBlock", Fault.status(401))
    with pytest.raises(HttpStatusError):
        make_artifacts("act").upload_artifact("logs", [source], source.parent)
    assert service.calls["CreateArtifact"] == 1


def test_no_type_is_sent(service: ActionsService, make_artifacts: Make, source: Path) -> None:
    make_artifacts("act").upload_artifact("unused", [source], source.parent, skip_archive=True)
    assert bytes(service.artifacts_of_act.content["source"]) == source.read_bytes()


def test_a_run_that_is_no_number_is_an_error(make_artifacts: Make, source: Path) -> None:
    with pytest.raises(HttpStatusError, match="answered 400"):
        make_artifacts("act", token=make_token(run="run-1")).upload_artifact("logs", [source], source.parent)
