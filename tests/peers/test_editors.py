"""The published schema in the YAML server of editors: it marks what is wrong, explains and completes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.jobfile.test_schema import BAD as WRONG
from tests.jobfile.test_schema import GOOD as RIGHT
from tests.peers.editors.server import editor
from tests.peers.npm import npm_packages

SCHEMA = Path(__file__).parents[2] / "docs" / "checkpoint.schema.json"
GOOD = """\
# yaml-language-server: $schema=./checkpoint.schema.json
job: release
defaults: {timeout: 1h, retry: {max: 2, on: [error, 75]}}
steps:
  - id: build
    run: make
    timeout: 90
    inputs: ["src/**", "!src/gen/"]
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_editor_marks_what_is_wrong_explains_and_completes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    node, packages = npm_packages(request, tmp_path_factory, Path(__file__).parent / "editors", "npm-editors")
    shutil.copy(SCHEMA, tmp_path)
    good, bad = tmp_path / "good.yml", tmp_path / "bad.yml"
    good.write_text(GOOD)
    bad.write_text(GOOD.replace("timeout: 90", "timeuot: 90\n    on-crash: maybe"))
    with editor(node, packages, tmp_path) as server:
        assert server.open(good) == []
        found = {(one["range"]["start"]["line"], one["message"].splitlines()[0]) for one in server.open(bad)}
        assert {line for line, _ in found} == {6, 7}
        assert any("timeuot" in said for _, said in found)
        assert any("rerun" in said and "stop" in said for _, said in found)
        hovered = server.at("hover", good, 6, 6)["contents"]["value"]
        assert "Longest time of each try" in hovered
        good.write_text(GOOD + "    on-crash: \n")
        again = tmp_path / "again.yml"
        again.write_text(GOOD + "    on-crash: \n")
        server.open(again)
        offered = server.at("completion", again, 8, 14)["items"]
        assert {item["label"] for item in offered} >= {"rerun", "stop"}


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_editor_is_of_one_mind_with_the_parser(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    """The same right and wrong files that the parser and check-jsonschema are held against."""
    node, packages = npm_packages(request, tmp_path_factory, Path(__file__).parent / "editors", "npm-editors")
    shutil.copy(SCHEMA, tmp_path)
    said: dict[str, list[str]] = {}
    with editor(node, packages, tmp_path) as server:
        for number, (name, text) in enumerate({**RIGHT, **WRONG}.items()):
            path = tmp_path / f"{number}.yml"
            path.write_text(f"# yaml-language-server: $schema=./checkpoint.schema.json\n{text}")
            said[name] = [one["message"] for one in server.open(path)]
    assert {name: said[name] for name in RIGHT if said[name]} == {}
    assert [name for name in WRONG if not said[name]] == []
