"""Puts integrations/run.sh where the other CI systems want it, and the version into it.

``python .ci/integrations.py`` writes the copies, ``--check`` only tells which are stale.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

__all__ = ["copies", "main"]

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = Path("integrations", "run.sh")
WHOLE = (
    Path("integrations", "circleci", "src", "scripts", "run.sh"),
    Path("integrations", "jenkins", "resources", "checkpoint-run", "run.sh"),
)
INSIDE = Path("templates", "checkpoint-run.yml")
VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
RELEASE = re.compile(r"^release=.*$", re.MULTILINE)
PLACE = re.compile(
    r"(?P<first>^(?P<indent> *)# begin: .*\n)(?P<text>(?:.*\n)*?)(?P<last>(?P=indent)# end\n)", re.MULTILINE
)


def copies(root: Path) -> dict[Path, str]:
    """What each file has to say, by its path below ``root``; ValueError where there is no place for it."""
    version = VERSION.search((root / "checkpoint_action" / "__init__.py").read_text(encoding="utf-8"))
    if version is None:
        raise ValueError("checkpoint_action/__init__.py says no version")
    script, count = RELEASE.subn(f"release={version[1]}", (root / SCRIPT).read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(f"{SCRIPT} has {count} lines with the release")
    made = {SCRIPT: script, **dict.fromkeys(WHOLE, script)}
    made[INSIDE], count = PLACE.subn(
        lambda place: place["first"] + _subshell(script, place["indent"]) + place["last"],
        (root / INSIDE).read_text(encoding="utf-8"),
    )
    if count != 1:
        raise ValueError(f"{INSIDE} has {count} places for the script")
    return made


def _subshell(script: str, indent: str) -> str:
    """The script as part of another one, whose shell must outlive it."""
    lines = ["(", *(line for line in script.splitlines() if not line.startswith("#")), ")"]
    return "".join(f"{indent}{line}\n" if line else "\n" for line in lines)


def main(argv: list[str]) -> int:
    """Write or check the copies.

    :returns: 0, or 1 where one is stale or has no place.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a copy is stale")
    options = parser.parse_args(argv)
    try:
        made = copies(ROOT)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    stale = [
        path for path, text in made.items() if not (ROOT / path).is_file() or (ROOT / path).read_text("utf-8") != text
    ]
    if options.check:
        for path in stale:
            print(f"{path} is stale; run python .ci/integrations.py", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(made[path], encoding="utf-8")
        if path != INSIDE:
            (ROOT / path).chmod(0o755)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
