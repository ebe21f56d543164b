"""Fuzzed: what reports make of texts that a step, a file or a machine chose."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from checkpoint_action.model import Reason, Status
from checkpoint_action.report.actions_log import ActionsLog
from checkpoint_action.report.html_report import HtmlReport
from checkpoint_action.report.summary import Told, summary
from checkpoint_action.runner import events
from checkpoint_action.toolkit.commands import encode
from tests.report.stories import NASTY, ended, job, record, runs
from tests.torture.fuzz_target import Target

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["TARGETS"]

_LIMIT = 1 << 16
_BETWEEN = b"\0|"
_COMMANDS = frozenset({"group", "endgroup", "error", "warning", "notice", "stop-commands", "add-mask"})


class _Tags(HTMLParser):
    """Tags and attributes of a page, each of them once; scripts are none of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[tuple[str, tuple[str, ...]]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add((tag, tuple(sorted(name for name, _ in attrs))))

    def handle_comment(self, data: str) -> None:
        self.found.add(("!--", (data,)))


def _story(texts: list[str]) -> list[Told]:
    told = [Told(0, events.RunStarted(job(*texts)))]
    for at, text in enumerate(texts):
        failed = record(text, Status.FAILED, seconds=1.0, error=text)
        told += runs(at, at, failed, Reason.COMMAND_CHANGED, text)
        told.append(Told(at, events.Warned(text)))
        told.append(Told(at, events.StepsKept((text,), text, 1)))
    return [*told, Told(len(texts), ended(1, ran=texts, failed=texts))]


def _reports(folder: Path) -> Callable[[bytes], bool]:
    page = folder / "report.html"
    plain = _page(page, ["plain", "words"])

    def check(data: bytes) -> bool:
        texts = list(dict.fromkeys(part.decode("utf-8", "surrogateescape") for part in data.split(_BETWEEN)[:12]))
        _check_summary(texts)
        strange = _page(page, texts) - plain
        assert not strange, f"the page has {sorted(strange)[:3]}"
        _check_log(texts)
        return True

    return check


def _page(path: Path, texts: list[str]) -> set[tuple[str, tuple[str, ...]]]:
    report = HtmlReport(())
    for one in _story(texts):
        report(one.event)
    report.write(path)
    tags = _Tags()
    tags.feed(path.read_bytes().decode("ascii"))
    tags.close()
    return tags.found


def _check_summary(texts: list[str]) -> None:
    text = summary(_story(texts), tails={one: one.split("\n")[:20] for one in texts}, limit=_LIMIT)
    assert len(encode(text)) <= _LIMIT, "the summary is too long"
    bare = _without_code(text)
    for sign in ("<script", "<img", "<b>", "@octocat", "](", "<!--"):
        assert sign not in bare, f"{sign} is bare in the summary"


def _without_code(text: str) -> str:
    """All but fenced blocks and code in lines (CommonMark 4.5 and 6.1): what Markdown takes for more than text."""
    lines, fence = [], ""
    for line in text.split("\n"):
        begins = re.match(r"`{3,}", line)
        if fence:
            if re.fullmatch(rf"{fence}`*\s*", line):
                fence = ""
        elif begins and "`" not in line[begins.end() :]:
            fence = begins[0]
        else:
            lines.append(re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", line))
    assert not fence, "a fence does not end"
    return "\n".join(lines)


def _check_log(texts: list[str]) -> None:
    """The log as the runner reads it: a command is a line that begins with ``::``, or that has ``##[`` anywhere."""
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape")
    with redirect_stdout(out):
        log = ActionsLog(tails={one: one.split("\n")[:20] for one in texts})
        for one in _story(texts):
            log(one.event)
        out.flush()
    token = ""
    for line in re.split(r"\r\n|\r|\n", raw.getvalue().decode("utf-8", "replace")):
        if token:
            token = "" if line.strip() == f"::{token}::" else token
            continue
        match = re.match(r"\s*::([^\s:]+)[^:]*::(.*)", line)
        if match is None:
            assert "##[" not in line, f"an old command: {line[:80]!r}"
            assert not re.match(r"\s*::.*::", line), f"a command: {line[:80]!r}"
            continue
        assert match[1] in _COMMANDS, f"a command: {line[:80]!r}"
        token = match[2] if match[1] == "stop-commands" else ""


def _seeds() -> list[bytes]:
    nasty = [text.encode("utf-8", "surrogatepass") for text in NASTY]
    commands = [
        b"::set-output name=a::b",
        b"  ::error::x",
        b"##[error]x",
        b"a\r::set-env name=A::b",
        b"\n::add-path::/x",
    ]
    lists = [nasty[:10], nasty[10:], commands, [b"a"], [b"<img src=x onerror=alert(1)>"]]
    return [_BETWEEN.join(texts) for texts in lists]


_WORDS = [
    *(
        _BETWEEN,
        b"<script>",
        b"<img src=x>",
        b"</pre>",
        b"</td>",
        b"```",
        b"``",
        b"`",
        b"\\|",
        b"@octocat",
        b"::error::",
    ),
    *(b"::stop-commands::x", b"##[command]", b"\r", b"\xe2\x80\xa8", b"\xc2\x85", b"](x)", b"\x1b[", b"-->", b"&lt;"),
]

TARGETS = (Target("reports", _reports, _seeds, _WORDS),)
