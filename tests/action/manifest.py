"""The one Python step of the composite action, as ``action.yml`` has it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ROOT", "SCRIPT", "handed_out", "variables"]

ROOT = Path(__file__).resolve().parents[2]

_ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
[_RUN] = [step for step in _ACTION["runs"]["steps"] if step.get("id") == "run"]

SCRIPT: str = _RUN["run"]
"""What bash runs."""


def variables(given: Mapping[str, str], runtime: Mapping[str, str]) -> dict[str, str]:
    """The variables that are set for the step.

    :param given: inputs; the others have their defaults.
    :param runtime: what the handover gives.
    """
    unknown = given.keys() - _ACTION["inputs"].keys()
    assert not unknown, unknown
    found = {}
    for name, text in _RUN["env"].items():
        if name == "CPR_RUNTIME":
            found[name] = json.dumps({key: value for key, value in runtime.items() if key.startswith("ACTIONS_")})
            continue
        match = re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", text)
        assert match, text
        found[name] = given.get(match[1], str(_ACTION["inputs"][match[1]].get("default", "")))
    return found


def handed_out(outputs: Mapping[str, str]) -> dict[str, str]:
    """The outputs of the action.

    :param outputs: those of the step.
    """
    found = {}
    for name, declared in _ACTION["outputs"].items():
        match = re.fullmatch(r"\$\{\{ steps\.run\.outputs\.([a-z-]+) \}\}", declared["value"])
        assert match, declared
        found[name] = outputs.get(match[1], "")
    assert not outputs.keys() - found.keys(), "an output that action.yml does not hand on"
    return found
