"""Pages outside of the site lead to files that are there, and the site has all its pages in its navigation."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?![a-z]+:)(?P<path>[^)#\s]*)(?:#[^)\s]*)?\)|src=\"(?![a-z]+:)(?P<image>[^\"]+)\"")
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "examples/workflows/README.md"]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_file(name: str) -> None:
    page = ROOT / name
    lost = [
        match[0]
        for match in LINK.finditer(page.read_text("utf-8"))
        if (target := match["path"] or match["image"]) and not (page.parent / target).exists()
    ]
    assert lost == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    named = set(re.findall(r"[\w/-]+\.md", navigation))
    assert named == {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
