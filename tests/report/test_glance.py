"""The quick answer to `status`: the same as the thorough one, or none."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.report.glance import glanced
from checkpoint_action.runner import seals
from checkpoint_action.runner.lock import JobLock
from tests.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is glanced at there")

STATUS = ("status", "--job", "j")
STEPS = ("--job", "j", "--step", "ok:true", "--step", "long-name:exit 3", "--step", "killed:kill -9 $$")


@pytest.fixture
def console(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Console:
    """A folder with a job that has ended in many ways."""
    monkeypatch.chdir(tmp_path)
    console = Console(tmp_path)
    console.run(*STEPS, "--continue-on-error", "--retry", "1", "--backoff", "0")
    return console


def thorough(console: Console) -> str:
    """What is said where the words take more than a glance."""
    words = (*STATUS, "--rate", "0")
    assert glanced(words) is None
    return "".join(console.run(*words).stdout.splitlines(keepends=True)[:-1])


def test_it_is_what_looking_closely_gives(console: Console) -> None:
    answer = glanced(STATUS)
    assert answer == thorough(console) == console.run(*STATUS).stdout
    assert re.fullmatch(
        r"job j\nok         done         \d\.\d s, exit code 0\n"
        r"long-name  failed       \d\.\d s, exit code 3, 2 tries\n"
        r"killed     failed       \d\.\d s, signal 9, 2 tries\n",
        answer or "",
    )
    assert glanced(("status", "--state-dir", str(console.folder), "--job", "j")) == answer
    console.run("accept", "killed", *STEPS)
    assert glanced(STATUS) == thorough(console)
    assert "killed     done (accepted)\n" in (glanced(STATUS) or "")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("status",),
        ("status", "-f", "other.yml"),
        ("plan", "--job", "j"),
        ("status", "--job"),
        ("status", "--job", ""),
        ("status", "--job", "../j"),
        ("status", "--job", "-j"),
        ("status", "--job", "other"),
        (*STATUS, "--json"),
        (*STATUS, *STATUS[1:]),
        (*STATUS, "--file", "checkpoint.yml"),
        (*STATUS, "--state-dir", "elsewhere"),
    ],
)
def test_anything_else_takes_more(console: Console, words: tuple[str, ...]) -> None:
    assert glanced(words) is None


def sealed(change: Callable[[dict[str, object]], object]) -> None:
    """Alter the state as somebody does who knows how it is sealed."""
    path = Path(".checkpoint-run-j.json")
    body = path.read_bytes().rpartition(seals.CHECKSUM)[0]
    value = json.loads(body.decode().rstrip().rstrip(",") + "}")
    change(value)
    text = json.dumps(value).encode()[:-1] + b", "
    import zlib  # noqa: PLC0415  # for this alone

    path.write_bytes(text + seals.CHECKSUM + b'%08x"}' % zlib.crc32(text))


def piped() -> None:
    """Put a pipe that nobody writes to into the journal's place."""
    os.unlink(".checkpoint-run-j.journal")
    if sys.platform != "win32":
        os.mkfifo(".checkpoint-run-j.journal")


@pytest.mark.parametrize(
    "change",
    [
        lambda: Path(".checkpoint-run-j.journal").unlink(),
        lambda: Path(".checkpoint-run-j.lock").unlink(),
        lambda: Path(".checkpoint-run-j.json").write_bytes(b"{}"),
        lambda: Path(".checkpoint-run-j.json").write_bytes(Path(".checkpoint-run-j.json").read_bytes()[:-20]),
        lambda: Path(".checkpoint-run-j.journal").write_bytes(Path(".checkpoint-run-j.journal").read_bytes()[:-5]),
        piped,
        lambda: sealed(lambda value: value.update(format=2)),
        lambda: sealed(lambda value: value.update(job="k")),
        lambda: sealed(lambda value: value.update(steps=[])),
        lambda: sealed(lambda value: value.update(steps={"\x1b[2J": {"step": "\x1b[2J", "status": "done"}})),
    ],
)
def test_what_is_not_as_a_run_has_left_it_is_looked_at_closely(console: Console, change: Callable[[], object]) -> None:
    assert glanced(STATUS) is not None
    change()
    assert glanced(STATUS) is None


@pytest.mark.parametrize(
    ("known", "said"), [(b'"signal":9', b'"signal":"\\u001b[2J"'), (b'"exit_code":3', b'"exit_code":"3"')]
)
def test_a_number_that_is_a_text_is_looked_at_closely(console: Console, known: bytes, said: bytes) -> None:
    """Whoever may write to the folder would have a terminal obey it."""
    import zlib  # noqa: PLC0415  # for this alone

    path = Path(".checkpoint-run-j.json")
    body, _, _ = seals.unseal(path.read_bytes().replace(known, said))
    assert said in body
    path.write_bytes(body + seals.CHECKSUM + b'%08x"\n}\n' % zlib.crc32(body))
    value = json.loads(path.read_bytes())
    lines = [{"job": "j"}, *({"record": row} for row in value["steps"].values())]
    Path(".checkpoint-run-j.journal").write_bytes(b"".join(seals.line(value["sequence"], rest) for rest in lines))
    assert glanced(STATUS) is None
    assert "\x1b" not in console.run(*STATUS).stdout


def test_a_run_that_is_on_is_looked_at_closely(console: Console) -> None:
    lock = JobLock(console.folder / ".checkpoint-run-j.lock")
    lock.acquire()
    assert glanced(STATUS) is None
    lock.release()
    assert glanced(STATUS) is not None


FILE = """\
job: whole
steps:
- {id: first, run: 'true'}
- {id: second, run: 'exit 3'}
- {id: third, run: 'true'}
"""


def closely(*words: str) -> tuple[str, ...]:
    """The same question in words that take more than a glance."""
    return (*words, "--rate", "0")


def test_a_job_file_is_not_read_again_where_the_last_run_has_read_it(console: Console) -> None:
    file = Path("checkpoint.yml")
    file.write_text(FILE)
    assert glanced(("status",)) is None  # nothing has run yet
    console.run()
    said = glanced(("status",))
    assert said is not None
    assert said == "".join(console.run(*closely("status")).stdout.splitlines(keepends=True)[:-1])
    assert [line.split()[:2] for line in said.splitlines()[1:]] == [
        ["first", "done"],
        ["second", "failed"],
        ["third", "pending"],
    ]
    assert glanced(("status", "-f", "checkpoint.yml")) == said
    assert console.run("status").stdout == said
    file.write_text(FILE.replace("third", "other"))
    assert glanced(("status",)) is None
    assert "other   pending" in console.run("status").stdout


def test_a_job_that_has_its_name_from_its_folder_is_known_by_it(console: Console) -> None:
    for folder in ("one", "two"):
        Path(folder).mkdir()
        Path(folder, "checkpoint.yml").write_text("steps:\n- {id: a, run: 'true'}\n")
        console.run("-f", f"{folder}/checkpoint.yml")
    for folder in ("one", "two"):
        answer = glanced(("status", "-f", f"{folder}/checkpoint.yml"))
        assert answer is not None
        assert answer.startswith(f"job {folder}\n")


@pytest.mark.parametrize("words", [("--job", "other"), ("--only", "first"), ("--max-failures", "1")])
def test_options_of_a_run_change_nothing_of_what_the_file_says(console: Console, words: tuple[str, ...]) -> None:
    Path("checkpoint.yml").write_text(FILE)
    console.run(*words)
    answer = glanced(("status",))
    assert answer in (None, console.run(*closely("status")).stdout.rpartition("what is done")[0])
    assert (answer is None) == ("--job" in words)


def test_what_is_forgotten_is_looked_at_closely(console: Console) -> None:
    Path("checkpoint.yml").write_text(FILE)
    console.run()
    console.run("reset", "first")
    assert "first   pending" in console.run("status").stdout
