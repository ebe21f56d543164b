"""Writes the tables of inputs and outputs in docs/action.md from action.yml.

``python .ci/action_docs.py`` writes them, ``--check`` only tells whether they are stale.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import yaml

__all__ = ["main", "tables"]

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "action.md"


def tables(action: dict[str, Any]) -> dict[str, str]:
    """Both tables as Markdown, by the name of their place in the page."""
    inputs = ["| input | default | |", "|---|---|---|"]
    inputs += [f"| `{name}` | {_default(one)} | {_text(one)} |" for name, one in action["inputs"].items()]
    outputs = ["| output | |", "|---|---|"]
    outputs += [f"| `{name}` | {_text(one)} |" for name, one in action["outputs"].items()]
    return {"inputs": "\n".join(inputs), "outputs": "\n".join(outputs)}


def _default(one: dict[str, Any]) -> str:
    value = str(one.get("default", ""))
    return f"`{value}`" if value else ""


def _text(one: dict[str, Any]) -> str:
    return str(one["description"]).replace("|", "\\|")


def main(argv: list[str]) -> int:
    """Write or check the page.

    :returns: 0, or 1 where it is stale or has no place for a table.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is stale")
    options = parser.parse_args(argv)
    old = new = PAGE.read_text(encoding="utf-8")
    for name, table in tables(yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))).items():
        place = re.compile(rf"(<!-- {name}: .*? -->\n).*?(\n<!-- end -->)", re.DOTALL)
        new, count = place.subn(lambda match, table=table: f"{match[1]}{table}{match[2]}", new)  # type: ignore[misc]
        if count != 1:
            print(f"docs/action.md has {count} places for the table of {name}", file=sys.stderr)
            return 1
    if new == old:
        return 0
    if options.check:
        print("docs/action.md is stale; run python .ci/action_docs.py", file=sys.stderr)
        return 1
    PAGE.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
