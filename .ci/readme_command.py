"""Prints the command that follows a marker in README.md, so that the README and CI cannot drift apart.

`python .ci/readme_command.py "test command"` prints the fenced block that follows the line `<!-- test command -->`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
FENCE = re.compile(r"(?P<ticks>`{3,}|~{3,})")


def command(text: str, marker: str) -> str:
    """The content of the fenced block directly below the HTML comment `marker`; ValueError where there is none."""
    comment = f"<!-- {marker} -->"
    lines = text.splitlines()
    places = [number for number, line in enumerate(lines) if line.strip() == comment]
    if len(places) != 1:
        raise ValueError(f"{comment} must stand on one line of its own, found {len(places)}")
    rest = lines[places[0] + 1 :]
    while rest and not rest[0].strip():
        rest = rest[1:]
    opening = FENCE.match(rest[0]) if rest else None
    if opening is None:
        raise ValueError(f"no fenced block follows {comment}")
    body = rest[1:]
    if opening["ticks"] not in body:
        raise ValueError(f"the fenced block below {comment} is never closed")
    found = "\n".join(body[: body.index(opening["ticks"])]).strip()
    if not found:
        raise ValueError(f"the fenced block below {comment} is empty")
    return found


def main(argv: list[str]) -> int:
    """`argv` is the marker and, where it is not the project's own, the README's path."""
    if len(argv) not in (1, 2):
        print("usage: readme_command.py MARKER [README]", file=sys.stderr)
        return 2
    readme = Path(argv[1]) if len(argv) == 2 else README
    try:
        print(command(readme.read_text(encoding="utf-8"), argv[0]))
    except (OSError, ValueError) as error:
        print(f"{readme.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
