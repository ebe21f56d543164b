"""A CircleCI orb from its source: packed as ``circleci orb pack`` does it, expanded as CircleCI does at a start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["expanded", "packed"]

_INCLUDE = re.compile(r"<<\s*include\(([^)]+)\)\s*>>")
_PARAMETER = re.compile(r"<<\s*parameters\.([a-z0-9_-]+)\s*>>")
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "enum": (str,),
    "executor": (str, dict),
}


def packed(source: Path) -> dict[str, Any]:
    """The orb: each file of a folder is an entry of that name, and what is included stands in it."""
    orb: dict[str, Any] = yaml.safe_load((source / "@orb.yml").read_text())
    for kind in ("commands", "jobs", "executors", "examples"):
        orb[kind] = {file.stem: yaml.safe_load(file.read_text()) for file in sorted((source / kind).glob("*.yml"))}
    return dict(_included(orb, source))


def _included(node: Any, source: Path) -> Any:
    if isinstance(node, dict):
        return {key: _included(value, source) for key, value in node.items()}
    if isinstance(node, list):
        return [_included(value, source) for value in node]
    if isinstance(node, str) and (match := _INCLUDE.fullmatch(node)):
        text = (source / match[1]).read_text()
        assert "<<" not in text, "a parameter would begin there"
        return text
    return node


def expanded(orb: Mapping[str, Any], job: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A job of the orb with nothing of orbs in it any more."""
    made = _with(orb["jobs"][job], given)
    executor = made.pop("executor")
    name, arguments = (executor, {}) if isinstance(executor, str) else (executor["name"], executor)
    if name in orb["executors"]:
        made.update(_with(orb["executors"][name], {key: value for key, value in arguments.items() if key != "name"}))
    made["steps"] = _steps(made["steps"], orb)
    return made


def _with(definition: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A definition with its parameters filled in; AssertionError where one is not right."""
    parameters = definition.get("parameters", {})
    assert set(given) <= set(parameters), f"no such parameter: {set(given) - set(parameters)}"
    values = {}
    for name, parameter in parameters.items():
        assert name in given or "default" in parameter, f"{name} is missing"
        values[name] = given.get(name, parameter.get("default"))
        assert isinstance(values[name], _TYPES[parameter["type"]]), (
            f"{name}: {values[name]!r} is no {parameter['type']}"
        )
        assert parameter["type"] != "enum" or values[name] in parameter["enum"], f"{name}: {values[name]!r}"
    body = {key: value for key, value in definition.items() if key not in ("parameters", "description")}
    filled = _filled(body, values)
    assert isinstance(filled, dict)
    return filled


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(node, dict):
        return {key: _filled(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_filled(value, values) for value in node]
    if not isinstance(node, str):
        return node
    if match := _PARAMETER.fullmatch(node):
        return values[match[1]]
    return _PARAMETER.sub(lambda match: str(values[match[1]]), node)


def _steps(steps: list[Any], orb: Mapping[str, Any]) -> list[Any]:
    made: list[Any] = []
    for step in steps:
        name, arguments = (step, {}) if isinstance(step, str) else next(iter(step.items()))
        if name == "when":
            if _holds(arguments["condition"]):
                made += _steps(arguments["steps"], orb)
        elif name in orb["commands"]:
            made += _steps(_with(orb["commands"][name], arguments)["steps"], orb)
        else:
            made.append(step)
    return made


def _holds(condition: Mapping[str, Any]) -> bool:
    ((kind, of),) = condition.items()
    assert kind == "matches"
    return re.search(of["pattern"], of["value"]) is not None
