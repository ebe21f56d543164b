"""Fixtures for tests of the action as the runner starts it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.action.archives import Held
from tests.action.installation import hurried_action, tool_cache
from tests.action.machine import Workflow
from tests.actions_service.server import ActionsService

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tool cache with the packages of this environment in the place of those that the action would install."""
    return tool_cache(tmp_path_factory.mktemp("tools"))


@pytest.fixture(scope="session")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the action that does not wait between two uploads: the service here tells which is the newer."""
    return hurried_action(tmp_path_factory.mktemp("action"))


@pytest.fixture
def service() -> Iterator[ActionsService]:
    with ActionsService.running() as service:
        yield service


@pytest.fixture
def workflow(tmp_path: Path, service: ActionsService, tools: Path, hurried: Path) -> Iterator[Workflow]:
    """A workflow run whose machines are ended with the test."""
    if sys.platform == "win32":
        pytest.skip("the runner's signals and the commands of bash")
    workflow = Workflow(tmp_path / "workflow", service, tools, hurried)
    yield workflow
    workflow.end()


@pytest.fixture
def held(service: ActionsService, tmp_path: Path) -> Held:
    return Held(service, tmp_path / "held")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A use of the action is several processes and a service: whatever uses it is slow."""
    for item in items:
        if item.path.is_relative_to(HERE) and "workflow" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)
