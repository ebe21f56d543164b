"""Step 5: write the report: one page with everything, and highlighted source of each module that it names."""

from __future__ import annotations

import difflib
import io
import json
import keyword
import shutil
import token
import tokenize
from collections import Counter
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

WORK = Path("build/stdlib-search")
SOURCES = WORK / "sources"
REPORT = WORK / "report.html"
PAGES = WORK / "pages"
STYLE = Path(__file__).with_name("report.css").read_text(encoding="utf-8")

KINDS = ("name", "operator", "number", "string", "keyword", "comment")
# 3.12 splits f-strings into parts of their own, 3.14 has template strings.
STRING_PARTS = {
    "STRING",
    "FSTRING_START",
    "FSTRING_MIDDLE",
    "FSTRING_END",
    "TSTRING_START",
    "TSTRING_MIDDLE",
    "TSTRING_END",
}
SHOWN_PAIRS = 100


def page(title: str, body: str) -> str:
    """A whole HTML page with its style inside."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


class Links:
    """Links into the source pages; remembers which pages have to be written."""

    def __init__(self) -> None:
        self.modules: set[str] = set()

    def to(self, text: str, module: str, line: int) -> str:
        self.modules.add(module)
        return f'<a href="pages/{escape(module)}.html#L{line}">{escape(text)}</a>'


def table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]], numbers: Iterable[int] = ()) -> str:
    """A table; its cells are HTML already, and the columns in `numbers` stand to the right."""
    kinds = dict.fromkeys(numbers, ' class="number"')
    head = "".join(f'<th scope="col"{kinds.get(at, "")}>{text}</th>' for at, text in enumerate(heads))
    lines = ("".join(f"<td{kinds.get(at, '')}>{cell}</td>" for at, cell in enumerate(row)) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<div class="scroll"><table><caption>{escape(caption)}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def figures(counts: dict[str, Any], results: dict[str, Any]) -> str:
    totals = counts["totals"]
    shown = {
        "modules": f"{totals['modules']:,}",
        "lines": f"{totals['lines']:,}",
        "tokens": f"{sum(counts['kinds'].values()):,}",
        "functions": f"{totals['functions']:,}",
        "of them documented": f"{totals['documented'] / totals['functions']:.0%}",
        "pairs of near copies": f"{len(results['pairs']):,}",
    }
    return '<ul class="figures">' + "".join(f"<li><b>{value}</b>{name}</li>" for name, value in shown.items()) + "</ul>"


def token_kinds(counts: dict[str, Any]) -> str:
    """One bar: what the source is made of."""
    kinds = Counter({name: counts["kinds"].get(name, 0) for name in KINDS})
    kinds["string"] += sum(
        count for name, count in counts["kinds"].items() if name.upper() in STRING_PARTS - {"STRING"}
    )
    total, left, bars, legend = kinds.total(), 0.0, "", ""
    for color, (name, count) in enumerate(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))):
        width = 1000 * count / total
        bars += f'<rect x="{left:.1f}" width="{width:.1f}" height="34" style="fill: var(--c{color})"/>'
        legend += f'<li><i style="background: var(--c{color})"></i>{name} {count / total:.1%}</li>'
        left += width
    return (
        '<figure><svg viewBox="0 0 1000 34" role="img" aria-label="Share of each kind of token">'
        f'{bars}</svg><ul class="legend">{legend}</ul></figure>'
    )


def complexities(counts: dict[str, Any]) -> str:
    """Columns: how many functions have which complexity."""
    numbers = {int(value): count for value, count in counts["complexities"].items()}
    groups = {str(value): numbers.get(value, 0) for value in range(1, 11)}
    groups["11-15"] = sum(count for value, count in numbers.items() if 11 <= value <= 15)
    groups["16-25"] = sum(count for value, count in numbers.items() if 16 <= value <= 25)
    groups["over 25"] = sum(count for value, count in numbers.items() if value > 25)
    columns, highest = "", max(groups.values())
    for at, (name, count) in enumerate(groups.items()):
        x, height = 10 + at * 76, 160 * count / highest
        columns += (
            f'<rect x="{x}" y="{185 - height:.1f}" width="58" height="{height:.1f}" rx="3" style="fill: var(--c0)"/>'
            f'<text x="{x + 29}" y="{178 - height:.1f}" text-anchor="middle">{count:,}</text>'
            f'<text x="{x + 29}" y="204" text-anchor="middle">{name}</text>'
        )
    return (
        f'<figure><svg viewBox="0 0 1000 212" role="img" aria-label="Functions by complexity">{columns}</svg>'
        "<figcaption>Functions by the number of independent paths through them. "
        "Up to ten is easy to test.</figcaption></figure>"
    )


def packages(counts: dict[str, Any]) -> str:
    """The largest packages with a bar each."""
    lines: Counter[str] = Counter()
    for module, facts in counts["modules"].items():
        lines[module.partition(".")[0]] += facts["lines"]
    largest = sorted(lines.items(), key=lambda item: (-item[1], item[0]))[:16]
    rows = "\n".join(
        f'<tr><td>{escape(name)}</td><td class="number">{count:,}</td>'
        f'<td class="bar"><span style="width: {100 * count / largest[0][1]:.1f}%"></span></td></tr>'
        for name, count in largest
    )
    return f"<table><caption>Largest packages, lines</caption><tbody>\n{rows}\n</tbody></table>"


def answers(results: dict[str, Any], links: Links) -> str:
    parts: list[str] = []
    for answer in results["answers"]:
        hits = "".join(
            f'<p class="hit">{links.to(hit["name"], hit["module"], hit["line"])} '
            f'<span class="soft">{hit["kind"]}</span>'
            f"<br><code>{escape(hit['excerpt'])}</code></p>"
            for hit in answer["hits"]
        )
        parts.append(
            f"<details{' open' if not parts else ''}><summary>{escape(answer['question'])} "
            f'<span class="tag">{answer["count"]:,} entries</span></summary>'
            f'<div><p class="soft">Query: <code>{escape(answer["query"])}</code></p>{hits}</div></details>'
        )
    return "\n".join(parts)


def difference(left: str, right: str) -> str:
    """A unified diff of two functions."""
    lines = difflib.unified_diff(left.splitlines(), right.splitlines(), lineterm="", n=2)
    kinds = {"+": ' class="added"', "-": ' class="removed"'}
    shown = [f"<span{kinds.get(line[:1], '')}>{escape(line) or ' '}</span>" for line in list(lines)[2:]]
    return f'<pre class="diff">{"".join(shown)}</pre>' if shown else "<p>Not one character differs.</p>"


def near_copies(results: dict[str, Any], links: Links) -> str:
    parts: list[str] = []
    for pair in results["pairs"][:SHOWN_PAIRS]:
        left, right = pair["sides"]
        places = " and ".join(links.to(side["name"], side["module"], side["line"]) for side in (left, right))
        parts.append(
            f'<details><summary>{escape(left["name"])} · {escape(right["name"])} <span class="tag">{pair["alike"]:.0%}'
            f" alike</span></summary><div><p>{places}</p>{difference(left['body'], right['body'])}</div></details>"
        )
    return "\n".join(parts)


def highlighted(text: str) -> str:
    """The source as HTML: tokens in colour, lines numbered."""
    lines = text.splitlines(keepends=True)
    spans: list[list[str]] = [[] for _ in range(len(lines) + 2)]
    done = (1, 0)

    def put(start: tuple[int, int], end: tuple[int, int], kind: str) -> None:
        for row in range(start[0], min(end[0], len(lines)) + 1):
            first = start[1] if row == start[0] else 0
            piece = lines[row - 1][first : end[1] if row == end[0] else None].rstrip("\r\n")
            if piece:
                spans[row].append(f'<span class="{kind}">{escape(piece)}</span>' if kind else escape(piece))

    for item in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = ""
        if item.type == token.NAME:
            kind = "k" if keyword.iskeyword(item.string) else ""
        elif token.tok_name[item.type] in STRING_PARTS:
            kind = "s"
        elif item.type in (token.COMMENT, token.NUMBER):
            kind = "c" if item.type == token.COMMENT else "n"
        if kind and item.start >= done:
            put(done, item.start, "")
            put(item.start, item.end, kind)
            done = item.end
    put(done, (len(lines), len(lines[-1]) if lines else 0), "")
    numbered = (f'<i id="L{row}">{row}</i>{"".join(spans[row])}' for row in range(1, len(lines) + 1))
    return "\n".join(numbered)


def source_pages(modules: set[str], listing: dict[str, Any]) -> None:
    """A page of highlighted source for each of the modules."""
    PAGES.mkdir(parents=True)
    for number, module in enumerate(sorted(modules), start=1):
        path = listing["modules"][module]["path"]
        with tokenize.open(SOURCES / path) as stream:
            source = highlighted(stream.read())
        body = f'<header><p><a href="../report.html">Report</a></p><h1>{escape(module)}</h1></header>'
        body += f'<pre class="source">{source}</pre>'
        (PAGES / f"{module}.html").write_text(page(module, body), encoding="utf-8", newline="\n")
        if number % 20 == 0 or number == len(modules):
            print(f"report: {number} of {len(modules)} source pages", flush=True)


def overview(counts: dict[str, Any], results: dict[str, Any], links: Links) -> str:
    """The body of the report."""
    hardest = table(
        "Hardest functions",
        ("function", "paths", "lines"),
        (
            (links.to(item["name"], item["module"], item["line"]), str(item["complexity"]), str(item["lines"]))
            for item in counts["hardest"][:15]
        ),
        numbers=(1, 2),
    )
    imported = table(
        "Most imported",
        ("module", "by modules"),
        ((escape(name), f"{count:,}") for name, count in counts["imports"][:15]),
        numbers=(1,),
    )
    names = table(
        "Most written names",
        ("name", "times", "modules"),
        ((f"<code>{escape(name)}</code>", f"{count:,}", f"{spread:,}") for name, count, spread in counts["names"][:15]),
        numbers=(1, 2),
    )
    facts = "".join(
        table(title, ("name", "", ""), ([escape(str(cell)) for cell in row] for row in rows[:10]), numbers=(1,))
        for title, rows in results["facts"].items()
    )
    shown = min(SHOWN_PAIRS, len(results["pairs"]))
    return f"""<header>
<p class="soft">stdlib-search</p>
<h1>The standard library of Python {escape(counts["python"])}</h1>
<p class="lead">Every module read, counted, indexed and asked, in five steps that can be stopped at any moment.</p>
<nav><a href="#made-of">Made of</a><a href="#complexity">Complexity</a><a href="#questions">Questions</a>
<a href="#facts">Facts</a><a href="#copies">Near copies</a></nav>
{figures(counts, results)}
</header>
<main>
<h2 id="made-of">What it is made of</h2>
{token_kinds(counts)}
<div class="columns">{packages(counts)}<div>{names}</div></div>
<h2 id="complexity">Complexity</h2>
{complexities(counts)}
<div class="columns"><div>{hardest}</div><div>{imported}</div></div>
<h2 id="questions">Questions to the full-text index</h2>
<p class="soft">Answered by SQLite ({escape(results["engine"])}). Each name leads to its source.</p>
{answers(results, links)}
<h2 id="facts">From the cross-reference</h2>
<div class="columns">{facts}</div>
<h2 id="copies">Near copies</h2>
<p class="soft">Functions that share at least 60 % of their runs of four tokens:
the first {shown} of {len(results["pairs"])} pairs.</p>
{near_copies(results, links)}
</main>
<footer>Made by the example job <code>stdlib-search</code> of checkpoint-run.</footer>"""


def main() -> int:
    listing, counts, results = (
        json.loads((WORK / name).read_text(encoding="utf-8"))
        for name in ("sources.json", "counts.json", "results.json")
    )
    shutil.rmtree(PAGES, ignore_errors=True)
    links = Links()
    body = overview(counts, results, links)
    print(f"report: {len(links.modules)} modules are named", flush=True)
    source_pages(links.modules, listing)
    REPORT.write_text(page("The standard library, searched", body), encoding="utf-8", newline="\n")
    print(f"report: {REPORT.as_posix()}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
