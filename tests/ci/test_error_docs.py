"""The page of errors: one section for each kind, and never stale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.errors import Kind
from tests.ci.loading import script

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

error_docs = script("error_docs")


def test_the_page_is_what_the_kinds_say() -> None:
    assert error_docs.main(["--check"]) == 0
    page = error_docs.PAGE.read_text("utf-8")
    assert [line for line in page.splitlines() if line.startswith("### ")] == [f"### {kind.value}" for kind in Kind]


def test_a_stale_page_is_noticed_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "errors.md"
    page.write_text(error_docs.page() + "more\n", "utf-8")
    monkeypatch.setattr(error_docs, "PAGE", page)
    assert error_docs.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert error_docs.main([]) == 0
    assert error_docs.main(["--check"]) == 0
