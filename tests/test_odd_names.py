"""Names that are a trap: for a file system, for YAML; one behaviour a test, through the installed program."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import TYPE_CHECKING

import pytest

from tests.console import Console, plain, tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="the steps are written for sh"),
    pytest.mark.timeout(120),  # a run that does not end fails the test, not the whole suite
]


@pytest.fixture
def console(tmp_path: Path) -> Console:
    folder = tmp_path / "here"
    folder.mkdir()
    return Console(folder)


def job(console: Console, *steps: str) -> None:
    text = "".join(f"- {step}\n" for step in steps)
    (console.folder / "checkpoint.yml").write_text(f"job: j\nsteps:\n{text}", "utf-8")


def echoing(name: str) -> str:
    """A step that leaves its id in ``ran`` each time it runs."""
    return f"{{id: {name}, run: 'echo {name} >>ran'}}"


def ran(console: Console) -> list[str]:
    """Which steps a run starts."""
    (console.folder / "ran").unlink(missing_ok=True)
    ended = console.run("--quiet")
    assert ended.returncode == 0, ended.stderr
    file = console.folder / "ran"
    return file.read_text().split() if file.exists() else []


# ---------------------------------------------------------------------------------------------- names

REFUSED = [
    *("a/b", "a\\b", "x(1)", "../up", ".hidden", "x" * 300),
    *(unicodedata.normalize(form, "Straße-é") for form in ("NFC", "NFD")),
]


@pytest.mark.parametrize(
    ("name", "face"),
    # --step takes all up to the first colon for the id.
    [("build:js", "file"), *((name, face) for name in REFUSED for face in ("file", "flags"))],
    ids=lambda value: ascii(value)[:30],
)
def test_an_id_that_makes_no_safe_file_is_refused_with_one_line(console: Console, name: str, face: str) -> None:
    job(console, f"{{id: {json.dumps(name, ensure_ascii=False)}, run: touch ran}}")
    words = () if face == "file" else ("--job", "j", "--step", f"{name}:touch ran")
    before = tree(console.folder.parent)
    ended = console.run(*words)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert plain(ended.stderr).startswith("checkpoint-run: error: ")
    assert "is not valid; use letters, digits, '.', '_' and '-'" in ended.stderr
    assert tree(console.folder.parent) == before


KEPT = ("CON", "nul.txt", "aux", "trail.", "trail", "a-b", "a_b", "a.b", "a--b", "x" * 100)


def test_odd_ids_have_distinct_safe_files_in_the_state_dir_alone(console: Console) -> None:
    job(console, *(f"{{id: {name}, run: 'echo says {name}'}}" for name in KEPT))
    words = ("--state-dir", "state")
    before = {path for path in console.folder.parent.rglob("*") if path.parent.name != "state"}
    assert console.run(*words).returncode == 0
    made = {path.relative_to(console.folder) for path in set(console.folder.parent.rglob("*")) - before}
    assert {path.parts[0] for path in made} == {"state"}
    logs = {path for path in made if path.suffix == ".log"}
    assert len({str(path).casefold() for path in logs}) == len(KEPT)
    devices = {"con", "prn", "aux", "nul", *(f"{word}{number}" for word in ("com", "lpt") for number in range(1, 10))}
    for path in made:
        assert path.name.partition(".")[0].casefold() not in devices
        assert not path.name.endswith((".", " "))
    for name in KEPT:
        assert console.run("logs", name, *words).stdout == f"says {name}\n"
    assert list(console.state("j", "state")) == list(KEPT)


# ---------------------------------------------------------------------------------------------- YAML


def test_ids_that_yaml_would_take_for_something_else_stay_what_they_are(console: Console) -> None:
    names = ["on", "no", "true", "1.10", "1.1", "010", "8", "0x10", "1e3", "null1"]
    job(console, *(echoing(name) for name in names))
    assert ran(console) == names
    assert list(console.statuses("j")) == names
    # Each is known by its own name the next time.
    assert ran(console) == []
    job(console, *(echoing(name) for name in names), "{id: last, run: 'echo last >>ran', needs: [on, 1.10, 010]}")
    assert ran(console) == ["last"]


@pytest.mark.parametrize(
    ("text", "place", "key"),
    [
        ("job: j\njob: k\nsteps:\n- {id: a, run: touch ran}\n", "2:1", "job"),
        ("job: j\nsteps:\n- id: a\n  run: touch ran\n  run: touch ran\n", "5:3", "run"),
        ("job: j\nsteps:\n- {id: a, run: touch ran, env: {A: '1', A: '2'}}\n", "3:41", "A"),
        ("job: j\nsteps:\n- {id: a, run: touch ran}\nsteps:\n- {id: b, run: touch ran}\n", "4:1", "steps"),
    ],
)
def test_a_key_that_is_there_twice_is_an_error_and_nothing_runs(
    console: Console, text: str, place: str, key: str
) -> None:
    (console.folder / "checkpoint.yml").write_text(text)
    ended = console.run()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert plain(ended.stderr).startswith(f"checkpoint-run: error: checkpoint.yml:{place}: ")
    assert f"key '{key}' is there twice" in ended.stderr
    assert sorted(path.name for path in console.folder.iterdir()) == ["checkpoint.yml"]


def test_an_id_that_yaml_reads_as_a_time_is_refused(console: Console) -> None:
    job(console, "{id: 1:30, run: touch ran}")
    ended = console.run()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("checkpoint-run: error CPR107: checkpoint.yml:3:8: step id '1:30' is not valid")
