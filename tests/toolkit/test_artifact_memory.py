"""An artifact of a gigabyte passes through little memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.actions_service import ActionsService

ROOT = Path(__file__).resolve().parents[2]
GIB = 1024**3
MOST = 150 * 1024  # KiB

SCRIPT = """
import sys
from pathlib import Path

from checkpoint_action.toolkit.artifact import ArtifactClient

source, out = map(Path, sys.argv[1:])
client = ArtifactClient.from_env()
sent = client.upload_artifact("large", [source], source.parent, compression_level=0)
source.unlink()
client.download_artifact(sent.id, out)
print(Path("/proc/self/status").read_text())
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel's /proc for the peak")
def test_a_gigabyte_goes_up_and_down_in_flat_memory(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    with source.open("wb") as file:
        file.write(b"start")
        file.truncate(GIB - 3)
        file.seek(0, os.SEEK_END)
        file.write(b"end")
    with ActionsService.running() as service:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, str(source), str(out)],
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **service.env()},
            stdout=subprocess.PIPE,
            check=True,
        )
        sizes = [len(content) for content in service.blobs.content.values()]
    came = out / "source"
    assert came.stat().st_size == GIB
    with came.open("rb") as file:
        assert file.read(5) == b"start"
        file.seek(-3, os.SEEK_END)
        assert file.read() == b"end"
    came.unlink()  # pytest keeps what is left
    assert sizes[0] >= GIB
    peak = re.search(rb"VmHWM:\s+(\d+) kB", done.stdout)
    assert peak is not None
    assert int(peak[1]) < MOST, f"{int(peak[1])} KiB at the peak"
