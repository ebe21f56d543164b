"""What docs/other-ci.md tells people to write is what the CI systems, and our parts for them, take."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.integrations.gitlab import COMPONENT
from tests.integrations.machines import ROOT, valid
from tests.integrations.orb import expanded, packed

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "other-ci.md").read_text(encoding="utf-8")
BLOCKS: dict[str, Any] = {
    schema: yaml.safe_load(text)
    for schema, text in re.findall(r"^<!-- schema: (\S+) -->\n```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
}


def test_every_configuration_on_the_page_names_its_schema() -> None:
    assert len(BLOCKS) == PAGE.count("```yaml") == 5


@pytest.mark.parametrize("schema", BLOCKS)
def test_a_configuration_is_what_the_system_takes(tmp_path: Path, schema: str) -> None:
    valid(schema, BLOCKS[schema], tmp_path)


def test_the_component_takes_its_inputs() -> None:
    inputs = yaml.safe_load(COMPONENT.read_text().split("\n---\n")[0])["spec"]["inputs"]
    assert set(BLOCKS["vendor.gitlab-ci"]["include"][0]["inputs"]) <= set(inputs)


def test_the_plugin_takes_its_options() -> None:
    options = yaml.safe_load((ROOT / "plugin.yml").read_text())["configuration"]["properties"]
    ((_, given),) = BLOCKS["vendor.buildkite"]["steps"][0]["plugins"][0].items()
    assert set(given) <= set(options)


def test_the_orb_takes_its_parameters() -> None:
    orb = packed(ROOT / "integrations" / "circleci" / "src")
    job = BLOCKS["vendor.circle-ci"]["workflows"]["build"]["jobs"][0]
    assert expanded(orb, "run", job["checkpoint-run/run"])["steps"]


def test_the_shared_step_takes_its_options() -> None:
    step = (ROOT / "integrations" / "jenkins" / "vars" / "checkpointRun.groovy").read_text()
    known = set(re.findall(r"'([a-zA-Z]+)'", "".join(re.findall(r"def (?:texts|ours) = (.*)", step))))
    (call,) = re.findall(r"checkpointRun\((.*?)'''", PAGE, re.DOTALL)
    assert set(re.findall(r"(\w+): ", call)) <= known
