"""Writes docs/errors.md from the kinds of trouble in ``checkpoint_action.error_texts``.

``python .ci/error_docs.py`` writes it, ``--check`` only tells whether it is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from checkpoint_action.error_texts import CHAPTERS, PAGES
from checkpoint_action.errors import CheckpointError, Kind

__all__ = ["main", "page"]

PAGE = Path(__file__).resolve().parent.parent / "docs" / "errors.md"

HEAD = """\
# Errors

<!-- Made by .ci/error_docs.py from checkpoint_action/error_texts/; do not edit. -->

Every error, and each warning that comes from one, has a code: `checkpoint-run: error CPR203: …`. In the action it is in
the annotation's title, with `--json` in the field `code`, in Python in the attribute `code` of the exception. A code
stands for one kind of trouble with one remedy. Codes never change their meaning and are never used again.

Where a warning says the same, nothing ends: what is told of stores is mostly a warning, and the run goes on.
"""


def page() -> str:
    """The whole page as Markdown."""
    lines = [HEAD]
    lines.append("| code | |\n|---|---|")
    lines += [f"| [{kind.value}](#{kind.value.lower()}) | {PAGES[kind].title} |" for kind in Kind]
    lines.append("")
    chapter = ""
    for kind in Kind:
        heading = CHAPTERS[kind.value[:4]]
        if heading != chapter:
            chapter = heading
            lines.append(f"## {heading}\n")
        told = PAGES[kind]
        lines.append(f"### {kind.value}\n")  # nothing more, so that its anchor never changes
        lines.append(f"**{told.title}.** {told.means}\n")
        lines.append(f"```text\n{kind.value}: {told.example}\n```\n")
        lines.append(f"**What to do:** {told.remedy}\n")
        ends = "A warning." if told.exit_code is None else f"Exit code {told.exit_code}."
        raised = "".join(f" In Python `{one.__name__}`." for one in _classes(CheckpointError, kind))
        lines.append(f"{ends}{raised}\n")
    return "\n".join(lines)


def _classes(base: type[CheckpointError], kind: Kind) -> list[type[CheckpointError]]:
    """The classes of the tree whose errors mostly are of this kind."""
    own = [base] if vars(base).get("kind") is kind else []
    return own + [one for below in base.__subclasses__() for one in _classes(below, kind)]


def main(argv: list[str]) -> int:
    """Write or check the page.

    :returns: 0, or 1 where it is stale.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is stale")
    options = parser.parse_args(argv)
    new = page()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == new:
        return 0
    if options.check:
        print("docs/errors.md is stale; run python .ci/error_docs.py", file=sys.stderr)
        return 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
