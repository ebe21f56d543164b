"""Artifacts with the real act: ours stores them there, ours and the official client get them from there."""

from __future__ import annotations

import json
import random
import shlex
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.act.harness import ROOT, Act

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.peers.npm import Node

pytestmark = [
    pytest.mark.act,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="act's host mode"),
]

OURS = """
import json, os, sys
from pathlib import Path
from checkpoint_action.toolkit.artifact import ArtifactClient
from checkpoint_action.toolkit.errors import MissingEntryError

out = Path(os.environ["OUT"])
client = ArtifactClient.from_env()
seen = {"before": [one.name for one in client.list_artifacts()]}
files = sorted(path for path in Path("tree").rglob("*") if path.is_file())
sent = client.upload_artifact("ours-1", files, "tree", retention_days=1)
again = client.upload_artifact("ours-1", files, "tree", compression_level=0)
raw = client.upload_artifact("unused", ["tree/raw.bin"], "tree", skip_archive=True)
found = {one.name: one for one in client.list_artifacts()}
seen["listed"] = sorted(found)
seen["ids"] = [found["ours-1"].id == again.id == sent.id, found["raw.bin"].id == raw.id]
seen["digests"] = [one.digest for one in found.values()]
client.download_artifact(found["ours-1"], out / "ours")
client.download_artifact(found["raw.bin"].id, out / "raw")
seen["deleted"] = client.delete_artifact("raw.bin") == raw.id
try:
    client.get_artifact("none")
except MissingEntryError:
    seen["missing"] = True
(out / "seen.json").write_text(json.dumps(seen))
"""

WORKFLOW = """
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: python3 ours.py
        env:
          PYTHONPATH: {root}
      - run: {node} {script} list.json "$OUT/list.json"
      - run: python3 ask.py && {node} {script} ask.json "$OUT/theirs.json"
"""

ASK = """
import json, os
(listed,) = json.load(open(os.path.join(os.environ["OUT"], "list.json")))["value"]
number = next(one["id"] for one in listed["value"]["artifacts"] if one["name"] == "ours-1")
call = ["downloadArtifact", number, {"path": os.path.join(os.environ["OUT"], "theirs")}]
json.dump([call], open("ask.json", "w"))
"""


@pytest.fixture
def act(tmp_path: Path) -> Iterator[Act]:
    (tmp_path / "tools").mkdir()
    (tmp_path / "action").mkdir()
    act = Act(tmp_path / "act", tmp_path / "action", tmp_path / "tools")
    yield act
    act.end()


def contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_artifacts_go_through_the_real_act(act: Act, node: Node) -> None:
    tree: dict[str, bytes] = {
        "a.txt": b"hello\n",
        "sub/noise": random.Random(1).randbytes(20_000_000),  # some blocks of it
        "raw.bin": random.Random(2).randbytes(9_000_000),
    }
    script = node.folder / "artifact.mjs"
    workflow = WORKFLOW.format(
        root=json.dumps(str(ROOT)), node=shlex.quote(node.executable), script=shlex.quote(str(script))
    )
    result = act.run(
        workflow,
        files={
            "ours.py": OURS,
            "ask.py": ASK,
            "list.json": json.dumps([["listArtifacts"]]),
            **{f"tree/{name}": content for name, content in tree.items()},
        },
        artifact_server=True,
    )
    assert result.returncode == 0, result.log
    seen: dict[str, Any] = json.loads((result.out / "seen.json").read_text())
    assert seen == {
        "before": [],
        "listed": ["ours-1", "raw.bin"],
        "ids": [True, True],
        "digests": ["", ""],
        "deleted": True,
        "missing": True,
    }
    assert contents(result.out / "ours") == tree
    assert contents(result.out / "raw") == {"raw.bin": tree["raw.bin"]}
    assert contents(result.out / "theirs") == tree
