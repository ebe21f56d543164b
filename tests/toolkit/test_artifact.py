from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit import artifact, cache, core
from checkpoint_action.toolkit.artifact import ArtifactClient
from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    InputError,
    MissingEntryError,
    ReservedError,
    ToolkitError,
    UnavailableError,
)
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, Fault, make_token
from tests.toolkit.trees import there

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint_action.toolkit.artifact import FindBy
    from checkpoint_action.toolkit.http import HttpClient

    Make = Callable[..., ArtifactClient]


@pytest.fixture
def root(source: Path) -> Path:
    (source.parent / "sub").mkdir()
    (source.parent / "sub/b").write_bytes(b"two")
    return source.parent


def test_the_modules_stand_beside_each_other() -> None:
    assert [module.__name__.split(".")[-1] for module in (core, cache, artifact)] == ["core", "cache", "artifact"]


def test_files_come_back_as_they_were(make_artifacts: Make, root: Path, tmp_path: Path) -> None:
    client = make_artifacts()
    sent = client.upload_artifact("logs", [root / "source", root / "sub/b"], root)
    got = client.download_artifact(sent.id, tmp_path / "out")
    assert there(tmp_path / "out") == {"source": (root / "source").read_bytes(), "sub/b": b"two"}
    assert got.files == (tmp_path / "out/source", tmp_path / "out/sub/b")
    assert got.digest == sent.digest == got.artifact.digest
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["source", "sub"]


def test_an_upload_is_announced_sent_in_blocks_and_finalized(
    service: ActionsService, make_artifacts: Make, root: Path
) -> None:
    sent = make_artifacts().upload_artifact("logs", [root / "source"], root, compression_level=0)
    bodies = [json.loads(request.body) for request in service.requests if "/twirp/" in request.path]
    ids = {"workflow_run_backend_id": "run-1", "workflow_job_run_backend_id": "job-1"}
    assert bodies == [
        {**ids, "name": "logs", "version": 4},
        {**ids, "name": "logs", "hash": sent.digest, "size": str(sent.size)},
    ]
    assert service.calls == {
        "CreateArtifact": 1,
        "PutBlock": -(-sent.size // 1000),
        "PutBlockList": 1,
        "FinalizeArtifact": 1,
    }
    (item,) = service.artifact_store.items
    assert service.blobs.headers[item.blob]["content-type"] == "application/zip"
    assert all("authorization" not in request.headers for request in service.requests if "sig=" in request.target)


def test_signatures_are_masked_before_they_are_used(make_artifacts: Make, root: Path, tmp_path: Path) -> None:
    masks: list[str] = []
    client = make_artifacts(masks=masks)
    client.upload_artifact("logs", [root / "source"], root)
    assert len(masks) >= 1
    client.download_artifact(client.get_artifact("logs"), tmp_path / "out")
    assert len(masks) >= 2


@pytest.mark.parametrize("switch", ["camel_case", "numbers_as_numbers"])
def test_all_spellings_of_servers_are_read(
    service: ActionsService, make_artifacts: Make, root: Path, tmp_path: Path, switch: str
) -> None:
    setattr(service.artifacts, switch, True)
    client = make_artifacts()
    sent = client.upload_artifact("logs", [root / "sub/b"], root)
    (found,) = client.list_artifacts()
    assert (found.id, found.size, found.digest) == (sent.id, sent.size, sent.digest)
    assert found.created_at is not None
    client.download_artifact(found, tmp_path / "out")
    assert there(tmp_path / "out") == {"sub/b": b"two"}
    assert client.delete_artifact("logs") == sent.id
    assert client.list_artifacts() == []


def test_a_single_file_goes_as_it_is(service: ActionsService, make_artifacts: Make, root: Path, tmp_path: Path) -> None:
    client = make_artifacts()
    sent = client.upload_artifact("unused", [root / "source"], root, skip_archive=True)
    (item,) = service.artifact_store.items
    assert (sent.name, item.version) == ("source", 7)
    assert service.blobs.content[item.blob] == (root / "source").read_bytes()
    assert service.blobs.headers[item.blob]["content-type"] == "application/octet-stream"
    assert client.download_artifact(sent.id, tmp_path / "out").files == (tmp_path / "out/source",)
    assert there(tmp_path / "out") == {"source": (root / "source").read_bytes()}


def test_an_empty_file_goes_as_it_is(make_artifacts: Make, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    client = make_artifacts()
    sent = client.upload_artifact("unused", [tmp_path / "empty"], tmp_path, skip_archive=True)
    assert sent.size == 0
    client.download_artifact(sent.id, tmp_path / "out")
    assert there(tmp_path / "out") == {"empty": b""}


def test_a_server_that_knows_no_types_gets_none(service: ActionsService, make_artifacts: Make, root: Path) -> None:
    service.artifacts.knows_no_types = True
    make_artifacts().upload_artifact("unused", [root / "source"], root, skip_archive=True)
    (item,) = service.artifact_store.items
    assert item.version == 4


def test_a_server_that_fails_and_says_why_is_not_asked_without_a_type(
    service: ActionsService, make_artifacts: Make, root: Path
) -> None:
    service.faults.next("CreateArtifact", Fault.status(500, '{"code":"internal","msg":"no"}'), times=5)
    with pytest.raises(HttpStatusError):
        make_artifacts().upload_artifact("unused", [root / "source"], root, skip_archive=True)
    assert service.artifact_store.items == []


def test_a_type_that_the_service_refuses_is_an_error(make_artifacts: Make, root: Path) -> None:
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    with pytest.raises(ToolkitError, match="answered 400, invalid_argument, mime_type a valid mime_type"):
        make_artifacts().upload_artifact("x", [root / "source"], root, skip_archive=True, mime_type=kind)


def test_what_cannot_be_uploaded_is_refused_before_any_call(
    service: ActionsService, make_artifacts: Make, root: Path
) -> None:
    client = make_artifacts()
    for files in ([], [root]):
        with pytest.raises(InputError, match="at least one file"):
            client.upload_artifact("logs", files, root)
    with pytest.raises(InputError, match="exactly one file"):
        client.upload_artifact("logs", [root / "source", root / "sub/b"], root, skip_archive=True)
    with pytest.raises(InputError, match="exactly one file"):
        client.upload_artifact("logs", [root / "sub"], root, skip_archive=True)
    with pytest.raises(InputError, match="name"):
        client.upload_artifact("a/b", [root / "source"], root)
    with pytest.raises(InputError, match="-1 days"):
        client.upload_artifact("logs", [root / "source"], root, retention_days=-1)
    with pytest.raises(InputError, match="0 to 9, not 10"):
        client.upload_artifact("logs", [root / "source"], root, compression_level=10)
    assert not service.requests


def test_retention_is_asked_for_as_long_as_it_may_be(service: ActionsService, make_artifacts: Make, root: Path) -> None:
    warnings: list[str] = []
    client = make_artifacts(warnings=warnings, GITHUB_RETENTION_DAYS="5")
    for days in (0, 3, 90):
        client.upload_artifact(f"a{days}", [root / "sub/b"], root, retention_days=days)
    # The clock stands at 2023-11-14T22:30.
    assert [item.expires_at[:10] for item in service.artifact_store.items] == ["", "2023-11-17", "2023-11-19"]
    assert warnings == ["Artifacts are kept for at most 5 days here, not 90."]


@pytest.mark.parametrize("told", ["0", "", "many"])
def test_a_retention_of_zero_days_is_none_that_is_told(
    service: ActionsService, make_artifacts: Make, root: Path, told: str
) -> None:
    client = make_artifacts(GITHUB_RETENTION_DAYS=told)
    client.upload_artifact("a", [root / "sub/b"], root, retention_days=90)
    assert service.artifact_store.items[0].expires_at.startswith("2024-02-12")


def test_a_name_that_is_taken_is_told(service: ActionsService, make_artifacts: Make, root: Path) -> None:
    client = make_artifacts()
    client.upload_artifact("logs", [root / "sub/b"], root)
    with pytest.raises(ReservedError, match="logs"):
        client.upload_artifact("logs", [root / "sub/b"], root)
    assert service.calls["CreateArtifact"] == 2


def test_another_attempt_has_names_of_its_own_and_sees_the_older_ones(make_artifacts: Make, root: Path) -> None:
    first = make_artifacts(token=make_token(run="run-1.1"))
    second = make_artifacts(token=make_token(run="run-1.2"))
    stranger = make_artifacts(token=make_token(run="run-2"))
    old = first.upload_artifact("logs", [root / "sub/b"], root)
    new = second.upload_artifact("logs", [root / "source"], root)
    assert new.id < old.id
    assert {item.id for item in second.list_artifacts()} == {old.id, new.id}
    assert [item.id for item in second.list_artifacts(latest=True)] == [new.id]
    assert first.get_artifact("logs").id == new.id
    assert stranger.list_artifacts() == []


def test_an_older_attempts_artifact_is_asked_for_under_its_own_ids(
    make_artifacts: Make, root: Path, tmp_path: Path
) -> None:
    make_artifacts(token=make_token(run="run-1.1")).upload_artifact("logs", [root / "sub/b"], root)
    second = make_artifacts(token=make_token(run="run-1.2"))
    second.download_artifact(second.get_artifact("logs"), tmp_path / "out")
    assert there(tmp_path / "out") == {"sub/b": b"two"}


def test_what_the_service_hides_is_had_through_rest(
    service: ActionsService, make_artifacts: Make, root: Path, tmp_path: Path, find_by: FindBy
) -> None:
    make_artifacts(token=make_token(run="run-1.1")).upload_artifact("logs", [root / "sub/b"], root)
    service.artifacts.old_attempts_are_hidden = True
    token = make_token(run="run-1.2")
    hidden = make_artifacts(token=token)
    found = hidden.get_artifact("logs")
    with pytest.raises(MissingEntryError, match="workflow run not found"):
        hidden.download_artifact(found, tmp_path / "out")
    make_artifacts(token=token, fallback=find_by).download_artifact(found, tmp_path / "out")
    assert there(tmp_path / "out") == {"sub/b": b"two"}


def test_what_is_not_there_is_told(make_artifacts: Make, tmp_path: Path) -> None:
    client = make_artifacts()
    with pytest.raises(MissingEntryError, match="logs"):
        client.get_artifact("logs")
    with pytest.raises(MissingEntryError, match="logs"):
        client.delete_artifact("logs")
    with pytest.raises(MissingEntryError, match="number 5"):
        client.download_artifact(5, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_unfinished_upload_is_not_to_be_seen(service: ActionsService, make_artifacts: Make) -> None:
    service.artifact_store.reserve("run-1", "job-1", "logs")
    assert make_artifacts().list_artifacts() == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"GITHUB_SERVER_URL": "https://github.example.com"}, "Enterprise"),
        ({"ACTIONS_RESULTS_URL": ""}, "ACTIONS_RESULTS_URL"),
        ({"ACTIONS_RUNTIME_TOKEN": ""}, "ACTIONS_RUNTIME_TOKEN is not set"),
        ({"ACTIONS_RUNTIME_TOKEN": "opaque"}, "names no run"),
        ({"ACTIONS_RUNTIME_TOKEN": make_token(run="a:b")}, "names no run"),
    ],
)
def test_an_environment_without_artifacts_says_what_is_missing(
    service: ActionsService, http: HttpClient, root: Path, changes: dict[str, str], words: str
) -> None:
    client = ArtifactClient(Runtime.resolve(service.env() | changes), http)
    with pytest.raises(UnavailableError, match=words):
        client.list_artifacts()
    with pytest.raises(UnavailableError, match=words):
        client.upload_artifact("logs", [root / "source"], root)
    assert not service.requests


def test_a_company_on_ghe_com_has_artifacts(make_artifacts: Make) -> None:
    assert make_artifacts(GITHUB_SERVER_URL="https://octo.ghe.com").list_artifacts() == []


def test_a_token_that_may_not_write_is_denied(service: ActionsService, make_artifacts: Make, root: Path) -> None:
    service.artifacts.read_only = True
    with pytest.raises(DeniedError, match="read-only"):
        make_artifacts().upload_artifact("logs", [root / "source"], root)
    assert service.calls == {"CreateArtifact": 1}


def test_a_client_can_be_made_of_the_environment_alone(
    service: ActionsService,
    root: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in (service.env() | {"GITHUB_RETENTION_DAYS": "5"}).items():
        monkeypatch.setenv(name, value)
    client = ArtifactClient.from_env()
    client.upload_artifact("logs", [root / "sub/b"], root, retention_days=9)
    client.download_artifact(client.get_artifact("logs"), tmp_path / "out")
    assert there(tmp_path / "out") == {"sub/b": b"two"}
    printed = capfd.readouterr().out
    assert "::warning::Artifacts are kept for at most 5 days here, not 9." in printed
    assert printed.count("::add-mask::") >= 2
