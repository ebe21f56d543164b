"""Markdown read with GitHub's extensions, and diagrams with the real Mermaid."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.peers.npm import Node, npm_packages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["read_pages"]

_HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def read_pages(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Sequence[str]], list[dict[str, Any]]]:
    """Return a function that tells of each page what is on it."""
    executable, folder = npm_packages(request, tmp_path_factory, _HERE, "npm-pages")
    for script in (_HERE / "page.mjs", _HERE.parent / "peer.mjs"):  # beside the packages, where node looks for them
        shutil.copy(script, folder / script.name)

    def read(pages: Sequence[str]) -> list[dict[str, Any]]:
        answer = Node(folder, executable).run("page.mjs", list(pages), env={}, cwd=folder)
        assert answer.error is None, answer
        found: list[dict[str, Any]] = answer.value
        return found

    return read
