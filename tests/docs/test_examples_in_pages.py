"""What the pages show of job files and workflows is what the program and the action take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from checkpoint_action.jobfile.resolve import JobDefaults, load_job, load_steps

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r'^```yaml(?: title="(?P<title>[^"]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL)
BLOCKS = [
    pytest.param(match["title"] or "", match["text"], id=f"{page.name}:{number}")
    for page in PAGES
    for number, match in enumerate(BLOCK.finditer(page.read_text("utf-8")), 1)
]
INPUTS = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]


def uses(value: Any) -> Iterator[dict[str, Any]]:
    """All uses of the action somewhere in a document."""
    if isinstance(value, dict):
        if str(value.get("uses", "")).startswith("agenticaotearoa/checkpoint-run@"):
            yield value
        for below in value.values():
            yield from uses(below)
    elif isinstance(value, list):
        for below in value:
            yield from uses(below)


@pytest.mark.parametrize(("title", "text"), BLOCKS)
def test_an_example_is_one(title: str, text: str) -> None:
    document = yaml.safe_load(text)
    defaults = JobDefaults(name="job", root=ROOT, base=ROOT)
    if title == "checkpoint.yml":
        load_job(text, title, defaults)
    for one in uses(document):
        given = one.get("with", {})
        assert set(given) <= set(INPUTS)
        if "steps" in given:
            load_steps(given["steps"], "steps", defaults)


def test_the_first_workflow_is_short() -> None:
    found = BLOCK.search((ROOT / "docs" / "index.md").read_text("utf-8"))
    assert found is not None
    assert len(found["text"].splitlines()) <= 12
