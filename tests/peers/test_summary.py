"""A summary shows as it is meant, in the eyes of a GitHub-like Markdown reader and of the real Mermaid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.model import Status
from checkpoint_action.report.summary import Told, summary
from checkpoint_action.report.timeline import Bar, timeline
from checkpoint_action.runner import events
from tests.peers.pages.reader import read_pages
from tests.report.stories import NASTY, ended, job, nasty, record, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Read = Callable[[Sequence[str]], list[dict[str, Any]]]

__all__ = ["read_pages"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_whatever_the_texts_the_page_has_the_same_shape(read_pages: Read) -> None:
    tails = {text: (text, "plain") for text in NASTY}
    pages = [summary(nasty([text]), tails=tails) for text in NASTY]
    for text, page, found in zip(NASTY, pages, read_pages(pages), strict=True):
        assert found["heading"] == ["checkpoint-run, the steps of release: 1 failed"], page
        assert [len(row) for row in found["rows"]] == [4, 4], page
        assert found["rows"][1][1].startswith("✗ failed: "), page
        assert found["rows"][1][2].startswith("command-changed: "), page
        shown = found["rows"][1][2].removeprefix("command-changed: ")
        if text.isprintable() and len(text) < 100:
            assert shown.strip() == text.strip() == found["rows"][1][0].strip(), page
        assert set(found["elements"]) <= {
            "h2", "p", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "html", "head", "body", "em",
        }, page  # fmt: skip
        assert not {"@", "#", "<", "["} & set(found["text"].replace("#124", "")), page
        assert len(found["code"]) == 1, page
        [[bar]] = found["diagrams"]
        assert bar["milliseconds"] == 1000
        assert bar["kind"] == {"crit": True, "active": False, "done": False}


def test_bars_have_the_names_times_and_kinds_that_were_meant(read_pages: Read) -> None:
    bars = [
        Bar("fetch", 0, 1.5, "restored"),
        Bar("title", 1.5, 0, "done"),
        Bar("section", 1.5, 90_000, "failed"),
        Bar("click", 100_000, 3, "stopped"),
    ]
    [page] = read_pages([timeline(bars)])
    [shown] = page["diagrams"]
    assert [bar["task"] for bar in shown] == ["↺ fetch", "✓ title", "✗ section", "■ click"]
    assert [bar["milliseconds"] for bar in shown] == [1500, 1, 90_000_000, 3000]
    assert [[kind for kind, on in bar["kind"].items() if on] for bar in shown] == [
        ["done"], ["active"], ["crit"], ["crit"],
    ]  # fmt: skip


def test_ten_thousand_steps_are_a_table_that_shows_both_ends(read_pages: Read) -> None:
    ids = [f"step-{number:05d}-{'x' * 80}" for number in range(10_000)]
    told = [Told(0, events.RunStarted(job(*ids)))]
    for at, step in enumerate(ids):
        told += runs(at, at, record(step, Status.DONE, seconds=1.0 + at % 7))
    text = summary([*told, Told(10_000, ended(ran=ids))], limit=200_000)
    [page] = read_pages([text])
    rows = page["rows"]
    assert rows[1][0] == ids[0]
    assert rows[-1][0] == ids[-1]
    assert {len(row) for row in rows} == {4}
    [left_out] = [row[1] for row in rows if row[0] == "…"]
    assert left_out == f"{10_000 - (len(rows) - 2)} steps are left out: the summary would be too large"
