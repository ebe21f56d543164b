"""The command line with hostile texts wherever a job file, a flag or a file's name can have one."""

from __future__ import annotations

import functools
import html
import io
import json
import re
import shlex
import string
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from checkpoint_action.store.frames import content, frames
from tests.console import Console
from tests.torture.hostile_words import canaries, file_name, first, hostile, markup_faults, shown_faults

if TYPE_CHECKING:
    import random
    from subprocess import CompletedProcess

__all__ = ["flags", "job_file", "secrets_kept"]

_BUG = 70
_HANDS = 'printf "A<<E\\n%s\\nE\\n" "$TOKEN" | tee -a "$GITHUB_ENV" "$GITHUB_OUTPUT" >>"$GITHUB_STEP_SUMMARY"'
_MASKS = 'echo "::add-mask::made-$MADE"; echo "see made-$MADE"; echo "A=made-$MADE" >>"$GITHUB_OUTPUT"'


def job_file(folder: Path, chance: random.Random) -> list[str]:
    """A job with hostile values, patterns and names of files, run and looked at by every verb that shows something."""
    console = Console(folder)
    names = [file_name(chance) for _ in range(3)]
    for name in names:
        (folder / name).write_bytes(b"x")
    text = functools.partial(_writable, chance)
    steps: list[dict[str, Any]] = [
        {"id": "plain", "run": "true", "env": {"H": text(), "I": text()}, "inputs": ["*"]},
        {"id": "makes", "run": ":", "needs": [], "outputs": [re.sub(r"([*?[])", r"[\1]", _in_yaml(names[0]))]},
        {"id": "fails", "run": "exit 3", "needs": [], "env": {"H": text()}},
        {"id": "misses", "run": ":", "needs": [], "outputs": [f"no-{text()}"]},
        {"id": "lost", "run": ":", "needs": [], "working-directory": f"no-{text()}"},
        {"id": "hands", "run": 'printf "A<<E\\n%s\\nE\\n" "$H" >>"$GITHUB_OUTPUT"', "needs": [], "env": {"H": text()}},
    ]
    job = {"job": "hostile", "continue-on-error": True, "env": {"OUTER": text()}, "steps": steps}
    (folder / "checkpoint.yml").write_text(yaml.safe_dump(job, allow_unicode=True, sort_keys=False), "utf-8")
    faults = []
    words = [
        ["run", "--report", "r.html"],
        ["plan"],
        ["status"],
        chance.choice([["graph"], ["status", "--json"], ["plan", "-v"]]),
    ]
    words.append(
        chance.choice([["run", "--json"], ["run", "--only", "misses"], ["report", "s.html"], ["logs", "misses"]])
    )
    for verb in words:
        faults += _ended(" ".join(verb), console.run(*verb), as_json="--json" in verb)
    for page in folder.glob("*.html"):
        faults += markup_faults(page.read_text("utf-8"), _plain_page())
    return first(faults + canaries(folder))


def flags(folder: Path, chance: random.Random) -> list[str]:
    """Hostile texts as the values of flags and as words of their own."""
    (folder / "in.txt").touch()
    valued = (
        "--job",
        "--file",
        "--state-dir",
        "--only",
        "--from",
        "--store",
        "--logs-dir",
        "--report",
        "--run-id",
        "--scope",
    )
    text = hostile(chance).replace("\0", "")
    paired = ("--step-artifact", "--step-log", "--step-timeout")
    words = chance.choice(
        [
            ["run", "--step", f"{text}:true"],
            ["run", "--job", "j", "--step", "a:true", chance.choice(valued), text],
            ["run", "--job", "j", "--step", "a:true", chance.choice(paired), f"a:{text}"],
            [chance.choice(["plan", "status", "reset", "logs", "accept", "graph", "pull", "completion", "init"]), text],
            [text],
            ["plan", "--job", "j", "--step", "a:true", "--inputs", text],
        ]
    )
    if any(word.startswith(("/", "~")) or "../" in word for word in words):
        words = [word.replace("../", "").lstrip("/~") for word in words]
    faults = _ended(shlex.join(words), Console(folder).run(*words), as_json=False)
    return first(faults + canaries(folder))


def secrets_kept(folder: Path, chance: random.Random) -> list[str]:
    """A secret of several lines that steps print in pieces and hand on; then all that is left is searched for it."""
    alphabet = string.ascii_letters + string.digits + "+/=\"'\\<>&%$ .é"
    lines = [
        "".join(chance.choice(alphabet) for _ in range(chance.randint(10, 60))).strip() + "aZ"
        for _ in range(chance.randint(1, 3))
    ]
    secret = "\n".join(lines)
    (folder / "tell.py").write_text(
        "import os, sys\n"
        "data = b'before ' + os.environ['TOKEN'].encode() + b' after\\n' + os.environ['TOKEN'].encode()[::-1]\n"
        f"sizes = {[chance.randint(1, 30) for _ in range(40)]!r}\n"
        "while data:\n"
        "    size = sizes.pop() if sizes else len(data)\n"
        "    os.write(1 if size % 2 else 2, data[:size])\n"
        "    data = data[size:]\n"
    )
    python = shlex.quote(sys.executable)
    steps = [
        {"id": "prints", "run": f"{python} tell.py"},
        {"id": "fails", "needs": [], "run": f"{python} tell.py; exit 4"},
        {"id": "names", "needs": [], "run": 'echo "$TOKEN" >&2', "outputs": ["no-such-file"]},
        {"id": "hands", "needs": [], "run": _HANDS},
        {"id": "masks", "needs": [], "run": _MASKS},
    ]
    job = {"job": "secret", "continue-on-error": True, "secrets": ["TOKEN"], "steps": steps}
    (folder / "checkpoint.yml").write_text(yaml.safe_dump(job, sort_keys=False))
    made = "".join(chance.choice(string.ascii_letters) for _ in range(20))
    words = ["run", "--report", "r.html", "--store", (folder / "store").as_uri(), "--run-id", "1"]
    if chance.random() < 0.5:
        words.append("--json")
    with tempfile.TemporaryDirectory(prefix="tmp-", dir=folder) as temporary:
        env = {"TOKEN": secret, "MADE": made, "TMPDIR": temporary}
        ended = Console(folder).run(*words, env=env)
        told = {"its output": (ended.stdout + ended.stderr).encode("utf-8", "surrogateescape")}
        told["the next status"] = Console(folder).run("status", env=env).stdout.encode()
        if ended.returncode != 1:
            return [f"exit code {ended.returncode}: {ended.stderr[-300:]}"]
        for path in folder.rglob("*"):
            if path.is_file() and path.name not in ("tell.py", "checkpoint.yml"):
                told[str(path.relative_to(folder))] = _whole(path)
    forms = {
        form
        for line in lines
        for form in (line, json.dumps(line)[1:-1], html.escape(line), html.escape(line, quote=False))
    }
    faults = [
        f"{where} has the secret {form!r}" for where, data in told.items() for form in forms if form.encode() in data
    ]
    quiet = {
        where: data for where, data in told.items() if where != "its output"
    }  # the runner's own masking is not ours
    faults += [
        f"{where} has what was masked"
        for where, data in quiet.items()
        if f"made-{made}".encode() in data and "log" not in where
    ]
    modes = [
        path
        for path in folder.glob(".checkpoint-run-*")
        if path.stat().st_mode & 0o077 and not path.name.endswith(".lock")
    ]
    return first(faults + [f"others may look into {path.name}" for path in modes])


def _whole(path: Path) -> bytes:
    data = path.read_bytes()
    if path.name.endswith(".tar.zst"):
        file = io.BytesIO(data)
        return b"".join(content(file, frame, 1 << 30) for frame in frames(file) if frame.note is None)
    return data


def _writable(chance: random.Random) -> str:
    return _in_yaml(hostile(chance))


def _in_yaml(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8", "replace")


def _ended(what: str, ended: CompletedProcess[str], *, as_json: bool) -> list[str]:
    faults = []
    if ended.returncode == _BUG or "Traceback" in ended.stderr:
        faults.append(f"{what[:200]!r} ended in a bug: {ended.stderr[-400:]!r}")
    for stream, text in (("stdout", ended.stdout), ("stderr", ended.stderr)):
        faults += shown_faults(f"{stream} of {what[:120]!r}", text)
    if as_json:
        for line in ended.stdout.splitlines():
            try:
                json.loads(line)
            except ValueError:
                faults.append(f"{what}: a line of its answer is no JSON: {line[:100]!r}")
                break
    return faults


@functools.cache
def _plain_page() -> str:
    """A page that has all a page can have, of a job without anything hostile in it."""
    with tempfile.TemporaryDirectory(prefix="plain-page-") as name:
        folder = Path(name)
        steps = [
            {"id": "works", "run": "echo x", "outputs": []},
            {"id": "fails", "needs": [], "run": "echo x; exit 3"},
            {"id": "left", "needs": ["fails"], "run": "true"},
        ]
        (folder / "checkpoint.yml").write_text(
            yaml.safe_dump({"job": "hostile", "continue-on-error": True, "steps": steps})
        )
        Console(folder).run("run", "--report", "r.html")
        Console(folder).run("report", "s.html")
        return "".join(path.read_text("utf-8") for path in sorted(folder.glob("*.html")))
