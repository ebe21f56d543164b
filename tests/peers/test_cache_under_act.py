"""The cache server of the real act: ours and the official client save there, and each restores what the other saved."""

from __future__ import annotations

import json
import random
import shlex
import sys
from typing import TYPE_CHECKING

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
import json, os, subprocess, sys
from pathlib import Path
from checkpoint_action.store.github_cache import GithubCacheStore
from checkpoint_action.toolkit.blob import DownloadPlan, UploadPlan
from checkpoint_action.toolkit.cache import Cache, cache_version
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime

out = Path(os.environ["OUT"])
plans = dict(plan=UploadPlan(1, 700_000, 4), fetch_plan=DownloadPlan(300_000, 4))
cache = Cache(Runtime.resolve(os.environ), HttpClient(), **plans)
store = GithubCacheStore(cache)
noise = Path("noise.bin")
version = "b" * 64
seen = {"service": cache.service, "before": store.find("ours-")}

store.save("Ours-1", noise)
found = store.find("ours-")
seen["found"] = found.key
store.fetch(found, out / "whole")
seen["first"] = store.read(found, 0, 5).hex()

with cache.begin("pieces", version) as entry:
    rest = entry.put(noise.read_bytes()[1000:])
    entry.finish([entry.put(noise.read_bytes()[:1000]), rest])
hit = cache.lookup(["nothing", "piec"], version)
seen["pieces"] = [hit.key, hit.exact, cache.download(hit, out / "pieces")]
seen["other version"] = cache.lookup(["pieces"], "c" * 64)

subprocess.run(["tar", "--posix", "-cf", "ours.tar", "-P", "--use-compress-program", "zstd", "noise.bin"], check=True)
cache.save("for-official", cache_version(["noise.bin"]), Path("ours.tar"))
(out / "seen.json").write_text(json.dumps(seen))
"""

AFTER = """
import json, os, subprocess
from pathlib import Path
from checkpoint_action.toolkit.cache import Cache, cache_version
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime

out = Path(os.environ["OUT"])
cache = Cache(Runtime.resolve(os.environ), HttpClient())
hit = cache.lookup(["official-"], cache_version(["noise.bin"]))
cache.download(hit, Path("theirs.tar"))
(out / "unpacked").mkdir()
subprocess.run(
    ["tar", "-xf", "theirs.tar", "-P", "-C", out / "unpacked", "--use-compress-program", "unzstd"], check=True
)
(out / "key").write_text(hit.key)
"""

WORKFLOW = """
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: python3 ours.py
        env: {{PYTHONPATH: {root}}}
      - run: cp noise.bin kept.bin && rm noise.bin && {node} {script} calls.json "$OUT/calls.json"
      - run: cp noise.bin "$OUT/restored" && python3 after.py
        env: {{PYTHONPATH: {root}}}
"""

CALLS = [["restoreCache", ["noise.bin"], "for-official"], ["saveCache", ["noise.bin"], "official-1"]]


@pytest.fixture
def act(tmp_path: Path) -> Iterator[Act]:
    (tmp_path / "tools").mkdir()
    (tmp_path / "action").mkdir()
    act = Act(tmp_path / "act", tmp_path / "action", tmp_path / "tools")
    yield act
    act.end()


def test_archives_go_both_ways_through_the_real_act(act: Act, node: Node) -> None:
    noise = random.Random(3).randbytes(3_000_000)
    workflow = WORKFLOW.format(
        root=json.dumps(str(ROOT)),
        node=shlex.quote(node.executable),
        script=shlex.quote(str(node.folder / "cache.mjs")),
    )
    files = {"ours.py": OURS, "after.py": AFTER, "calls.json": json.dumps(CALLS), "noise.bin": noise}
    result = act.run(workflow, files=files)
    assert result.returncode == 0, result.log
    seen = json.loads((result.out / "seen.json").read_text())
    assert seen == {
        "service": "v1",
        "before": None,
        "found": "ours-1",
        "first": noise[:5].hex(),
        "pieces": ["pieces", False, len(noise)],
        "other version": None,
    }
    restored, saved = json.loads((result.out / "calls.json").read_text())["value"]
    assert restored["value"] == "for-official"
    assert saved["value"] > 0
    assert (result.out / "key").read_text() == "official-1"
    for name in ("whole", "pieces", "restored", "unpacked/noise.bin"):
        assert (result.out / name).read_bytes() == noise, name
