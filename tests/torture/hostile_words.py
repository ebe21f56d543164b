"""Texts that want to be more than texts, and what tells whether one of them got its way."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "CANARY",
    "LIVE",
    "canaries",
    "commands_in",
    "file_name",
    "first",
    "hostile",
    "log_faults",
    "markup_faults",
    "shown_faults",
]

CANARY = "PWNED"
"""A file of this name is there only where a shell has run one of the texts."""

LIVE = "PWNED-BARE"
"""What the workflow commands of the texts say: where a runner hears it, it has obeyed one of them."""

_SHELL = (
    "`touch PWNED`",
    "$(touch PWNED)",
    "; touch PWNED;",
    "\ntouch PWNED\n",
    "' ; touch PWNED #",
    '" ; touch PWNED #',
    "| touch PWNED",
    "&& touch PWNED",
    "|| touch PWNED",
    "${IFS}touch${IFS}PWNED",
    "${x:-$(touch PWNED)}",
    "<(touch PWNED)",
    "'\"'\"'; touch PWNED; '",
    "\\'; touch PWNED; \\'",
    "a[$(touch PWNED)]",
    "$'\\n'touch PWNED",
    "\r\ntouch PWNED\r\n",
    "{0}; touch PWNED",
    "=cmd|' /C touch PWNED'!A0",
    "%COMSPEC%",
    "$((x[$(touch PWNED)]))",
)
_WORKFLOW = (
    *(
        f"{before}::{name}::{LIVE}"
        for before in ("\n", "\r", "\r\n", "\u2028", "\x85", " ")
        for name in ("set-output name=x", "add-path", "set-env name=LD_PRELOAD", "stop-commands", "error", "add-mask")
    ),
    *(
        f"##[{name}]{LIVE}"
        for name in ("add-path", "set-env name=LD_PRELOAD", "error", "group", "add-mask", "save-state")
    ),
    f"\n::add-matcher::{LIVE}",
    f"\n::save-state name=a::{LIVE}",
    f"\n::echo::{LIVE}",
    "%0A::error::x",
    "::endgroup::",
    "${{ github.token }}",
    "${{ secrets.X }}",
    "\nEOF\nLD_PRELOAD=/PWNED-BARE\n",
    "ghadelimiter\nx=1",
)
_TERMINAL = (
    "\x1b]0;title\x07",
    "\x1b[2J\x1b[H",
    "\x1b[31m",
    "\x9b2J",
    "\x1bP$q\x1b\\",
    "\b\b\b",
    "\x07",
    "\u202egpj.",
    "\u2066x\u2069",
    "\x7f",
)
_MARKUP = (
    "<script>PWNED</script>",
    "<img src=x onerror=PWNED>",
    "</title><script>",
    "'><svg onload=PWNED>",
    "](javascript:PWNED)",
    "[x](http://e.example)",
    "| x | y |",
    "\n\n# x\n",
    "```\n<b>",
    "@everyone #1",
    "<!--",
    "]]>",
    "&lt;script&gt;",
    "{{7*7}}",
)
_PATHS = (
    "../../",
    "/etc/passwd",
    "~",
    "~root",
    "-rf",
    "--reset",
    "-",
    "--",
    "*",
    "?",
    "[a]",
    "!",
    ".git/config",
    "C:\\x",
    "//h/s",
    "\\",
)
_ODD = (
    "é",
    "\U0001d4b3",
    "a" * 300,
    " ",
    "\t",
    "=",
    "<<EOF",
    ":",
    ",",
    "#",
    "%s%n",
    "None",
    "true",
    "0x10",
    "&a",
    "*a",
    "!!python/none",
)


def hostile(chance: random.Random, *, lines: bool = True) -> str:
    """One of endlessly many texts.

    :param lines: whether it may have more than one line.
    """
    kinds = (_SHELL, _WORKFLOW, _TERMINAL, _MARKUP, _PATHS, _ODD)
    text = "".join(chance.choice(chance.choice(kinds)) for _ in range(chance.randint(1, 4)))
    return text if lines else re.sub(r"[\r\n]+", " ", text)


def file_name(chance: random.Random) -> str:
    """Such a text as the name of a file, which may have bytes that are no text."""
    name = hostile(chance).replace("/", "\u2215").encode("utf-8", "surrogateescape")[:180]
    if chance.random() < 0.2:
        name += bytes([chance.randint(0x80, 0xFF)])
    name = name.strip(b".") or b"x"
    return "f" + name.decode("utf-8", "surrogateescape")


def canaries(*folders: Path) -> list[str]:
    """Where the file is that should be nowhere."""
    return [f"{path} was made" for folder in folders for path in folder.rglob(CANARY)]


_ALLOWED = frozenset({"group", "endgroup", "error", "warning", "notice", "debug", "add-mask", "stop-commands"})


def commands_in(log: str) -> list[tuple[str, str]]:
    """The commands that GitHub's runner finds in a log, name and text; those that it is told to leave alone not.

    It tries ``::name key=value::text`` at the beginning of a line and then ``##[name key=value]text`` anywhere in it.
    """
    found = []
    token = ""
    for line in re.split(r"\r\n|\r|\n", log):
        match = re.match(r"::([^\s:]*)(?: [^:]*)?::(.*)", line.lstrip()) or re.search(
            r"##\[([^\s\]]*)[^\]]*\](.*)", line
        )
        if match is None:
            continue
        name, text = match[1].lower(), match[2]
        if token:
            token = "" if match[1] == token else token
            continue
        if name == "stop-commands":
            token = text
        found.append((name, text))
    return found


def log_faults(log: str) -> list[str]:
    """What the runner would have obeyed that is not ours."""
    return [
        f"the runner obeys {name}: {text[:80]!r}"
        for name, text in commands_in(log)
        if name not in _ALLOWED or text.startswith(LIVE) or (name == "stop-commands" and not text.startswith("stop-"))
    ]


_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def shown_faults(where: str, text: str) -> list[str]:
    """What a terminal would obey in lines of ours."""
    found = _CONTROL.search(text)
    return [f"{where} has {found[0]!r}: {text[max(found.start() - 60, 0) : found.end() + 20]!r}"] if found else []


class _Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith(("javascript:", "data:text")):
                self.faults.append(f"the page has <{tag} {name}={value!r}>")


def markup_faults(page: str, plain: str) -> list[str]:
    """What a browser would find in a page that a page without hostile texts does not have.

    :param plain: that page.
    """
    seen, known = _Seen(), _Seen()
    seen.feed(page)
    known.feed(plain)
    faults = [fault for fault in seen.faults if fault not in known.faults]
    return faults + [f"the page has a <{tag}>" for tag in sorted(seen.tags - known.tags)]


def first(faults: Iterable[str], limit: int = 5) -> list[str]:
    """No more than a few of the same trial."""
    return list(faults)[:limit]
