from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.errors import StoreDeniedError, StoreError, StoreMissingError, StoreTakenError
from checkpoint_action.store import bounded
from checkpoint_action.store.base import Found, Store
from checkpoint_action.store.github_cache import CACHE_VERSION, GithubCacheStore
from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.exchange import FileSlice
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, Fault, make_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
CONTENT = b"an archive" * 1000
LEAVES = """
import os, sys, threading, time
from pathlib import Path
from checkpoint_action.store.github_cache import GithubCacheStore
from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime

started = threading.Event()

class Http(HttpClient):
    def request(self, method, url, *, label, **options):
        if label == "Put Block":
            started.set()
        return super().request(method, url, label=label, **options)

store = GithubCacheStore(Cache(Runtime.resolve(os.environ), Http(env={})))
threading.Thread(target=store.save, args=("job-1", Path(sys.argv[1])), daemon=True).start()
started.wait(30)
sys.exit(7)
"""
LOOKUP = "GetCacheEntryDownloadURL"


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as running:
        yield running


@pytest.fixture
def make_store(service: ActionsService) -> Callable[..., GithubCacheStore]:
    def make(kind: str = "v2", *, token: str | None = None, **changes: str) -> GithubCacheStore:
        http = HttpClient(env={}, sleep=lambda _: None)
        return GithubCacheStore(Cache(Runtime.resolve(service.env(kind, token=token) | changes), http))

    return make


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("kind", ["v2", "v1", "act"])
def test_an_archive_is_kept_found_by_prefix_and_fetched(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path, kind: str
) -> None:
    service.v1.manner = "act" if kind == "act" else "github"
    store: Store = make_store(kind)
    assert store.find("cpr1-7-job-") is None
    store.save("cpr1-7-job-build-1", source)
    store.save("cpr1-7-job-test-2", source)
    found = store.find("cpr1-7-job-")
    assert found == Found("cpr1-7-job-test-2")
    store.fetch(found, source.with_name("target"))
    assert source.with_name("target").read_bytes() == CONTENT


def test_entries_of_other_clients_are_never_met() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", CACHE_VERSION)


def test_an_archive_can_be_fetched_by_its_key_alone(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    make_store().save("job-1", source)
    make_store().fetch(Found("job-1"), source.with_name("target"))
    assert source.with_name("target").read_bytes() == CONTENT
    assert service.calls[LOOKUP] == 1


def test_finding_and_fetching_costs_one_look_up(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    store = make_store()
    store.save("job-1", source)
    found = store.find("job-")
    assert found is not None
    store.fetch(found, source.with_name("target"))
    assert service.calls[LOOKUP] == 1
    store.fetch(found, source.with_name("again"))
    assert service.calls[LOOKUP] == 2


def test_a_signed_address_never_leaves_the_store(make_store: Callable[..., GithubCacheStore], source: Path) -> None:
    store = make_store()
    store.save("job-1", source)
    assert "sig" not in repr(store.find("job-"))


def test_a_longer_key_is_not_taken_for_the_one_to_fetch(
    make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    store = make_store()
    store.save("job-10", source)
    with pytest.raises(StoreMissingError, match="job-1 is gone"):
        store.fetch(Found("job-1"), source.with_name("target"))
    assert not source.with_name("target").exists()


def test_an_answer_with_a_foreign_key_is_a_miss(
    service: ActionsService, make_store: Callable[..., GithubCacheStore]
) -> None:
    body = '{"ok":true,"signed_download_url":"http://h/","matched_key":"foreign-1"}'
    service.faults.next(LOOKUP, Fault.status(200, body))
    assert make_store().find("job-") is None


def test_an_entry_that_went_between_look_up_and_download_is_gone_and_the_store_is_not(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    store = make_store()
    store.save("job-1", source)
    found = store.find("job-")
    assert found is not None
    service.faults.next("GetBlob", Fault.status(404), times=99)
    with pytest.raises(StoreMissingError, match="job-1 is gone"):
        store.fetch(found, source.with_name("target"))
    service.faults.next(LOOKUP, Fault.status(404, '{"code":"bad_route","msg":"no such method"}'), times=9)
    with pytest.raises(StoreError) as caught:
        make_store().fetch(found, source.with_name("target"))
    assert not isinstance(caught.value, StoreMissingError)


def test_letter_case_does_not_hide_an_entry(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    service.v1.manner = "act"
    store = make_store("act")
    store.save("Job-1", source)
    assert store.find("Job-") == Found("job-1")
    store.fetch(Found("Job-1"), source.with_name("target"))


@pytest.mark.parametrize(
    "fault",
    [
        Fault.status(400, '{"code":"invalid_argument","msg":"bad\\nkey"}'),
        Fault.status(500),
        Fault.status(429, retry_after="1"),
        Fault.reset(),
        Fault.not_json(),
        Fault.truncated(2),
        Fault.status(200, '{"ok":true}'),
    ],
)
def test_every_failure_of_the_service_is_a_store_error_of_one_line(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path, fault: Fault
) -> None:
    store = make_store()
    service.faults.next(LOOKUP, fault, times=9)
    with pytest.raises(StoreError) as found:
        store.find("job-")
    service.faults.next("CreateCacheEntry", fault, times=9)
    with pytest.raises(StoreError) as saved:
        store.save("job-1", source)
    for caught in (found, saved):
        assert not isinstance(caught.value, StoreDeniedError)
        assert str(caught.value).startswith("Actions cache: ")
        assert "\n" not in str(caught.value)


def test_a_refused_token_is_a_denial(make_store: Callable[..., GithubCacheStore], source: Path) -> None:
    store = make_store(token=make_token([]))
    with pytest.raises(StoreDeniedError, match="cache read denied"):
        store.find("job-")
    with pytest.raises(StoreDeniedError, match="cache write denied"):
        store.save("job-1", source)
    with pytest.raises(StoreDeniedError, match="permits no writes"):
        make_store(ACTIONS_CACHE_MODE="read").save("job-1", source)


def test_a_denial_tells_what_the_token_does_reach(make_store: Callable[..., GithubCacheStore], source: Path) -> None:
    store = make_store(token=make_token([("refs/pull/5/merge", 1), ("refs/heads/main", 1)]))
    words = "this job can read entries of refs/pull/5/merge, refs/heads/main and write entries of no ref"
    assert store.reach == words
    with pytest.raises(StoreDeniedError, match=rf"write denied: .* \({words}\)$"):
        store.save("job-1", source)


def test_a_used_up_quota_is_a_denial(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    service.faults.next("CreateCacheEntry", Fault.status(400, '{"msg":"insufficient usage to create cache"}'))
    with pytest.raises(StoreDeniedError, match="insufficient usage"):
        make_store().save("job-1", source)


@pytest.mark.parametrize("lost", [False, True])
def test_a_taken_key_is_told_so_that_another_can_be_used(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path, lost: bool
) -> None:
    store = make_store()
    if lost:
        service.faults.next("CreateCacheEntry", Fault.reset(handled=True))
    else:
        store.save("job-1", source)
    with pytest.raises(StoreTakenError, match="cache key job-1 is taken"):
        store.save("job-1", source)
    store.save("job-2", source)


@pytest.mark.parametrize("kind", ["v2", "v1", "act"])
def test_an_archive_is_handed_over_in_pieces_and_its_first_bytes_are_read_alone(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path, kind: str
) -> None:
    service.v1.manner = "act" if kind == "act" else "github"
    store = make_store(kind)
    with store.begin("job-1") as entry:
        body = [entry.put(FileSlice(source, 0, 5000)), entry.put(FileSlice(source, 5000, 5000))]
        entry.finish([entry.put(b"header"), *body])
    found = store.find("job-")
    assert found == Found("job-1")
    assert store.read(found, 0, 6) == b"header"
    assert store.read(found, 6, 99_999) == CONTENT
    store.fetch(found, source.with_name("target"))
    assert source.with_name("target").read_bytes() == b"header" + CONTENT
    assert service.calls[LOOKUP if kind == "v2" else "lookup"] == 1
    assert store.read(Found("job-1"), 2, 2) == b"ad"


def test_what_goes_wrong_with_a_piece_is_a_store_error(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    store = make_store()
    with pytest.raises(StoreError, match="cannot read"), store.begin("job-1") as entry:
        entry.finish([entry.put(FileSlice(source.with_name("missing"), 0, 5))])
    service.faults.next("PutBlock", Fault.status(403), times=99)
    with pytest.raises(StoreError, match="answered 403"), store.begin("job-2") as entry:
        entry.finish([entry.put(b"x") for _ in range(99)])
    with pytest.raises(ZeroDivisionError), store.begin("job-3") as entry:
        entry.finish([entry.put(b"x")][1 // 0 :])
    with pytest.raises(StoreTakenError), store.begin("job-1"):
        pass
    assert store.find("job-") is None


def test_a_read_of_an_entry_that_is_gone_is_missing(
    service: ActionsService, make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    store = make_store()
    store.save("job-1", source)
    found = store.find("job-1")
    assert found is not None
    service.entries.all.clear()
    service.blobs.content.clear()
    with pytest.raises(StoreMissingError, match="job-1 is gone"):
        store.read(found, 0, 5)
    with pytest.raises(StoreMissingError, match="job-1 is gone"):
        make_store().read(found, 0, 5)


def test_a_transfer_that_nobody_waits_for_does_not_keep_the_process_alive(
    service: ActionsService, tmp_path: Path
) -> None:
    service.faults.next("PutBlock", Fault.slow(60), times=9)
    script = tmp_path / "leaves.py"
    script.write_text(LEAVES)
    (tmp_path / "archive").write_bytes(bytes(64 << 20))
    env = {**os.environ, **service.env(), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script), str(tmp_path / "archive")], env=env, timeout=50, check=False)
    assert done.returncode == 7


def test_a_job_without_a_cache_is_a_store_error(make_store: Callable[..., GithubCacheStore]) -> None:
    with pytest.raises(StoreError, match="no Actions cache"):
        make_store(ACTIONS_RESULTS_URL="").find("job-")


def test_a_file_that_cannot_be_read_or_written_is_a_store_error(
    make_store: Callable[..., GithubCacheStore], source: Path
) -> None:
    store = make_store()
    with pytest.raises(StoreError, match="missing"):
        store.save("job-0", source.with_name("missing"))
    store.save("job-1", source)
    with pytest.raises(StoreError, match="no-folder"):
        store.fetch(Found("job-1"), source.parent / "no-folder" / "target")


def test_a_call_that_ignores_its_limits_is_left_behind(
    make_store: Callable[..., GithubCacheStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(bounded, "GRACE", 0.0)
    monkeypatch.setattr(Cache, "lookup", lambda *_args, **_options: release.wait(60))
    store = make_store()
    monkeypatch.setattr(store, "_lookup_seconds", 0.01)
    with pytest.raises(StoreError, match="look-up: out of time"):
        store.find("job-")
    release.set()


def test_a_fault_in_our_own_code_is_not_hidden(
    make_store: Callable[..., GithubCacheStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(Cache, "lookup", broken)
    with pytest.raises(AssertionError):
        make_store().find("job-")
