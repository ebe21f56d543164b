"""A job of which all is done, and what may happen to it before anybody asks what is left to do."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.cli import main
from tests.console import Console

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

__all__ = ["ANEW", "EDITS", "JOB", "KEPT", "STAT", "inside", "project", "run", "said"]

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
    lambda draw: os.mkdir(f".checkpoint-run-demo.{draw.choice(('run', 'progress', 'logs'))}"),
    lambda draw: os.truncate(draw.choice(FILES), draw.choice((0, 9, 10, 40 << 20))),
    lambda draw: os.environ.update(PATH=draw.choice((os.environ["PATH"], "nowhere"))),
    lambda draw: run(),
)
