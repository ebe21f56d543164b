"""Artifacts of a workflow run as a store."""

from __future__ import annotations

import io
import json
import os
import threading
import zipfile
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import BundleError, StoreDeniedError, StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.runner.keys import KeyScheme
from checkpoint_action.store import bounded
from checkpoint_action.store.base import FilePart, Found, PieceStore, Store
from checkpoint_action.store.github_artifact import ENTRY, GithubArtifactStore
from checkpoint_action.toolkit.artifact import ArtifactClient, FindBy
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, Fault, make_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Make = Callable[..., GithubArtifactStore]

CONTENT = b"an archive" * 1000
KEYS = KeyScheme("run7", "job", "7", "1")


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as running:
        yield running


@pytest.fixture
def make_store(service: ActionsService) -> Make:
    """A store as a job of attempt ``attempt`` has it, on github.com (``v2``) or under ``act``."""

    def make(
        kind: str = "v2", *, attempt: int = 1, rest: str = "", order: object = KEYS.origin, **changes: str
    ) -> GithubArtifactStore:
        env = service.env("v2", token=make_token(run=f"run-7.{attempt}"))
        if kind == "act":
            service.artifacts_of_act.present = True
            env = service.env("v2", token=make_token(run="1", job="1")) | {"ACT": "true"}
        fallback = FindBy("octo/demo", 7, rest, service.rest.url) if rest else None
        http = HttpClient(env={}, sleep=lambda _: None)
        client = ArtifactClient(Runtime.resolve(env | changes), http, fallback=fallback, block=3000)
        return GithubArtifactStore(client, retention_days=7, order=order)  # type: ignore[arg-type]

    return make


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("kind", ["v2", "act"])
def test_an_archive_is_kept_found_by_prefix_and_fetched(make_store: Make, source: Path, kind: str) -> None:
    store: Store = make_store(kind)
    assert store.find(KEYS.prefix) is None
    first, second, third = (KEYS.new(step, number) for number, step in enumerate(["z", "build", "a"], 1))
    for key in (first, third, second):
        store.save(key, source)
    assert store.find(KEYS.prefix) == Found(third)
    assert store.find(KEYS.of_step("build")) == Found(second)
    store.fetch(Found(second), source.with_name("target"))
    assert source.with_name("target").read_bytes() == CONTENT
    assert sorted(path.name for path in source.parent.iterdir()) == ["source", "target"]


def test_an_artifact_is_a_zip_that_holds_the_archive_as_it_is_and_for_some_days(
    service: ActionsService, make_store: Make, source: Path
) -> None:
    begin = datetime.now(timezone.utc)
    make_store().save("job-1", source)
    [item] = service.artifact_store.items
    assert item.name == "job-1"
    with zipfile.ZipFile(io.BytesIO(service.blobs.content[item.blob])) as archive:
        [info] = archive.infolist()
        assert (info.filename, info.compress_type) == (ENTRY, zipfile.ZIP_STORED)
        assert archive.read(info) == CONTENT
    kept = datetime.fromisoformat(item.expires_at.replace("Z", "+00:00")) - begin
    assert timedelta(days=7) - timedelta(seconds=1) <= kept <= timedelta(days=7, minutes=5)
    assert [request for request in service.requests if b"mime_type" in request.body] == []


def test_every_key_is_a_name_that_an_artifact_can_have(make_store: Make, source: Path) -> None:
    keys = KeyScheme("content", "my-job." + "x" * 33 + "-0123456789abcdef", "9" * 12, "50")
    key = keys.new("A.b_c-" + "d" * 94, 999_999)
    store = make_store()
    store.save(key, source)
    assert store.find(keys.prefix) == Found(key)


def test_a_later_attempt_finds_what_an_earlier_one_kept_and_the_newest_of_all(make_store: Make, source: Path) -> None:
    """Case: the service's numbers fall from one attempt to the next."""
    first, second = make_store(attempt=1), make_store(attempt=2)
    old = [KEYS.new("build", number) for number in (1, 2)]
    for key in old:
        first.save(key, source)
    assert second.find(KEYS.prefix) == Found(old[1])
    new = KeyScheme("run7", "job", "7", "2").new("build", 1)
    second.save(new, source)
    for store in (first, second, make_store(attempt=3)):
        assert store.find(KEYS.prefix) == Found(new)
        store.fetch(Found(new), source.with_name("target"))


def test_a_key_that_tells_nothing_goes_by_the_time_of_the_service_and_after_every_one_that_does(
    make_store: Make, source: Path
) -> None:
    store, ours = make_store(), KEYS.new("build", 1)
    for key in ("cpr1-run7-job-b", ours, "cpr1-run7-job-a"):
        store.save(key, source)
    assert store.find(KEYS.prefix) == Found(ours)
    assert make_store(order=lambda _key: None).find(KEYS.prefix) == Found("cpr1-run7-job-a")


def test_another_run_finds_nothing(make_store: Make, source: Path) -> None:
    make_store().save("job-1", source)
    token = make_token(run="run-8.1")
    other = make_store(ACTIONS_RUNTIME_TOKEN=token)
    assert other.find("job-") is None
    assert "only artifacts of this workflow run" in other.reach


def test_an_upload_that_broke_off_is_not_found_and_its_name_is_taken(
    service: ActionsService, make_store: Make, source: Path
) -> None:
    store = make_store()
    service.faults.next("PutBlock", Fault.status(403), times=99)
    with pytest.raises(StoreError):
        store.save("job-1", source)
    service.faults.clear()
    assert store.find("job-") is None
    with pytest.raises(StoreTakenError, match="artifact named job-1"):
        store.save("job-1", source)
    store.save("job-2", source)


def test_a_longer_key_is_not_taken_for_the_one_to_fetch(make_store: Make, source: Path) -> None:
    store = make_store()
    store.save("job-10", source)
    with pytest.raises(StoreMissingError, match="no artifact named job-1"):
        store.fetch(Found("job-1"), source.with_name("target"))
    assert not source.with_name("target").exists()


def test_finding_and_fetching_costs_one_look_up(service: ActionsService, make_store: Make, source: Path) -> None:
    store = make_store()
    store.save("job-1", source)
    found = store.find("job-")
    assert found is not None
    store.fetch(found, source.with_name("target"))
    assert service.calls["ListArtifacts"] == 1
    assert "sig" not in repr(found)


@pytest.mark.parametrize("kind", ["v2", "act"])
def test_an_archive_is_handed_over_in_pieces_and_read_in_parts(
    service: ActionsService, make_store: Make, source: Path, kind: str
) -> None:
    store = make_store(kind)
    assert isinstance(store, PieceStore)
    with store.begin("job-1") as entry:
        body = [entry.put(FilePart(source, 0, 5000)), entry.put(FilePart(source, 5000, 5000))]
        entry.finish([entry.put(b"header"), *body])
    whole = b"header" + CONTENT
    found = store.find("job-")
    assert found == Found("job-1")
    assert store.read(found, 0, 6) == b"header"
    assert service.calls["GetBlob"] == 1, "what stands before the archive came along"
    for start, length in ((0, 99_999), (6, 5), (0, 0), (9000, 9999), (len(whole), 5), (len(whole) + 9, 5)):
        assert store.read(found, start, length) == whole[start : start + length]
    assert make_store(kind).read(Found("job-1"), 5000, 20) == whole[5000:5020]
    store.fetch(found, source.with_name("target"))
    assert source.with_name("target").read_bytes() == whole


def test_a_part_is_read_without_the_rest(service: ActionsService, make_store: Make, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(os.urandom(1 << 20))
    store = make_store()
    store.save("job-1", tmp_path / "large")
    sent: list[str] = []
    assert len(store.read(Found("job-1"), 500_000, 1000)) == 1000
    sent = [request.headers["range"] for request in service.requests if "range" in request.headers]
    asked = sum(int(last) - int(first) + 1 for first, last in (text[6:].split("-") for text in sent))
    assert asked <= 2000


@pytest.mark.parametrize("without_ranges", [False, True])
def test_a_server_without_ranges_is_read_all_the_same(
    service: ActionsService, make_store: Make, source: Path, without_ranges: bool
) -> None:
    service.blobs.without_ranges = without_ranges
    store = make_store()
    store.save("job-1", source)
    assert store.read(Found("job-1"), 5, 30) == CONTENT[5:35]


def test_pieces_that_are_not_finished_leave_nothing(service: ActionsService, make_store: Make, source: Path) -> None:
    store = make_store()
    with pytest.raises(StoreError, match="cannot read"), store.begin("job-1") as entry:
        entry.finish([entry.put(FilePart(source.with_name("missing"), 0, 5))])
    with pytest.raises(ZeroDivisionError), store.begin("job-2") as entry:
        entry.finish([entry.put(b"x")][1 // 0 :])
    assert store.find("job-") is None
    assert service.artifact_store.items == []


def test_what_the_service_hides_of_an_earlier_attempt_comes_through_rest(
    service: ActionsService, make_store: Make, source: Path
) -> None:
    make_store(attempt=1).save("job-1", source)
    service.artifacts.old_attempts_are_hidden = True
    target = source.with_name("target")
    with pytest.raises(StoreMissingError, match="job-1"):
        make_store(attempt=2).fetch(Found("job-1"), target)
    store = make_store(attempt=2, rest="rest-token")
    assert store.read(Found("job-1"), 3, 4) == CONTENT[3:7]
    store.fetch(Found("job-1"), target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_may_not_read_is_no_obstacle_where_rest_is(
    service: ActionsService, make_store: Make, source: Path, status: int
) -> None:
    make_store(attempt=1).save("job-1", source)
    for method in ("ListArtifacts", "GetSignedArtifactURL"):
        service.faults.next(method, Fault.status(status), times=9)
    with pytest.raises(StoreDeniedError, match="ListArtifacts"):
        make_store().find("job-")
    store = make_store(rest="rest-token")
    found = store.find("job-")
    assert found == Found("job-1")
    store.fetch(found, source.with_name("target"))
    with pytest.raises(StoreDeniedError, match="401"):
        make_store(rest="expired").find("job-")


def test_a_content_that_is_gone_is_missing_and_the_store_is_not(
    service: ActionsService, make_store: Make, source: Path
) -> None:
    store = make_store()
    store.save("job-1", source)
    store.save("job-2", source)
    [first, second] = service.artifact_store.items
    del service.blobs.content[first.blob]
    service.artifact_store.remove(second)
    for key in ("job-1", "job-2"):
        with pytest.raises(StoreMissingError, match=key):
            store.fetch(Found(key), source.with_name("target"))
        with pytest.raises(StoreMissingError, match=key):
            store.read(Found(key), 0, 5)


def test_an_artifact_of_somebody_else_is_refused_and_leaves_nothing(
    service: ActionsService, make_store: Make, source: Path
) -> None:
    store = make_store()

    def made(*names: str, kind: int = zipfile.ZIP_DEFLATED) -> bytes:
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", kind) as archive:
            for name in names:
                archive.writestr(name, b"content")
        return file.getvalue()

    bodies = {"two": made("a", "b"), "none": made("folder/"), "up": made("../a"), "text": b"no zip at all"}
    for name, body in bodies.items():
        service.artifact_store.add(f"job-{name}", body, run="run-7.1")
        with pytest.raises(BundleError, match=f"job-{name} is not usable"):
            store.fetch(Found(f"job-{name}"), source.with_name("target"))
    with pytest.raises(BundleError, match="job-up is not usable"):
        store.read(Found("job-up"), 0, 5)
    service.artifact_store.add("job-other", made("a"), run="run-7.1")
    store.fetch(Found("job-other"), source.with_name("target"))
    assert source.with_name("target").read_bytes() == b"content"
    assert sorted(path.name for path in source.parent.iterdir()) == ["source", "target"]


def test_a_damaged_content_is_refused_by_its_digest(service: ActionsService, make_store: Make, source: Path) -> None:
    store = make_store()
    store.save("job-1", source)
    [item] = service.artifact_store.items
    service.blobs.content[item.blob] = service.blobs.content[item.blob].replace(b"archive", b"arcHive", 1)
    with pytest.raises(BundleError, match="job-1 is damaged"):
        store.fetch(Found("job-1"), source.with_name("target"))
    assert [path.name for path in source.parent.iterdir()] == ["source"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(400, '{"code":"invalid_argument","msg":"bad\\nname"}'),
        Fault.status(500),
        Fault.status(429, retry_after="1"),
        Fault.reset(),
        Fault.not_json(),
        Fault.truncated(1),
        Fault.status(200, '{"artifacts":[7]}'),
    ],
)
def test_every_failure_of_the_service_is_a_store_error_of_one_line(
    service: ActionsService, make_store: Make, source: Path, fault: Fault
) -> None:
    store = make_store()
    service.faults.next("ListArtifacts", fault, times=9)
    with pytest.raises(StoreError) as found:
        store.find("job-")
    service.faults.next("CreateArtifact", fault, times=9)
    with pytest.raises(StoreError) as saved:
        store.save("job-1", source)
    for caught in (found, saved):
        assert not isinstance(caught.value, (StoreDeniedError, StoreMissingError))
        assert str(caught.value).startswith("Actions artifacts: ")
        assert "\n" not in str(caught.value)


def test_what_will_not_change_is_a_denial(service: ActionsService, make_store: Make, source: Path) -> None:
    quota = json.dumps({"code": "resource_exhausted", "msg": "insufficient usage to create artifact"})
    service.faults.next("CreateArtifact", Fault.status(403, quota))
    with pytest.raises(StoreDeniedError, match="insufficient usage"):
        make_store().save("job-1", source)
    service.artifacts.read_only = True
    with pytest.raises(StoreDeniedError, match="read-only"):
        make_store().save("job-1", source)
    enterprise = make_store(GITHUB_SERVER_URL="https://github.example.com")
    with pytest.raises(StoreDeniedError, match="no artifact service of version 4"):
        enterprise.find("job-")


@pytest.mark.parametrize("lost", [False, True])
def test_a_taken_key_is_told_so_that_another_can_be_used(
    service: ActionsService, make_store: Make, source: Path, lost: bool
) -> None:
    store = make_store()
    if lost:
        service.faults.next("CreateArtifact", Fault.reset(handled=True))
    else:
        store.save("job-1", source)
    with pytest.raises(StoreTakenError, match="job-1"):
        store.save("job-1", source)
    store.save("job-2", source)


def test_a_file_that_cannot_be_read_or_written_is_a_store_error(make_store: Make, source: Path) -> None:
    store = make_store()
    with pytest.raises(StoreError, match="missing"):
        store.save("job-0", source.with_name("missing"))
    store.save("job-1", source)
    with pytest.raises(StoreError, match="no-folder"):
        store.fetch(Found("job-1"), source.parent / "no-folder" / "target")


def test_a_call_that_ignores_its_limits_is_left_behind(make_store: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(bounded, "GRACE", 0.0)
    monkeypatch.setattr(ArtifactClient, "list_artifacts", lambda *_args, **_options: release.wait(60))
    store = make_store()
    monkeypatch.setattr(store, "_call_seconds", 0.01)
    with pytest.raises(StoreError, match="look-up: out of time"):
        store.find("job-")
    release.set()
