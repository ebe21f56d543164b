"""Writes what a release is made of as a CycloneDX 1.6 document: this package, and what it needs as it is pinned.

``python .ci/sbom.py`` prints it; the same sources give the same document. Standard library only, as it runs where a
release is built.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
NAME = "checkpoint-run"
LISTS = {"requirements.txt": "required", "requirements-cloud.txt": "optional"}
"""The pinned lists, and whether what only they name is needed by everybody."""

_LINE = re.compile(r"([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(?:;\s*(.*))?")
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


class Pinned(NamedTuple):
    """A package as a list pins it.

    :ivar marker: where it is needed, empty for everywhere.
    :ivar hashes: of each of its wheels.
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def purl(self) -> str:
        """Its name in the scheme of package URLs."""
        return f"pkg:pypi/{self.name.lower().replace('_', '-')}@{self.version}"


def main() -> int:
    """Print the document.

    :returns: 0.
    """
    sys.stdout.write(json.dumps(document(version()), indent=2) + "\n")
    return 0


def version() -> str:
    """The package's version, read and not run."""
    text = (ROOT / "checkpoint_action" / "__init__.py").read_text("utf-8")
    match = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if match is None:
        raise SystemExit("the package's version is not where it was")
    return match[1]


def document(release: str) -> dict[str, Any]:
    """The document of a release.

    :param release: its version.
    """
    scopes: dict[Pinned, str] = {}
    for name, scope in LISTS.items():
        for one in pinned((ROOT / "runtime" / name).read_text("utf-8")):
            scopes.setdefault(one, scope)
    root = {
        "type": "application",
        "bom-ref": f"pkg:pypi/{NAME}@{release}",
        "name": NAME,
        "version": release,
        "licenses": [{"license": {"id": "MIT"}}],
        "purl": f"pkg:pypi/{NAME}@{release}",
    }
    components = [_component(one, scope) for one, scope in sorted(scopes.items(), key=lambda item: item[0].purl)]
    content = {
        "metadata": {"component": root},
        "components": components,
        "dependencies": [
            {"ref": root["bom-ref"], "dependsOn": [one["bom-ref"] for one in components]},
            *({"ref": one["bom-ref"]} for one in components),
        ],
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "serialNumber": f"urn:uuid:{serial}", "version": 1}
    return head | content


def pinned(text: str) -> list[Pinned]:
    """The packages of a list, in its order.

    :raises SystemExit: a line is none that pins a package by hash.
    """
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        words, hashes = line.partition("--hash")[0], tuple(sorted(_HASH.findall(line)))
        match = _LINE.fullmatch(words.strip())
        if match is None or not hashes:
            raise SystemExit(f"not a package that is pinned by hash: {line[:80]}")
        found.append(Pinned(match[1], match[2], (match[3] or "").strip(), hashes))
    return found


def _component(one: Pinned, scope: str) -> dict[str, Any]:
    described = {
        "type": "library",
        "bom-ref": one.purl,
        "name": one.name,
        "version": one.version,
        "scope": scope,
        "purl": one.purl,
        "externalReferences": [
            {
                "type": "distribution",
                "url": f"https://pypi.org/project/{one.name}/{one.version}/",
                "hashes": [{"alg": "SHA-256", "content": digest} for digest in one.hashes],
            }
        ],
    }
    return described | ({"properties": [{"name": "marker", "value": one.marker}]} if one.marker else {})


if __name__ == "__main__":
    sys.exit(main())
