"""Checkouts and folders that somebody else has prepared: looking at them runs nothing of theirs."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.console import PROGRAM, Console, environment
from tests.torture.hostile_words import CANARY, canaries, first

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["STRANGER", "checkout", "modules", "shared_folder", "strangers"]

STRANGER = 12346
"""Number of the other user."""

_SETTINGS = (
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "core.askPass",
    "core.gitProxy",
    "core.alternateRefsCommand",
    "diff.external",
    "diff.x.command",
    "diff.x.textconv",
    "merge.x.driver",
    "alias.ls-files",
    "alias.rev-parse",
    "alias.diff",
    "gpg.program",
    "credential.helper",
    "uploadpack.packObjectsHook",
    "remote.origin.uploadpack",
    "trailer.x.command",
    "pager.ls-files",
    "sequence.editor",
    "interactive.diffFilter",
    "filter.x.clean",
    "filter.x.smudge",
    "filter.x.process",
)
_HOOKS = (
    "post-index-change",
    "pre-commit",
    "post-checkout",
    "fsmonitor-watchman",
    "reference-transaction",
    "query-watchman",
)
_VERBS = (
    ["plan"],
    ["status"],
    ["graph"],
    ["plan", "--verify", "stat"],
    ["doctor"],
    ["plan", "--store", "file:///nowhere-at-all", "--scope", "content"],
)
_JOB = "job: x\nsteps:\n- id: a\n  run: 'true'\n  inputs: ['**']\n- id: b\n  run: 'true'\n  outputs: ['*.out']\n"


def checkout(folder: Path, chance: random.Random) -> list[str]:
    """A repository whose own settings name programs; every verb that only looks is tried in it."""
    work = folder / "work"
    kind = chance.choice(["plain", "bare inside", "above", "submodule", "included"])
    if kind == "bare inside":  # a folder in the checkout that looks like a repository itself, as a clone can bring one
        _git(folder, "init", "--quiet", "--bare", str(work))
        _git(work, "config", "core.bare", "false")
        _git(work, "config", "core.worktree", str(work))
    else:
        _git(folder, "init", "--quiet", str(work))
    (work / "checkpoint.yml").write_text(_JOB)
    (work / "a.x").write_text("x")
    (work / ".gitattributes").write_text("* diff=x filter=x merge=x\n")
    (work / ".gitignore").write_text("*.out\n")
    canary = folder / CANARY
    if kind in ("plain", "above", "submodule", "included"):
        _git(work, "add", ".")
        _git(work, "commit", "--quiet", "--message", "x")
    if kind == "submodule":
        inner = folder / "inner"
        _git(folder, "clone", "--quiet", str(work), str(inner))
        _git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "sub")
        _git(work, "commit", "--quiet", "--message", "y")
    hooks = folder / "hooks"
    hooks.mkdir()
    for name in _HOOKS:
        (hooks / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (hooks / name).chmod(0o755)
    settings = [*chance.sample(_SETTINGS, 8), "core.fsmonitor"]
    target = ["--file", str(folder / "included")] if kind == "included" else []
    places = [work / "sub", work] if kind == "submodule" else [work]
    for place in places:
        for name in settings:
            said = f"{'!' if name.startswith('alias.') else ''}touch {canary}; false"
            _git(place, "config", *target, name, said)
        _git(place, "config", *target, "core.hooksPath", str(hooks))
        if kind == "included":
            _git(place, "config", "include.path", str(folder / "included"))
    start = work
    if kind == "above":
        start = work / "deep" / "down"
        start.mkdir(parents=True)
        shutil.copyfile(work / "checkpoint.yml", start / "checkpoint.yml")
    (work / "a.x").write_text("changed")
    (work / "b.out").write_text("x")
    faults = []
    env = {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in chance.sample(_VERBS, 2):
        ended = Console(start).run(*words, env=env)
        if ended.returncode not in (0, 2):
            faults.append(f"{kind}: {words} ended with {ended.returncode}: {ended.stderr[-200:]!r}")
        if canary.exists():
            faults.append(f"{kind}: {words} ran a program that the repository names, of {settings}")
            break
    return first(faults)


_SHADOWED = (
    "yaml",
    "psutil",
    "urllib3",
    "signal",
    "argparse",
    "json",
    "subprocess",
    "hashlib",
    "shlex",
    "tempfile",
    "sitecustomize",
    "usercustomize",
)


_WORDS = (["run", "--report", "r.html"], ["plan"], ["status"], ["doctor"])


def modules(folder: Path, chance: random.Random) -> list[str]:
    """A workspace with Python files that are called like what the program imports."""
    for name in _SHADOWED:
        text = f"import pathlib; pathlib.Path({str(folder / CANARY)!r}).touch()\nraise SystemExit(99)\n"
        if chance.random() < 0.5:
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text(text)
        else:
            (folder / f"{name}.py").write_text(text)
    (folder / "checkpoint.yml").write_text(_JOB)
    start = chance.choice([[str(PROGRAM)], [sys.executable, "-m", "checkpoint_action"]])
    faults = []
    for words in chance.sample(_WORDS, 2):
        done = subprocess.run(
            [*start, *words],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
            check=False,
        )
        if done.returncode not in (0, 1):
            faults.append(f"{start[-1]} {words}: {done.returncode} {done.stderr[-300:]!r}")
    return first(faults + canaries(folder))


_FOLDERS = (".logs", ".progress", ".run", ".archives", ".fetched")
_FILES = (".json", ".journal", ".lock", ".index", ".plan", ".json.tmp", ".journal.tmp")
_RACE = """
import os, random, sys
folder, precious, seed, *endings = sys.argv[1:]
os.umask(0)
chance = random.Random(seed)
def fill(path):
    for inner in ("", "bin", "values", "requests", "_a.progress"):
        try: os.mkdir(os.path.join(path, inner), 0o777)
        except OSError: pass
    for inner in ("a.log", "no-outputs.json", "bin/checkpoint-run.py", "000001-env", "values/000001-env"):
        try: os.symlink(precious, os.path.join(path, inner))
        except OSError: pass
    try:
        with open(os.path.join(path, "bin/checkpoint-run"), "w") as file:
            file.write("#!/bin/sh\\ntouch %s-ran\\n" % precious)
        os.chmod(os.path.join(path, "bin/checkpoint-run"), 0o755)
    except OSError: pass
print("ready", flush=True)
while True:
    path = os.path.join(folder, ".checkpoint-run-j" + chance.choice(endings))
    try:
        kind = chance.choice([0, 1, 1, 1, 2, 3, 4, 4])
        if kind == 0: os.symlink(precious, path)
        elif kind == 1: fill(path)
        elif kind == 2: os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
        elif kind == 3: os.mkfifo(path, 0o666)
        elif chance.random() < 0.5: os.unlink(path)
        else: os.rmdir(path)
    except OSError: pass
"""


def strangers() -> bool:
    """Whether there can be a second user here."""
    return sys.platform == "linux" and os.geteuid() == 0 and shutil.which("setpriv") is not None


def shared_folder(folder: Path, chance: random.Random) -> list[str]:
    """A state dir like ``/tmp``, in which another user makes files of our names all the while that we run."""
    state = folder / "state"
    state.mkdir()
    state.chmod(0o1777)
    folder.chmod(0o755)
    work = folder / "work"
    work.mkdir(mode=0o700)
    precious = folder / "precious"
    precious.write_text("precious")
    precious.chmod(0o644)
    faults: list[str] = []
    words = ["--job", "j", "--state-dir", str(state)]
    step = (
        'a:env >env.txt; checkpoint-run --version; echo A=1 >>"$GITHUB_ENV"; test "$(cat "$CHECKPOINT_STEPS")" = "{}"'
    )
    mask = os.umask(chance.choice([0, 0o077, 0o022]))
    try:
        with _racing(state, precious, chance):
            for _ in range(2):
                ended = Console(work).run(
                    "run", *words, "--step", step, "--store", (work / "store").as_uri(), "--run-id", "1"
                )
                if ended.returncode not in (0, 2, 4, 5):
                    faults.append(f"a run beside a stranger ended with {ended.returncode}: {ended.stderr[-300:]!r}")
                looked = Console(work).run("status", *words)
                if looked.returncode not in (0, 2) or (" done " in looked.stdout and ended.returncode):
                    faults.append(
                        f"the status beside a stranger: {looked.returncode} {looked.stdout!r} {looked.stderr[-200:]!r}"
                    )
    finally:
        os.umask(mask)
    if precious.read_text() != "precious" or stat.S_IMODE(precious.stat().st_mode) != 0o644:
        faults.append("a file that a stranger's link led to was changed")
    if precious.with_name("precious-ran").exists():
        faults.append("a stranger's program was run")
    faults += [f"others may look into {path.name}" for path in _open_to_others(state)]
    return first(faults)


def _open_to_others(folder: Path) -> Iterator[Path]:
    """Files of ours in a folder, and in what others may enter there."""
    for path in folder.iterdir():
        info = path.lstat()
        if info.st_uid != os.geteuid():
            if stat.S_ISDIR(info.st_mode):
                yield from (one for one in path.rglob("*") if one.lstat().st_uid == os.geteuid())
        elif path.suffix != ".lock" and stat.S_IMODE(info.st_mode) & 0o077:
            yield path


@contextmanager
def _racing(state: Path, precious: Path, chance: random.Random) -> Iterator[None]:
    user = ["setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups"]
    python = "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable
    command = [*user, python, "-I", "-c", _RACE, str(state), str(precious), str(chance.random())]
    command += chance.sample(_FOLDERS, chance.randint(0, 2)) or chance.sample(_FILES, 2)  # with all, no run comes far
    racer = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert racer.stdout is not None
        if racer.stdout.readline() != b"ready\n":
            raise AssertionError("there is no Python that another user may start")
        yield
    finally:
        os.killpg(racer.pid, signal.SIGKILL)
        racer.wait()
        if racer.stdout is not None:
            racer.stdout.close()


def _git(folder: Path, *words: str) -> None:
    who = [
        "-c",
        "user.name=Octo",
        "-c",
        "user.email=octo@example.com",
        "-c",
        "core.hooksPath=/dev/null",
        "-c",
        "core.fsmonitor=",
    ]
    env = environment({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull})
    subprocess.run(
        ["git", *who, *words], cwd=folder, env=env, check=True, stdin=subprocess.DEVNULL, capture_output=True
    )
