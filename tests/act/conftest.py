"""Fixtures for tests with the real act."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime import bootstrap
from tests.act.harness import ROOT, Act, copy_repository
from tests.act.proxy import Proxy, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def tool_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tool cache with the action's dependencies, made once for all workers."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "tool-cache"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    bootstrap.ensure(
        ROOT / "runtime" / "requirements.txt", {**os.environ, "PATH": path, "RUNNER_TOOL_CACHE": str(folder)}
    )
    return folder


@pytest.fixture(scope="session")
def repository_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of this repository as it is now."""
    folder = tmp_path_factory.mktemp("action") / "checkpoint-run"
    copy_repository(folder)
    return folder


@pytest.fixture
def act(tmp_path: Path, repository_copy: Path, tool_cache: Path) -> Iterator[Act]:
    """Return act with an empty repository, empty caches and this action, of which the test may patch a copy."""
    if sys.platform != "linux" or shutil.which("node") is None:
        pytest.skip("needs Linux and node")
    act = Act(tmp_path / "act", repository_copy, tool_cache)
    yield act
    act.end()


@pytest.fixture
def cache_proxy() -> Iterator[Proxy]:
    """Return a proxy to hand to ``act.run(proxy=…)``: it stands before act's cache server."""
    proxy = Proxy(free_port())
    yield proxy
    proxy.die()
