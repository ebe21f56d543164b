"""Artifacts while things go wrong: what passes is sat out, what stays is told, and nothing is half there."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.toolkit.artifact import ArtifactClient
from checkpoint_action.toolkit.artifact_zip import ZipEntry, zip_entries
from checkpoint_action.toolkit.blob import DownloadPlan
from checkpoint_action.toolkit.errors import (
    DeadlineError,
    DeniedError,
    HttpStatusError,
    NetworkError,
    ProtocolError,
    QuotaError,
    RateLimitedError,
    ReservedError,
    ToolkitError,
)
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, Fault
from tests.toolkit.clock import Clock
from tests.toolkit.trees import there

if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[..., ArtifactClient]

PASSING = [
    Fault.status(500),
    Fault.status(502),
    Fault.status(503),
    Fault.status(504),
    Fault.status(429),
    Fault.not_json(),
    Fault.reset(),
    Fault.truncated(3),
]
CALLS = ["CreateArtifact", "FinalizeArtifact", "ListArtifacts", "GetSignedArtifactURL", "DeleteArtifact"]


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        pytest.param(operation, fault, id=f"{operation}-{fault.kind}-{fault.reply.status}")
        for operation in CALLS
        for fault in PASSING
        if operation != "CreateArtifact" or not fault.handled  # the name is taken then: see below
    ],
)
def test_what_passes_is_sat_out(
    service: ActionsService, make_artifacts: Make, source: Path, tmp_path: Path, operation: str, fault: Fault
) -> None:
    client = make_artifacts()
    service.faults.next(operation, fault, times=2)
    client.upload_artifact("logs", [source], source.parent)
    client.download_artifact(client.get_artifact("logs"), tmp_path / "out")
    assert (tmp_path / "out/source").read_bytes() == source.read_bytes()
    client.delete_artifact("logs")
    assert service.faults.take(operation) is None


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (Fault.status(400), HttpStatusError),
        (Fault.status(401), DeniedError),
        (Fault.status(403, '{"code":"permission_denied","msg":"no"}'), DeniedError),
        (Fault.status(403, '{"code":"resource_exhausted","msg":"insufficient usage to create"}'), QuotaError),
        (Fault.status(429, '{"code":"resource_exhausted","msg":"insufficient usage to create"}'), QuotaError),
        (Fault.status(412), HttpStatusError),
    ],
)
def test_what_stays_is_told_at_once(
    service: ActionsService,
    make_artifacts: Make,
    source: Path,
    tmp_path: Path,
    operation: str,
    fault: Fault,
    error: type[ToolkitError],
) -> None:
    service.artifact_store.add("there", b"")
    client = make_artifacts()
    found = client.get_artifact("there")
    before = service.calls[operation]
    service.faults.next(operation, fault, times=99)
    calls: dict[str, Callable[[], object]] = {
        "CreateArtifact": lambda: client.upload_artifact("logs", [source], source.parent),
        "FinalizeArtifact": lambda: client.upload_artifact("logs", [source], source.parent),
        "ListArtifacts": client.list_artifacts,
        "GetSignedArtifactURL": lambda: client.download_artifact(found, tmp_path / "out"),
        "DeleteArtifact": lambda: client.delete_artifact("there"),
    }
    with pytest.raises(error):
        calls[operation]()
    assert service.calls[operation] == before + 1


def test_what_does_not_pass_ends_after_some_tries(service: ActionsService, make_artifacts: Make, clock: Clock) -> None:
    for fault, error in ((Fault.status(503), HttpStatusError), (Fault.not_json(), ProtocolError)):
        service.faults.next("ListArtifacts", fault, times=5)
        with pytest.raises(error):
            make_artifacts().list_artifacts()
    assert clock.sleeps == [1, 2, 4, 8] * 2


def test_a_refusal_for_too_many_calls_is_waited_out(
    service: ActionsService, make_artifacts: Make, clock: Clock
) -> None:
    service.faults.next("ListArtifacts", Fault.status(429, retry_after="18"), times=3)
    assert make_artifacts().list_artifacts() == []
    assert clock.sleeps == [18, 18, 18]


def test_such_a_refusal_is_not_waited_out_for_ever(service: ActionsService, make_artifacts: Make, clock: Clock) -> None:
    service.faults.next("ListArtifacts", Fault.status(429, retry_after="3600"), times=99)
    with pytest.raises(RateLimitedError):
        make_artifacts().list_artifacts()
    assert sum(clock.sleeps) < 90


def test_a_name_whose_reservation_was_lost_is_taken(
    service: ActionsService, make_artifacts: Make, source: Path
) -> None:
    """Nobody can tell this from a name that somebody else has: the next try needs another."""
    service.faults.next("CreateArtifact", Fault.reset(handled=True))
    with pytest.raises(ReservedError) as caught:
        make_artifacts().upload_artifact("logs", [source], source.parent)
    assert caught.value.repeated


def test_a_finalize_whose_answer_was_lost_is_found_again(
    service: ActionsService, make_artifacts: Make, source: Path
) -> None:
    service.faults.next("FinalizeArtifact", Fault.reset(handled=True))
    sent = make_artifacts().upload_artifact("logs", [source], source.parent)
    assert [(item.number, item.digest) for item in service.artifact_store.items] == [(sent.id, sent.digest)]


@pytest.mark.parametrize("before", [[], [Fault.reset()]], ids=["at once", "after a reset"])
def test_a_finalize_that_is_refused_is_not_taken_for_done(
    service: ActionsService, make_artifacts: Make, source: Path, before: list[Fault]
) -> None:
    service.artifact_store.add("logs", b"other", run="run-1.7")
    for fault in before:
        service.faults.next("FinalizeArtifact", fault)
    service.faults.next("FinalizeArtifact", Fault.status(404, '{"code":"not_found","msg":"artifact not found"}'))
    with pytest.raises(HttpStatusError, match="not_found"):
        make_artifacts().upload_artifact("logs", [source], source.parent)


@pytest.mark.parametrize(
    ("operation", "answer", "words"),
    [
        ("CreateArtifact", {"ok": False}, "without an address"),
        ("CreateArtifact", {"ok": True}, "without an address"),
        ("FinalizeArtifact", {"ok": False}, "was refused"),
        ("FinalizeArtifact", {"ok": True, "artifact_id": "many"}, "no whole number"),
        ("ListArtifacts", {"artifacts": "none"}, "without a list"),
        ("ListArtifacts", {"artifacts": [{"name": "logs"}]}, "no name or no id"),
        ("GetSignedArtifactURL", {}, "without an address"),
        ("DeleteArtifact", {"ok": False}, "was refused"),
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(
    service: ActionsService,
    make_artifacts: Make,
    source: Path,
    tmp_path: Path,
    operation: str,
    answer: dict[str, object],
    words: str,
) -> None:
    client = make_artifacts()
    service.faults.next(operation, Fault.status(200, json.dumps(answer)))

    def do_all() -> None:
        client.upload_artifact("logs", [source], source.parent)
        client.download_artifact(client.get_artifact("logs"), tmp_path / "out")
        client.delete_artifact("logs")

    with pytest.raises(ProtocolError, match=words):
        do_all()


@pytest.mark.parametrize("operation", ["PutBlock", "PutBlockList"])
@pytest.mark.parametrize("fault", [Fault.status(500), Fault.status(503), Fault.reset(), Fault.reset(handled=True)])
def test_an_upload_that_stumbles_arrives(
    service: ActionsService, make_artifacts: Make, source: Path, operation: str, fault: Fault
) -> None:
    service.faults.next(operation, fault, times=2)
    sent = make_artifacts().upload_artifact("logs", [source], source.parent, compression_level=0)
    (item,) = service.artifact_store.items
    assert f"sha256:{hashlib.sha256(service.blobs.content[item.blob]).hexdigest()}" == sent.digest


def test_an_upload_that_fails_makes_no_artifact(service: ActionsService, make_artifacts: Make, source: Path) -> None:
    service.faults.next("PutBlock", Fault.status(403), times=99)
    client = make_artifacts()
    with pytest.raises(HttpStatusError):
        client.upload_artifact("logs", [source], source.parent, compression_level=0)
    assert client.list_artifacts() == []
    assert service.calls["FinalizeArtifact"] == 0
    assert service.calls["PutBlock"] < 10


def test_a_file_that_cannot_be_read_ends_the_upload(
    service: ActionsService, make_artifacts: Make, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def then_gone(files: list[Path], root: Path) -> list[ZipEntry]:
        entries = zip_entries(files, root)
        source.unlink()
        return entries

    monkeypatch.setattr("checkpoint_action.toolkit.artifact.zip_entries", then_gone)
    with pytest.raises(ToolkitError, match="cannot read"):
        make_artifacts().upload_artifact("logs", [source], source.parent)
    assert service.calls["FinalizeArtifact"] == 0


def test_a_download_that_stumbles_arrives_with_a_fresh_address(
    service: ActionsService, make_artifacts: Make, source: Path, tmp_path: Path
) -> None:
    client = make_artifacts()
    client.upload_artifact("logs", [source], source.parent, compression_level=0)
    service.faults.next("GetBlob", Fault.truncated(700), times=3)
    service.faults.next("GetBlob", Fault.reset())
    service.blobs.expire_after(500)
    client.download_artifact(client.get_artifact("logs"), tmp_path / "out")
    assert (tmp_path / "out/source").read_bytes() == source.read_bytes()
    assert service.calls["GetSignedArtifactURL"] >= 2


@pytest.mark.parametrize("fault", [Fault.truncated(0), Fault.status(403), Fault.status(503), Fault.corrupted()])
def test_a_download_that_gets_nowhere_leaves_nothing(
    service: ActionsService, make_artifacts: Make, source: Path, tmp_path: Path, fault: Fault
) -> None:
    client = make_artifacts()
    client.upload_artifact("logs", [source], source.parent, compression_level=0)
    (tmp_path / "out").mkdir()
    (tmp_path / "out/source").write_bytes(b"old")
    service.faults.next("GetBlob", fault, times=999)
    with pytest.raises(ToolkitError):
        client.download_artifact(client.get_artifact("logs"), tmp_path / "out")
    assert there(tmp_path / "out") == {"source": b"old"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["source"]


def test_an_artifact_that_vanishes_meanwhile_is_missing(
    service: ActionsService, make_artifacts: Make, source: Path, tmp_path: Path
) -> None:
    client = make_artifacts()
    client.upload_artifact("logs", [source], source.parent)
    found = client.get_artifact("logs")
    client.delete_artifact("logs")
    with pytest.raises(ToolkitError, match="cannot be had"):
        client.download_artifact(found, tmp_path / "out")
    with pytest.raises(ToolkitError, match="no artifact named"):
        client.delete_artifact("logs")


def test_no_call_outlives_its_time(
    service: ActionsService, make_artifacts: Make, source: Path, tmp_path: Path, clock: Clock
) -> None:
    service.artifact_store.add("there", b"")
    client = make_artifacts()
    found = client.get_artifact("there")
    calls: dict[str, Callable[[], object]] = {
        "ListArtifacts": lambda: client.list_artifacts(seconds=5),
        "CreateArtifact": lambda: client.upload_artifact("logs", [source], source.parent, seconds=5),
        "PutBlock": lambda: client.upload_artifact("more", [source], source.parent, seconds=5),
        "GetBlob": lambda: client.download_artifact(found, tmp_path / "out", seconds=5),
    }
    for operation, call in calls.items():
        service.faults.next(operation, Fault.status(503), times=99)
        before = clock.now
        with pytest.raises((DeadlineError, HttpStatusError)):
            call()
        assert clock.now - before <= 5
        service.faults.clear()


STAYING = [Fault.reset(handled=True), Fault.truncated(0), Fault.truncated(900), Fault.status(403)]
FAULTS = st.tuples(st.sampled_from([*CALLS, "PutBlock", "PutBlockList", "GetBlob"]), st.sampled_from(PASSING + STAYING))
DAMAGES = st.tuples(st.sampled_from(["PutBlock", "GetBlob"]), st.just(Fault.corrupted()))


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(FAULTS | DAMAGES, max_size=12))
def test_whatever_goes_wrong_nothing_is_half_there(faults: list[tuple[str, Fault]]) -> None:
    """An upload is whole or not to be seen; a download is the whole of it or nothing; no wait has no end."""
    clock = Clock()
    http = HttpClient(env={}, monotonic=clock.monotonic, sleep=clock.sleep, wall=clock.wall, jitter=lambda: 0.0)
    with ActionsService.running() as service, tempfile.TemporaryDirectory() as name:
        source, out = Path(name, "source"), Path(name, "out")
        source.write_bytes(bytes(range(256)) * 20)
        client = ArtifactClient(
            Runtime.resolve(service.env()),
            http,
            block=1000,
            parallel=1,
            fetch_plan=DownloadPlan(part=1500, parallel=1),
        )
        for operation, fault in faults:
            service.faults.next(operation, fault)
        try:
            sent = client.upload_artifact("logs", [source], source.parent, compression_level=0, seconds=600)
        except ToolkitError:
            sent = None
        try:
            client.download_artifact(client.get_artifact("logs"), out, seconds=600)
            assert there(out) == {"source": source.read_bytes()}
        except ToolkitError:
            assert not out.exists() or list(out.iterdir()) == []
        service.faults.clear()
        found = client.list_artifacts()
        assert len(found) <= 1
        if sent is not None:
            assert [(one.id, one.digest) for one in found] == [(sent.id, sent.digest)]
        assert clock.now < 1000 + 2000
        http.close()


def test_a_connection_that_is_refused_is_told_without_the_address(make_artifacts: Make) -> None:
    client = make_artifacts(ACTIONS_RESULTS_URL="http://127.0.0.1:9/some/secret/path")
    with pytest.raises(NetworkError) as caught:
        client.list_artifacts()
    assert "ListArtifacts at 127.0.0.1:9" in str(caught.value)
    assert "secret" not in str(caught.value)
