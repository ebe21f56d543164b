"""What a run keeps for `plan --verify stat`: given again while nothing has changed, and never another answer."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkpoint_action.cli import main
from checkpoint_action.runner.recall import recalled
from tests.console import Console, environment, tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [
    pytest.mark.slow,  # each test runs the installed program several times
    pytest.mark.skipif(sys.platform == "win32", reason="nothing is kept there"),
]

KEPT = ".checkpoint-run-demo.plan"
STAT = ("plan", "--verify", "stat")
ANEW = (*STAT, "--quiet")  # the same question in words that are always decided on
JOB = """\
job: demo
shell: sh
pass-env: [MARK]
steps:
  - {id: make, inputs: ["src/**/*.c", "!src/old/**"], run: "cat src/a.c > out; ln -sf out last", outputs: [out, last]}
  - {id: pack, inputs: [lib], run: "mkdir -p dist/sub; cp lib/x dist/sub/x", outputs: [dist]}
  - {id: use, inputs: [one], run: "cat out > copy"}
"""


def project(folder: Path) -> Console:
    """A job of which all is done, in a checkout."""
    for name in ("src/a.c", "src/sub/b.c", "src/old/c.c", "src/notes", "lib/x", "lib/deep/y", "one", "beside"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name:9}")
    (folder / "checkpoint.yml").write_text(JOB)
    (folder / ".gitignore").write_text(".checkpoint-run-*\nsrc/made*\n")
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)
    console = Console(folder)
    done = console.run("--verify", "stat", "--no-logs")
    assert done.returncode == 0, done.stderr
    return console


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def said(*words: str) -> str:
    """What the whole way says, with what it warns of; nothing is recalled."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return out.getvalue() if code == 0 and not err.getvalue() else f"{code} {out.getvalue()} {err.getvalue()}"


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return project(tmp_path)


def test_the_answer_is_given_again_without_loading_what_decides(console: Console) -> None:
    for words in (STAT, (*STAT, "--json")):
        script = (
            "import sys, atexit\n"
            "from checkpoint_action.__main__ import entry\n"
            "atexit.register(lambda: print('yaml' in sys.modules, 'argparse' in sys.modules, file=sys.stderr))\n"
            f"sys.argv[1:] = {list(words)!r}\n"
            "entry()\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=console.folder,
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "False False\n")
        assert done.stdout == console.run(*words, "--quiet").stdout
    assert [step["action"] for step in json.loads(done.stdout)["steps"]] == ["skip"] * 3


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "--json", "--verify=stat"),
        (*STAT, "--file", "checkpoint.yml"),
        (*STAT, "-f", "checkpoint.yml", "--state-dir", "."),
    ],
)
def test_other_words_for_the_same_question_get_the_answer(console: Console, words: tuple[str, ...]) -> None:
    with inside(console.folder):
        assert recalled(words, environment()) == said(*words, "--quiet")


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("plan",),
        ("status",),
        ("plan", "--verify", "full"),
        ("plan", "--verify"),
        ("--verify", "stat", "plan"),
        (*STAT, "--only", "make"),
        (*STAT, "--state-dir", "src"),
        (*STAT, "--job", "other"),
        (*STAT, "--job", "demo"),
        (*STAT, "-f", "other.yml"),
        (*STAT, "-f", "checkpoint.yml", "-f", "checkpoint.yml"),
        (*STAT, "word"),
        (*STAT, "--file"),
    ],
)
def test_any_other_question_is_decided_on(console: Console, words: tuple[str, ...]) -> None:
    with inside(console.folder):
        assert recalled(words, environment()) is None


def test_only_a_run_that_trusts_stat_writes_it_and_reset_removes_it(tmp_path: Path) -> None:
    console = project(tmp_path)
    assert (tmp_path / KEPT).stat().st_mode & 0o777 == 0o600
    (tmp_path / KEPT).unlink()
    before = tree(tmp_path)
    assert console.run(*STAT).returncode == 0
    assert console.run().returncode == 0
    assert KEPT not in tree(tmp_path)
    assert tree(tmp_path).keys() - {".checkpoint-run-demo.logs"} == before.keys()
    console.run("--verify", "stat")
    assert (tmp_path / KEPT).exists()
    assert console.run("reset").returncode == 0
    assert not (tmp_path / KEPT).exists()


def test_a_run_that_does_nothing_leaves_it_as_it_is(console: Console) -> None:
    before = (console.folder / KEPT).stat()
    assert console.run("--verify", "stat", "--no-logs").returncode == 0
    assert (console.folder / KEPT).stat().st_ino == before.st_ino


def test_a_change_is_seen_and_the_next_run_keeps_the_answer_anew(console: Console) -> None:
    (console.folder / "one").write_text("ONE      ")
    assert "use   run      inputs-changed" in console.run(*STAT).stdout
    assert console.run("--verify", "stat", "--no-logs").returncode == 0
    with inside(console.folder):
        assert recalled(STAT, environment()) == said(*ANEW)


@pytest.mark.parametrize(
    "steps",
    [
        "- {id: a, run: 'true', always: true}",
        "- {id: a, inputs: [../*/one], run: 'true'}",
        "- {id: a, inputs: [missing], run: 'true'}",
        "- {id: a, inputs: [link], run: 'true'}",
        "- {id: a, inputs: ['linked/**'], run: 'true'}",
        "- {id: a, inputs: ['made*'], run: 'true'}\n- {id: b, run: 'echo >> one', inputs: [one], needs: []}",
    ],
)
def test_nothing_is_kept_of_a_job_that_is_not_done_or_depends_on_more(tmp_path: Path, steps: str) -> None:
    (tmp_path / "one").write_text("1")
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_text("1")
    (tmp_path / "link").symlink_to("one")
    (tmp_path / "linked").symlink_to("real")
    (tmp_path / "checkpoint.yml").write_text(f"job: demo\nshell: sh\nsteps:\n{steps}\n")
    assert Console(tmp_path).run("--verify", "stat").returncode == 0
    assert not (tmp_path / KEPT).exists()


def test_a_run_that_is_on_is_told_of(console: Console) -> None:
    fcntl = pytest.importorskip("fcntl")
    with (console.folder / ".checkpoint-run-demo.lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = console.run(*STAT)
    assert "a run of this job is going on" in done.stderr


def test_a_variable_of_ours_may_say_anything(console: Console) -> None:
    with inside(console.folder):
        assert recalled(STAT, environment()) is not None
        assert recalled(STAT, {**environment(), "CHECKPOINT_STORE": "file:///nowhere"}) is None
        assert recalled(STAT, {**environment(), "MARK": ""}) is None
        assert recalled(STAT, {**environment(), "GITHUB_RUN_ID": "1"}) is None


def test_an_answer_nobody_can_take_is_an_error_as_ever(console: Console) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    with full.open("w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "checkpoint_action", *STAT],
            cwd=console.folder,
            env=environment(),
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode != 0
    assert "cannot write the answer" in done.stderr
    closed = console.script('"$CR" plan --verify stat >&-; echo $?')
    assert closed.stdout == "0\n"


@pytest.mark.parametrize("step", [1, 7])
def test_a_damaged_file_is_as_none(console: Console, step: int) -> None:
    path = console.folder / KEPT
    whole = path.read_bytes()
    with inside(console.folder):
        right = recalled(STAT, environment())
        for at in range(0, len(whole), max(1, len(whole) * step // 60)):
            for damaged in (
                whole[:at],
                whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
                whole[:at] + whole[at + step :],
            ):
                path.write_bytes(damaged)
                assert recalled(STAT, environment()) is None
        path.write_bytes(whole)
        assert recalled(STAT, environment()) == right
        path.unlink()
        path.mkdir()
        assert recalled(STAT, environment()) is None
        path.rmdir()
        os.mkfifo(path)
        assert recalled(STAT, environment()) is None


def run() -> subprocess.CompletedProcess[str]:
    """Run the job of the current folder."""
    return Console(Path.cwd()).run("--verify", "stat", "--no-logs", "--quiet")


def put_back(path: str, text: str) -> None:
    """Edit a file and give it its time back."""
    before = os.stat(path)
    Path(path).write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def swap(one: str, other: str) -> None:
    """Let two paths change places."""
    os.rename(one, "between")
    os.rename(other, one)
    os.rename("between", other)


def copied(folder: str) -> None:
    """Put a copy in the place of a folder."""
    shutil.copytree(folder, "copied", symlinks=True)
    shutil.rmtree(folder)
    os.rename("copied", folder)


def linked(path: str) -> None:
    """Put a link to it in the place of a file or folder."""
    os.rename(path, "moved")
    os.symlink(Path("moved").absolute(), path)


def led(link: str, target: str) -> None:
    """Let a link lead to something, be it where it led before."""
    os.unlink(link)
    os.symlink(target, link)


def damaged(path: str, at: float) -> None:
    """Change a byte of a file."""
    data = bytearray(Path(path).read_bytes())
    data[int(at * len(data))] ^= 1
    Path(path).write_bytes(data)


FILES = (
    "src/a.c",
    "src/sub/b.c",
    "src/old/c.c",
    "src/notes",
    "lib/x",
    "lib/deep/y",
    "one",
    "out",
    "dist/sub/x",
    "copy",
)
FOLDERS = ("src", "src/sub", "src/old", "lib", "lib/deep", "dist", "dist/sub")
NEW = ("src/d.c", "src/sub/made.c", "src/new", "src/old/e.c", "lib/z", "lib/deep/z", "dist/z", "beside.c", "src/.x.c")
STATE = tuple(f".checkpoint-run-demo{ending}" for ending in (".json", ".journal", ".index", ".plan", ".lock"))
EDITS: tuple[Callable[[random.Random], object], ...] = (
    lambda draw: Path(draw.choice(FILES)).write_text("123456789"),
    lambda draw: Path(draw.choice(FILES)).write_text("more than there was"),
    lambda draw: put_back(draw.choice(FILES), "987654321"),
    lambda draw: os.utime(draw.choice(FILES)),
    lambda draw: os.chmod(draw.choice((*FILES, *FOLDERS)), draw.choice((0o700, 0o755, 0o644))),
    lambda draw: os.unlink(draw.choice((*FILES, "last", ".gitignore", *STATE))),
    lambda draw: shutil.rmtree(draw.choice((*FOLDERS, ".git"))),
    lambda draw: Path(draw.choice(NEW)).write_text("new"),
    lambda draw: os.mkdir(draw.choice(NEW)),
    lambda draw: os.rename(draw.choice((*FILES, *FOLDERS)), draw.choice((*FILES, *NEW))),
    lambda draw: swap(draw.choice(FILES), draw.choice((*FILES, "beside"))),
    lambda draw: swap(*draw.sample(FOLDERS, 2)),
    lambda draw: copied(draw.choice(FOLDERS)),
    lambda draw: linked(draw.choice((*FILES, *FOLDERS, "checkpoint.yml"))),
    lambda draw: led("last", draw.choice(("out", "one", "nowhere"))),
    lambda draw: Path(".gitignore").write_text(draw.choice(("", "*.c\n", "src/sub\n", "beside\n", "dist\n"))),
    lambda draw: Path("src/sub/.gitignore").write_text(draw.choice(("*\n", "b.c\n", "#\n"))),
    lambda draw: Path(".git/info/exclude").write_text(draw.choice(("*.c\n", "#\n"))),
    lambda draw: subprocess.run(["git", "rm", "-rq", "--cached", draw.choice(("src", "lib"))], check=True),
    lambda draw: subprocess.run(["git", "config", "core.excludesFile", "one"], check=True),
    lambda draw: Path("checkpoint.yml").write_text(JOB.replace("cat out", draw.choice(("cat  out", "cat out")))),
    lambda draw: Path("checkpoint.yml").write_text(JOB.replace("[one]", "['on*']")),
    lambda draw: damaged(draw.choice(STATE[:4]), draw.random()),
    lambda draw: Path(draw.choice(STATE[:2])).write_bytes(b""),
    lambda draw: said("reset", draw.choice(("make", "use"))),
    lambda draw: said("accept", "use"),
    lambda draw: os.environ.update({draw.choice(("MARK", "HOME", "GIT_DIR", "OTHER")): draw.choice(("", "x"))}),
    lambda draw: run(),
)


@pytest.fixture(scope="module")
def done_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("done") / "project"
    folder.mkdir()
    project(folder)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(900)  # each of many examples runs a job
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.integers(0, len(EDITS) - 1), min_size=1, max_size=4), seed=st.integers(0, 1 << 20))
def test_whatever_is_edited_no_other_answer_is_given_than_deciding_gives(
    monkeypatch: pytest.MonkeyPatch, done_project: Path, edits: list[int], seed: int
) -> None:
    draw = random.Random(seed)
    aside = done_project.with_name("aside")
    subprocess.run(["cp", "-a", done_project, aside], check=True)
    try:
        with monkeypatch.context() as patch, inside(done_project):
            for name in ("MARK", "OTHER", "HOME", "GIT_DIR"):
                patch.setenv(name, "")  # to be as it was in the end
                del os.environ[name]
            assert run().returncode == 0  # as a copy has other inodes
            assert recalled(STAT, os.environ) == said(*ANEW)
            for edit in edits:
                with suppress(OSError, subprocess.CalledProcessError, shutil.Error):
                    EDITS[edit](draw)
                answer = recalled(STAT, os.environ)
                whole = said(*ANEW)
                assert answer in (None, whole)
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", done_project], check=True)
        shutil.rmtree(done_project)
        aside.rename(done_project)
