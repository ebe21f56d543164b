"""The picture of a resumed run shows what really happens."""

from __future__ import annotations

import sys
from xml.etree import ElementTree as ET

import pytest

from tests.ci.loading import script

resumed_run = script("resumed_run")


def texts(picture: str) -> list[str]:
    root = ET.fromstring(picture)
    return [element.text or "" for element in root if element.tag.endswith("}text")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for bash")
def test_it_is_drawn_from_two_real_runs() -> None:
    said = texts(resumed_run.drawn(resumed_run.printed()))
    assert said.count("$ checkpoint-run") == 2
    second = said[said.index("Killed") + 2 :]
    assert [line.partition(",")[0] for line in second[:2]] == [
        "[1/4] fetch: skipped (done)",
        "[2/4] build: skipped (done)",
    ]
    assert second[2] == "[3/4] test: runs (interrupted-before)"


def test_the_picture_in_the_documentation_is_one_of_these() -> None:
    picture = resumed_run.PICTURE.read_text("utf-8")
    said = texts(picture)
    assert "Killed" in said
    assert sum("skipped (done)" in line for line in said) == 2
    assert len(picture.encode()) < 8192
    assert "<script" not in picture
