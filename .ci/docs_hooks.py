"""Links of the documentation that lead out of it: to files of the repository, which the site does not have.

In the repository they work as they are written. On the site they lead to the repository; one to a file that is not
there is a warning, which ends a strict build.
"""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

__all__ = ["on_page_markdown", "rewritten"]

ROOT = Path(__file__).resolve().parent.parent
BRANCH = "main"
LINK = re.compile(r"(?<=\]\()(?P<path>\.\./[^)#\s]*)(?P<anchor>#[^)\s]*)?(?=\))")
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


def on_page_markdown(markdown: str, *, page: Any, config: Any, **_more: Any) -> str:
    """Called by mkdocs for each page."""
    text, lost = rewritten(markdown, Path(page.file.src_uri), config["repo_url"])
    for link in lost:
        log.warning("%s: the link %s leads to no file of the repository", page.file.src_uri, link)
    return text
