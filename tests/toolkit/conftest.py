"""A service, and a client whose waits take no time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.toolkit.blob import UploadPlan
from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime
from tests.actions_service import ActionsService
from tests.toolkit.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CONTENT = bytes(range(256)) * 40
SMALL = UploadPlan(single=1000, block=1000, parallel=4)


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
    """A cache client for the environment ``v2``, ``v1`` or ``act``, changed by ``changes``."""

    def make(kind: str, *, token: str | None = None, masks: list[str] | None = None, **changes: str) -> Cache:
        if kind == "act":
            service.v1.manner = "act"
        runtime = Runtime.resolve(service.env(kind, token=token) | changes)
        return Cache(runtime, http, mask=(masks if masks is not None else []).append, plan=SMALL)

    return make


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A file of some ten blocks."""
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return path
