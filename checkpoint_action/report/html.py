"""A job as one HTML page: it loads nothing from elsewhere, and needs no script to be read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from checkpoint_action.report.words import duration, one_line, size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Line", "page_lines"]

_BARS = 200  # more are thinner than a line of text
_LONGEST = 400  # characters of a reason
_ROW, _LEFT, _WIDTH = 20, 190, 900
_NO_HTML = re.compile(
    "[\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane * 65536 + 65534)}{chr(plane * 65536 + 65535)}" for plane in range(17))
    + "]"
)
_STYLE = """\
:root{color-scheme:light dark;--page:#fff;--text:#1f2328;--soft:#57606a;--line:#d0d7de;--box:#f6f8fa;
--good:#116329;--bad:#a40e26;--calm:#0550ae}
@media (prefers-color-scheme:dark){:root{--page:#0d1117;--text:#e6edf3;--soft:#9da7b3;--line:#30363d;--box:#161b22;
--good:#56d364;--bad:#ff7b72;--calm:#79c0ff}}
body{background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif;
margin:1.5rem auto;max-width:70rem;padding:0 1rem}
h1{font-size:1.5rem;overflow-wrap:anywhere}h2{font-size:1.15rem}h3{font-size:1rem;overflow-wrap:anywhere}
p{overflow-wrap:anywhere}.soft{color:var(--soft)}
.wide{overflow-x:auto;border:1px solid var(--line);border-radius:6px}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.3rem .6rem;border-bottom:1px solid var(--line)}
th{background:var(--box)}th.n,td.n{text-align:right}td.n{white-space:nowrap}td.w{overflow-wrap:anywhere;min-width:8rem}
.done{color:var(--good)}.bad{color:var(--bad)}.kept{color:var(--calm)}.left{color:var(--soft)}
pre{background:var(--box);border:1px solid var(--line);border-radius:6px;padding:.6rem;
white-space:pre-wrap;overflow-wrap:anywhere}
svg{display:block;width:100%;min-width:640px}svg text{font:12px system-ui,sans-serif;fill:var(--text)}
svg .done{fill:var(--good)}svg .bad{fill:var(--bad)}
@media print{body{max-width:none;margin:0}.wide{overflow:visible}svg{min-width:0}tr,pre,h3{break-inside:avoid}}"""


@dataclass(frozen=True, slots=True)
class Line:
    """What the page tells of one step.

    :param kind: how its status is coloured.
    :param start: when it ran, in seconds since any common moment; ``None`` where it did not.
    :param seconds: what its last try took.
    :param bytes: what it left; ``None`` where nothing is known of that.
    """

    step: str
    status: str
    kind: str
    reason: str = ""
    start: float | None = None
    seconds: float = 0.0
    tries: int = 0
    bytes: int | None = None


def page_lines(
    job: str,
    result: str,
    totals: str,
    lines: Sequence[Line],
    *,
    tails: Mapping[str, Sequence[str]],
    attempts: Sequence[tuple[str, str]] = (),
) -> list[str]:
    """The page, all of it ASCII.

    :param result: one word or a few, for the heading.
    :param totals: a sentence.
    :param tails: by step id, the last lines of those that failed; nothing secret is among them.
    :param attempts: steps and how their tries before the last one ended.
    """
    out = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{_text(job)}: {_text(result)}</title>\n<style>\n{_STYLE}\n</style>\n</head>\n<body>\n<main>",
        f"<h1>Job {_text(job)}: {_text(result)}</h1>\n<p>{_text(totals)}</p>",
        *_timeline(lines),
        '<h2>Steps</h2>\n<div class="wide" tabindex="0" role="region" aria-label="Steps">\n<table>\n<thead><tr>'
        + "".join(f'<th scope="col">{name}</th>' for name in ("Step", "Status", "Reason"))
        + "".join(f'<th scope="col" class="n">{name}</th>' for name in ("Time", "Tries", "Left"))
        + "</tr></thead>\n<tbody>",
    ]
    out += map(_row, lines)
    out.append("</tbody>\n</table>\n</div>")
    if tails:
        out.append("<h2>Last lines of failed steps</h2>")
    for step, said in tails.items():
        shown = "\n".join(_text(line) for line in said)
        out.append(f"<h3>{_text(step)}</h3>\n<pre>\n{shown}</pre>")  # the parser drops the first line's end
    if attempts:
        out.append("<h2>Earlier tries</h2>\n<ul>")
        out += [f"<li>{_text(step)}: {_text(_shortened(how))}</li>" for step, how in attempts]
        out.append("</ul>")
    return [*out, "</main>\n</body>\n</html>"]


def _row(line: Line) -> str:
    left = "" if line.bytes is None else size(line.bytes)
    ran = line.tries > 0
    return (
        f'<tr><td class="w">{_text(line.step)}</td><td class="{line.kind}">{_text(line.status)}</td>'
        f'<td class="w">{_text(_shortened(line.reason))}</td><td class="n">{duration(line.seconds) if ran else ""}</td>'
        f'<td class="n">{line.tries or ""}</td><td class="n">{left}</td></tr>'
    )


def _timeline(lines: Sequence[Line]) -> list[str]:
    """What ran when; nothing where nothing did."""
    bars = [(line.start, line) for line in lines if line.start is not None]
    if not bars:
        return []
    said = f"{duration(max(at + line.seconds for at, line in bars) - min(at for at, _ in bars))} from left to right"
    if len(bars) > _BARS:
        said += f"; the {_BARS} that took longest of {len(bars)}"
        bars = sorted(bars, key=lambda bar: -bar[1].seconds)[:_BARS]
    bars.sort(key=lambda bar: bar[0])
    first = bars[0][0]
    scale = (_WIDTH - _LEFT - 10) / max(max(at + line.seconds for at, line in bars) - first, 0.001)
    height = len(bars) * _ROW + 10
    out = [
        f'<h2>Timeline</h2>\n<p class="soft">{said}.</p>',
        '<div class="wide" tabindex="0" role="region" aria-label="Timeline">',
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="When each step ran">',
    ]
    for number, (at, line) in enumerate(bars):
        y = number * _ROW + 5
        name = line.step if len(line.step) <= 26 else f"{line.step[:25]}\u2026"
        out.append(
            f"<g><title>{_text(line.step)}: {_text(line.status)}, {duration(line.seconds)}</title>"
            f'<text x="6" y="{y + 14}">{_text(name)}</text>'
            f'<rect class="{line.kind}" x="{_LEFT + (at - first) * scale:.1f}" '
            f'y="{y + 3}" width="{max(line.seconds * scale, 2):.1f}" height="{_ROW - 6}" rx="2"/></g>'
        )
    return [*out, "</svg>\n</div>"]


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}\u2026"


def _text(text: str) -> str:
    """Text in ASCII: what HTML cannot hold, or what turns its direction, is shown by its escape."""
    plain = _NO_HTML.sub(lambda match: ascii(match[0])[1:-1], one_line(text))
    return escape(plain).encode("ascii", "xmlcharrefreplace").decode("ascii")
