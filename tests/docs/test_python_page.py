"""The examples on the page about Python are programs that work."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
PRINTED = ["5\n", "", "fetch run never-ran \nfetch pending\n", "long interrupted\n"]


@pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for bash")
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_each_example_runs(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(BLOCKS[number], f"{PAGE.name}, example {number + 1}", "exec"), names)
    said = capsys.readouterr().out
    assert said == PRINTED[number] or (number == 3 and said == "")  # it may be stopped before it has started


def test_the_page_names_all_that_is_public() -> None:
    import inspect  # noqa: PLC0415

    import checkpoint_action  # noqa: PLC0415

    text = PAGE.read_text("utf-8")
    for name in checkpoint_action.__all__:
        assert name in text
    for words in (checkpoint_action.run, checkpoint_action.Job, checkpoint_action.Step, checkpoint_action.Retry):
        for parameter in inspect.signature(words).parameters:
            assert f"`{parameter}`" in text or parameter in ("name", "steps", "id", "command", "max"), parameter
