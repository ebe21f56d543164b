"""Whether the store that a run would use answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint_action.health.finding import Level
from checkpoint_action.health.stores import stores
from tests.console import Console

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("url", ["", "none"])
def test_no_store_is_no_finding(url: str) -> None:
    assert stores(url) == []


def test_a_folder_answers_and_is_not_made(tmp_path: Path) -> None:
    [found] = stores((tmp_path / "store").as_uri())
    assert found.level is Level.OK
    assert "answers in" in found.found
    assert not (tmp_path / "store").exists()


def test_what_is_no_store_is_a_problem_with_its_code() -> None:
    [found] = stores("s4://x")
    assert (found.level, found.code) == (Level.PROBLEM, "CPR506")
    assert "docs/stores.md" in found.remedy


def test_a_store_that_does_not_answer_is_a_warning_as_jobs_run_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    loop = tmp_path / "store" / "loop"
    loop.symlink_to(loop)
    [found] = stores((loop / "deep").as_uri())
    assert found.level is Level.WARNING
    assert "jobs run all the same" in found.remedy


def test_doctor_looks_at_the_store_that_is_named(tmp_path: Path) -> None:
    console, url = Console(tmp_path), f"file://{tmp_path}/store"
    assert "answers in" in console.run("doctor", "--store", url).stdout
    assert "answers in" in console.run("doctor", env={"CHECKPOINT_STORE": url}).stdout
    assert "answers in" not in console.run("doctor").stdout
