"""Runs as a listener is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from checkpoint_action.model import Action, Decision, Job, Reason, Record, Status, Step
from checkpoint_action.report.summary import Told
from checkpoint_action.runner import events

if TYPE_CHECKING:
    from collections.abc import Sequence

W = Path("/w")
# What Markdown, tables, Mermaid, GitHub's references and terminals take for more than text.
NASTY = [
    "a|b",
    r"a\|b",
    r"a\\|b|c\|",
    "``` x `` y `",
    "`",
    " ` ",
    "<b>bold</b><!--",
    "@octocat and #123 and GH-1",
    "two\nlines\r\n\r\n| a | b |",
    "title",
    "section",
    "2024-01-01",
    "x: y; z # %% %%{init: {}}%%",
    "\x1b[31mred\x07\x00",
    "\u202etxt.exe\u2066",
    "*a* _b_ ~c~ [d](https://e) ![f](g) $h$ :smile: https://i",
    "&lt;&#124;&amp;",
    "\udcff\ud800",
    "日本語 ✓ é",
    "x" * 3000,
    "\\",
    "---",
]


def job(*ids: str, **changes: Any) -> Job:
    return Job("release", W, tuple(Step(step, "c", "bash", W, **changes) for step in ids))


def record(step: str, status: Status = Status.DONE, *, seconds: float = 65.0, tries: int = 1, **more: Any) -> Record:
    return Record(step, status, "f", "c", duration=seconds, tries=tries, **more)


def runs(at: float, position: int, done: Record, reason: Reason = Reason.NEVER_RAN, detail: str = "") -> list[Told]:
    """A step's start, and its end as many seconds later as it took."""
    decision = Decision(done.step, Action.RUN, reason, detail)
    return [
        Told(at, events.StepStarted(position, decision, "c")),
        Told(at + done.duration, events.StepEnded(position, done)),
    ]


def ended(code: int = 0, **more: Any) -> events.RunEnded:
    lists = {name: tuple(more.pop(name, ())) for name in ("ran", "skipped", "restored", "failed", "pending")}
    given: dict[str, Any] = {"signal": None, "seconds": 75.0, "saved": 0.0, **lists, **more}
    return events.RunEnded("release", code, **given)


def nasty(texts: Sequence[str] = tuple(NASTY)) -> list[Told]:
    """A run whose ids, reasons and errors are all of them."""
    told = [Told(0, events.RunStarted(job(*texts)))]
    for at, text in enumerate(texts):
        failed = record(text, Status.FAILED, seconds=1.0, error=text)
        told += runs(at, at, failed, Reason.COMMAND_CHANGED, text)
    return [*told, Told(len(texts), ended(1, ran=texts, failed=texts))]
