"""What ``--verbose`` says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console import Console

if TYPE_CHECKING:
    from pathlib import Path

JOB = """\
job: j
steps:
- id: a
  inputs: [in]
  outputs: [out]
  timeout: 90
  retry: 1
  run: |
    cat in >out
    echo K=1 >>"$GITHUB_OUTPUT"
"""


@pytest.fixture
def console(tmp_path: Path) -> Console:
    (tmp_path / "checkpoint.yml").write_text(JOB)
    (tmp_path / "in").write_bytes(bytes(2048))
    return Console(tmp_path)


def lines(text: str) -> list[str]:
    return [line.removeprefix("checkpoint-run:   ") for line in text.splitlines() if "checkpoint-run:   " in line]


def test_it_names_commands_limits_what_was_left_and_what_was_verified(console: Console, tmp_path: Path) -> None:
    first = console.run("-v", "--backoff", "1")
    assert lines(first.stderr) == [
        "command line: checkpoint-run -v --backoff 1",
        "state: .checkpoint-run-j.json",
        "1 of 1 steps are looked at",
        f"in {tmp_path}, with bash; for 1 min 30 s at most; up to 2 tries; leaves out",
        "$ cat in >out",
        '$ echo K=1 >>"$GITHUB_OUTPUT"',
        "left 1 path with 2.0 KiB",
        "hands on K",
    ]
    second = lines(console.run("--verbose", "--verify", "stat").stderr)
    assert second[3].startswith("fingerprint ")
    assert second[4].startswith("compared: command, ")
    assert second[5] == "verified by size, times and inode: 1 path with 2.0 KiB"


def test_it_ends_with_the_table_and_what_to_type_also_where_there_is_no_terminal(console: Console) -> None:
    steps = ("--job", "k", "--step", "a:true", "--step", "b:echo why; exit 3")
    ended = console.run(*steps, "-v", "--force")
    said = ended.stderr.splitlines()
    assert [line.split()[:2] for line in said[-7:-4]] == [["step", "result"], ["a", "done"], ["b", "failed"]]
    assert said[-4:] == [
        "last lines of b, from .checkpoint-run-k.logs/b.log:",
        "  | why",
        "what is done is saved; to go on, run:",
        "  checkpoint-run --job k --step a:true --step 'b:echo why; exit 3' -v",
    ]


def test_no_secret_is_among_the_lines_in_a_file(console: Console, tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text(
        "job: j\nsecrets: [TOKEN]\nsteps:\n- {id: a, run: 'echo $TOKEN hunter22; exit 1'}\n"
    )
    ended = console.run("-v", env={"TOKEN": "hunter22"})
    assert "hunter22" not in ended.stderr
    assert "$ echo $TOKEN ***; exit 1" in ended.stderr


def test_it_and_quiet_exclude_each_other(console: Console) -> None:
    refused = console.run("-v", "-q")
    assert refused.returncode == 2
    assert "not allowed with" in refused.stderr
