"""What a release says it is made of."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from checkpoint_action import __version__
from tests.ci.loading import script

ROOT = Path(__file__).resolve().parents[2]
sbom = script("sbom")
PIN = re.compile(r"^([a-z0-9.-]+)==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def said() -> Any:
    """The document as the release workflow gets it: from a Python without our packages."""
    command = [sys.executable, "-I", "-S", str(ROOT / ".ci" / "sbom.py")]
    return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)


def test_it_names_every_package_that_a_list_pins_with_every_hash(said: Any) -> None:
    texts = [(ROOT / "runtime" / name).read_text("utf-8") for name in ("requirements.txt", "requirements-cloud.txt")]
    pins = {match for text in texts for match in PIN.findall(text)}
    assert {(one["name"], one["version"]) for one in said["components"]} == pins
    hashes = {digest for text in texts for digest in re.findall(r"sha256:([0-9a-f]{64})", text)}
    listed = [
        one["content"] for part in said["components"] for ref in part["externalReferences"] for one in ref["hashes"]
    ]
    assert sorted(listed) == sorted(hashes)


def test_what_object_stores_alone_need_is_optional(said: Any) -> None:
    scopes = {one["name"]: one["scope"] for one in said["components"]}
    assert scopes["urllib3"] == "required"
    assert scopes["obstore"] == "optional"


def test_it_is_of_this_version_and_hangs_together(said: Any) -> None:
    root = said["metadata"]["component"]
    assert (root["name"], root["version"]) == ("checkpoint-run", __version__)
    first, *others = said["dependencies"]
    refs = [one["bom-ref"] for one in said["components"]]
    assert (first["ref"], first["dependsOn"], [one["ref"] for one in others]) == (root["bom-ref"], refs, refs)
    assert len({*refs}) == len(refs)


def test_the_same_sources_give_the_same_document(said: Any) -> None:
    assert sbom.document(__version__) == said
    assert sbom.document("9.9.9")["serialNumber"] != said["serialNumber"]


@pytest.mark.parametrize("line", ["a>=1 --hash=sha256:" + "0" * 64, "a==1", "-r other.txt", "https://x/a.whl"])
def test_what_is_not_pinned_by_hash_is_an_error(line: str) -> None:
    with pytest.raises(SystemExit, match="pinned by hash"):
        sbom.pinned(line + "\n")
