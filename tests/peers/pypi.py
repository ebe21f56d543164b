"""The PyPI package ``actions-toolkit``, in an environment of its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.peers.installation import install, installed

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["actions_toolkit"]

# Without the rest of what it asks for: its core needs but this, and the rest is large and compiled.
_PACKAGES = ("actions-toolkit==0.1.15", "requests", "urllib3", "idna", "certifi", "charset-normalizer")


@pytest.fixture(scope="session")
def actions_toolkit(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python that can import it."""

    def make(folder: Path) -> None:
        install([sys.executable, "-m", "venv", str(folder / "venv")], folder)
        python = str(_python(folder))
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--prefer-binary"]
        install([*pip, *_PACKAGES], folder)

    identity = f"{sys.version} {sys.base_prefix} {_PACKAGES}".encode()
    return _python(installed(request, tmp_path_factory, "pypi-peers", identity, make))


def _python(folder: Path) -> Path:
    if sys.platform == "win32":
        return folder / "venv" / "Scripts" / "python.exe"
    return folder / "venv" / "bin" / "python"
