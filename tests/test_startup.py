"""What a start loads: counted, as time says nothing on a busy machine."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, environment

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="what is asked of a state is looked at closely there")

NAMES_ALL = """
import sys
from checkpoint_action.__main__ import entry
sys.argv[1:] = {words!r}
try:
    entry()
except SystemExit:
    pass
finally:
    print(*sorted(sys.modules), file=sys.stderr)
"""
BASE = "import sys, argparse, json, hashlib; print(*sorted(sys.modules), file=sys.stderr)"
HEAVY = {"dataclasses", "inspect", "typing", "pathlib", "shutil", "tempfile", "subprocess", "threading", "yaml"}


def loaded(folder: Path, code: str) -> set[str]:
    """The names of all modules that a program has loaded in the end."""
    ended = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(ended.stderr.splitlines()[-1].split())


# Of those of status, two look whose the state's files are (store, store.folders), and two are parts of what recalls
# an answer (basis, holding).
@pytest.mark.parametrize(("words", "most"), [(["--help"], 12), (["status", "--job", "j"], 12), (["status"], 12)])
def test_a_start_loads_little_more_than_any_program_does(tmp_path: Path, words: list[str], most: int) -> None:
    """Whoever needs one module more here has to say for what: the time of a start is that of its modules."""
    (tmp_path / "checkpoint.yml").write_text("job: j\nsteps:\n- {id: a, run: 'true'}\n")
    assert Console(tmp_path).run().returncode == 0
    base = loaded(tmp_path, BASE)
    more = loaded(tmp_path, NAMES_ALL.format(words=words)) - base
    ours = {name for name in more if name.startswith("checkpoint_action")}
    assert not more & HEAVY, sorted(more)
    assert len(ours) <= most, sorted(ours)
    assert len(more - ours) <= 8, sorted(more - ours)


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux")
def test_help_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    console = Console(tmp_path)
    assert console.run("--help").stdout.splitlines()[0] == "usage: checkpoint-run [VERB] [options]"
    ended = console.script("$CR --help >/dev/full")
    assert (ended.returncode, ended.stderr.count("\n")) == (5, 1)
    assert "cannot write the answer" in ended.stderr
