"""What the pages say in the repository's way and the site has to be told in its own.

Links that lead out of the documentation: to files of the repository, which the site does not have. On the site they
lead to the repository; one to a file that is not there is a warning, which ends a strict build. And a ``|`` of code in
a table: the repository wants a backslash before it, which the site would show.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

__all__ = ["on_page_markdown", "rewritten", "with_plain_pipes"]

ROOT = Path(__file__).resolve().parent.parent
BRANCH = "main"
LINK = re.compile(r"(?<=\]\()(?P<path>\.\./[^)#\s]*)(?P<anchor>#[^)\s]*)?(?=\))")
CODE = re.compile(r"`[^`\n]+`")
log = logging.getLogger("mkdocs.hooks.links")


def rewritten(markdown: str, page: Path, repository: str) -> tuple[str, list[str]]:
    """A page's text with its links out of the documentation led to the repository.

    :param page: its path below ``docs``.
    :param repository: address of the repository.
    :returns: the text, and the links that lead nowhere.
    """
    lost: list[str] = []

    def target(match: re.Match[str]) -> str:
        path = (ROOT / "docs" / page.parent / match["path"]).resolve()
        if path.is_relative_to(ROOT / "docs") or not path.is_relative_to(ROOT):
            return match[0]  # within the documentation, where mkdocs itself looks
        if not path.exists():
            lost.append(match[0])
        kind = "tree" if path.is_dir() else "blob"
        return f"{repository.rstrip('/')}/{kind}/{BRANCH}/{path.relative_to(ROOT).as_posix()}{match['anchor'] or ''}"

    return LINK.sub(target, markdown), lost


def with_plain_pipes(markdown: str) -> str:
    """A page's text without the backslashes before a ``|`` in a table's code."""
    lines = markdown.split("\n")
    return "\n".join(
        CODE.sub(lambda code: code[0].replace("\\|", "|"), line) if line.startswith("|") else line for line in lines
    )


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_more: Any) -> str:
    """Called by mkdocs for each page."""
    text, lost = rewritten(markdown, Path(page.file.src_uri), config["repo_url"])
    for link in lost:
        log.warning("%s: the link %s leads to no file of the repository", page.file.src_uri, link)
    return with_plain_pipes(text)
