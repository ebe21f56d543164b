"""A service, and a client whose waits take no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.artifact import ArtifactClient, FindBy
from checkpoint_action.toolkit.blob import DownloadPlan, UploadPlan
from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService, make_token
from tests.toolkit.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CONTENT = bytes(range(256)) * 40
SMALL = UploadPlan(single=1000, block=1000, parallel=4)
SMALL_PARTS = DownloadPlan(part=3000, parallel=4)


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def http(clock: Clock) -> Iterator[HttpClient]:
    client = HttpClient(env={}, monotonic=clock.monotonic, sleep=clock.sleep, wall=clock.wall, jitter=lambda: 0.0)
    yield client
    client.close()


@pytest.fixture
def make_cache(service: ActionsService, http: HttpClient) -> Callable[..., Cache]:
    """A cache client for the environment ``v2``, ``v1``, ``act`` or ``gitea``, changed by ``changes``."""

    def make(kind: str, *, token: str | None = None, masks: list[str] | None = None, **changes: str) -> Cache:
        if kind == "act":
            service.v1.manner = "act"
        if kind == "gitea":
            kind, service.v1.manner = "v2", "gitea"
            service.v2.be_gitea()
        runtime = Runtime.resolve(service.env(kind, token=token) | changes)
        mask = (masks if masks is not None else []).append
        return Cache(runtime, http, mask=mask, plan=SMALL, fetch_plan=SMALL_PARTS)

    return make


@pytest.fixture
def make_artifacts(service: ActionsService, http: HttpClient, clock: Clock) -> Callable[..., ArtifactClient]:
    """An artifact client for the environment ``v2`` or ``act``, changed by ``changes``."""

    def make(
        kind: str = "v2",
        *,
        token: str | None = None,
        masks: list[str] | None = None,
        warnings: list[str] | None = None,
        fallback: FindBy | None = None,
        **changes: str,
    ) -> ArtifactClient:
        env = service.env("v2", token=token)
        if kind == "act":
            service.artifacts_of_act.present = True
            env = service.env("v2", token=token or make_token(run="1", job="1")) | {"ACT": "true"}
        return ArtifactClient(
            Runtime.resolve(env | changes),
            http,
            mask=(masks if masks is not None else []).append,
            warn=(warnings if warnings is not None else []).append,
            fallback=fallback,
            block=1000,
            parallel=4,
            fetch_plan=SMALL_PARTS,
            wall=clock.wall,
        )

    return make


@pytest.fixture
def find_by(service: ActionsService) -> FindBy:
    """The service's run 1, seen through REST."""
    return FindBy("octo/demo", 1, "rest-token", service.rest.url)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of some ten blocks."""
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path
