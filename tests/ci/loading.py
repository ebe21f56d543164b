"""The scripts of ``.ci``, which are no package, as modules."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["script"]


def script(name: str) -> ModuleType:
    """The module of ``.ci/NAME.py``."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[2] / ".ci" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
