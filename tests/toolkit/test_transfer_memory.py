"""Transfers take the same memory whatever their size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="no such figure of a process's peak memory"),
]

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
SCRIPT = """
import json, os, resource, sys
from pathlib import Path
from checkpoint_action.toolkit.blob import DownloadPlan, UploadPlan
from checkpoint_action.toolkit.cache import Cache
from checkpoint_action.toolkit.exchange import FileSlice
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (1 if sys.platform == "linux" else 1024)

folder, mib = Path(sys.argv[1]), 1 << 20
cache = Cache(Runtime.resolve(os.environ), HttpClient(env={}), plan=UploadPlan(8 * mib, 8 * mib, 4))
source = folder / "source"
peaks = []
for size in (20, 300):
    with source.open("wb") as file:
        for _ in range(size):
            file.write(os.urandom(mib))
    cache.save(f"file-{size}", "a" * 64, source)
    with cache.begin(f"pieces-{size}", "a" * 64) as entry:
        rest = [entry.put(os.urandom(4 * mib)) for _ in range(size // 4)]
        entry.finish([entry.put(b"head"), *rest])
    for kind in ("file", "pieces"):
        hit = cache.lookup([f"{kind}-{size}"], "a" * 64)
        assert cache.download(hit, folder / "target") >= size // 4 * 4 * mib
    peaks.append(peak() // 1024)
print(json.dumps(peaks))
"""


def test_memory_does_not_grow_with_the_content(tmp_path: Path) -> None:
    (tmp_path / "server").mkdir()
    command = [sys.executable, "-m", "benchmarks.cache_server", str(tmp_path / "server")]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "ACTIONS_RESULTS_URL": server.stdout.readline().strip(),
        "ACTIONS_RUNTIME_TOKEN": "token",
        "ACTIONS_CACHE_SERVICE_V2": "True",
        "GITHUB_SERVER_URL": "https://github.com",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(tmp_path)],
            env=env,
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
    finally:
        server.communicate()
    assert done.returncode == 0, done.stderr
    small, large = json.loads(done.stdout)
    assert large - small < 32, f"{small} MiB became {large} MiB"
