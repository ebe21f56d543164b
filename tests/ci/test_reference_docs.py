"""The reference pages: all verbs, options and keys, and never stale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.grammar import VERBS
from checkpoint_action.jobfile.resolve import JOB_KEYS, STEP_KEYS
from tests.ci.loading import script

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

reference_docs = script("reference_docs")


def test_the_pages_are_what_the_program_knows(capsys: pytest.CaptureFixture[str]) -> None:
    assert reference_docs.main(["--check"]) == 0, capsys.readouterr().err


def test_no_verb_option_or_key_is_left_out() -> None:
    page = reference_docs.command_line()
    for verb in VERBS:
        assert f"\n## `{verb}`\n" in page
    run = page.partition("## `run`")[2].partition("## `plan`")[0]
    for option in ("--step` `ID:COMMAND`", "--only` `ID …`", "--wait-lock` `[SECONDS]`", "--quiet` |"):
        assert option in run
    assert "--force` `[ID …]`" in run
    assert "--follow" not in run
    plan = page.partition("## `plan`")[2].partition("## `graph`")[0]
    assert "--only` `ID …`" in plan
    assert "| `--timeout`" not in plan
    keys = reference_docs.job_file()
    assert "```yaml\njob: release" in keys
    for key in (*JOB_KEYS, *STEP_KEYS):
        assert f"| `{key}` |" in keys


def test_stale_pages_are_noticed_and_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference_docs, "DOCS", tmp_path)
    assert reference_docs.main(["--check"]) == 1
    assert capsys.readouterr().err.count("is stale") == 2
    assert reference_docs.main([]) == 0
    assert reference_docs.main(["--check"]) == 0
