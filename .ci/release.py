"""Checks that a tag may become a release, and prints what changed.

`python .ci/release.py v1.2.3` fails unless the package has that version and CHANGELOG.md a section for it, which it
prints.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TAG = re.compile(r"v(?P<version>\d+\.\d+\.\d+)")
VERSION = re.compile(r'^__version__ = "(?P<version>[^"]+)"$', re.MULTILINE)
HEADING = re.compile(r"^## \[(?P<version>[^]]+)\](?P<date> - \d{4}-\d{2}-\d{2})?$")


def notes(tag: str, package: str, changelog: str) -> str:
    """The release's section of the changelog, without its heading; ValueError where something does not fit together.

    `package` is the text of the file with the version, `changelog` that of the changelog.
    """
    wanted = TAG.fullmatch(tag)
    if wanted is None:
        raise ValueError(f"the tag '{tag}' is not of the form v1.2.3")
    version = VERSION.search(package)
    if version is None or version["version"] != wanted["version"]:
        found = "none" if version is None else version["version"]
        raise ValueError(f"the tag is {tag}, and the package's version is {found}; change __version__ first")
    section: list[str] | None = None
    for line in changelog.splitlines():
        heading = HEADING.match(line)
        if line.startswith("## ") and section is not None:
            break
        if heading is not None and heading["version"] == wanted["version"]:
            if heading["date"] is None:
                raise ValueError(f"CHANGELOG.md says no date for {wanted['version']}")
            section = []
        elif section is not None:
            section.append(line)
    text = "\n".join(section or []).strip()
    if not text:
        raise ValueError(f"CHANGELOG.md has no section '## [{wanted['version']}] - DATE', or an empty one")
    return text


def main(argv: list[str]) -> int:
    """`argv` is the tag and, where it is not the project's own, the folder with the sources."""
    if len(argv) not in (1, 2):
        print("usage: release.py TAG [FOLDER]", file=sys.stderr)
        return 2
    root = Path(argv[1]) if len(argv) == 2 else ROOT
    try:
        package = (root / "checkpoint_action" / "__init__.py").read_text(encoding="utf-8")
        print(notes(argv[0], package, (root / "CHANGELOG.md").read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        print(f"release.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
