"""The scripts of other CI systems with hostile texts in what their users, branches and jobs are called."""

from __future__ import annotations

import json
import os
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING

import yaml

from tests.integrations.machines import ROOT, SAYS_WHAT_IT_GETS, command_on_path, plain, run
from tests.torture.hostile_words import canaries, first, hostile

if TYPE_CHECKING:
    import random
    from pathlib import Path

__all__ = ["buildkite", "script"]

_FLAGS = {"CPR_STORE": "--store", "CPR_SCOPE": "--scope", "CPR_JOBS": "--jobs", "CPR_BUDGET": "--budget"}
_AROUND = (
    "CI_JOB_NAME",
    "BUILDKITE_STEP_KEY",
    "BUILDKITE_LABEL",
    "CIRCLE_JOB",
    "JOB_NAME",
    "STAGE_NAME",
    "CI_COMMIT_REF_NAME",
    "BUILDKITE_BRANCH",
)
_SHELLS = [shell for shell in ("sh", "bash", "dash", "busybox") if shutil.which(shell)]


def script(folder: Path, chance: random.Random) -> list[str]:
    """The script that GitLab, CircleCI and Jenkins run, in one of the shells that they may have."""
    env = _machine(folder, command_on_path(folder / "tools", SAYS_WHAT_IT_GETS))
    given = {name: _text(chance) for name in _FLAGS}
    lines = {name: [_text(chance, lines=False) or "x" for _ in range(2)] for name in ("CPR_EXCLUDE", "CPR_ARGUMENTS")}
    env |= given | {name: "\n".join(items) for name, items in lines.items()}
    env |= {name: _text(chance) for name in chance.sample(_AROUND, 3)}
    texts = _text(chance), _text(chance)
    step = {"id": "a", "run": texts[0], "env": {"H": texts[1]}}
    if chance.random() < 0.5:
        as_json = max("".join(texts) + " ") < "\x7f" and chance.random() < 0.5  # all of that JSON is YAML too
        env["CPR_STEPS"] = json.dumps([step]) if as_json else yaml.safe_dump([step])
    else:
        env["CPR_FILE"] = _text(chance) or "x"
    if chance.random() < 0.5:
        env["CPR_LOGS"] = "logs " + _text(chance, lines=False).replace("/", "_")[:80]
    shell = chance.choice(_SHELLS)
    path = ROOT / "integrations" / "run.sh"
    ended = run([shell, "sh", str(path)] if shell == "busybox" else [shell, str(path)], folder / "work", env)
    faults = [] if ended.code == 0 else [f"{shell} ended with {ended.code}: {ended.said[-300:]!r}"]
    words = _said(folder)
    for name, flag in _FLAGS.items():
        if given[name] and _after(words, flag) != [given[name]]:
            faults.append(f"{name}={given[name]!r} became {_after(words, flag)!r}")
    if lines["CPR_EXCLUDE"] != _after(words, "--exclude")[-2:]:
        faults.append(f"CPR_EXCLUDE={lines['CPR_EXCLUDE']!r} became {_after(words, '--exclude')!r}")
    if words[-2:] != lines["CPR_ARGUMENTS"]:
        faults.append(f"CPR_ARGUMENTS={lines['CPR_ARGUMENTS']!r} became {words[-2:]!r}")
    if "CPR_STEPS" in env and (steps := yaml.safe_load((folder / "file").read_text())["steps"]) != [step]:
        faults.append(f"the steps {step!r} became {steps!r}")
    return first(faults + canaries(folder))


def buildkite(folder: Path, chance: random.Random) -> list[str]:
    """The plugin's hook, with the variables that an agent makes of its configuration."""
    env = _machine(folder, command_on_path(folder / "tools", SAYS_WHAT_IT_GETS))
    prefix = "BUILDKITE_PLUGIN_CHECKPOINT_RUN_"
    store, excludes = "s3://" + _text(chance), [_text(chance, lines=False) or "x" for _ in range(2)]
    steps = [{"id": "a", "run": _text(chance)}]
    env |= {f"{prefix}STORE": store, f"{prefix}BUDGET": _text(chance)}
    env |= {f"{prefix}EXCLUDE_{number}": item for number, item in enumerate(excludes)}
    env |= {name: _text(chance) for name in chance.sample(_AROUND, 3)}
    env["BUILDKITE_PLUGIN_NAME"] = "CHECKPOINT_RUN"
    env["BUILDKITE_PLUGIN_CONFIGURATION"] = json.dumps({"steps": steps})
    env["BUILDKITE_JOB_ID"] = f"0195-{chance.randrange(1 << 40):x}"
    for name in ("json", "os", "venv"):  # in the checkout, where the hook starts Python
        (folder / "work" / f"{name}.py").write_text("import pathlib; pathlib.Path('PWNED').touch()\n")
    ended = run(["bash", ROOT / "hooks" / "command"], folder / "work", env)
    run(["bash", ROOT / "hooks" / "pre-exit"], folder / "work", {**env, "BUILDKITE_COMMAND_EXIT_STATUS": "0"})
    faults = [] if ended.code == 0 else [f"it ended with {ended.code}: {ended.said[-300:]!r}"]
    words = _said(folder)
    if _after(words, "--store") != [store.rstrip("\n")]:
        faults.append(f"the store {store!r} became {_after(words, '--store')!r}")
    if _after(words, "--exclude")[-2:] != excludes:
        faults.append(f"{excludes!r} became {_after(words, '--exclude')!r}")
    if (found := yaml.safe_load((folder / "file").read_text())["steps"]) != steps:
        faults.append(f"the steps {steps!r} became {found!r}")
    return first(faults + canaries(folder))


def _machine(folder: Path, tools: Path) -> dict[str, str]:
    (folder / "work").mkdir()
    said = {f"SAID_{name.upper()}": str(folder / name) for name in ("arguments", "environment", "file", "pid")}
    return {**plain(folder, tools), **said}


def _said(folder: Path) -> list[str]:
    path = folder / "arguments"
    return os.fsdecode(path.read_bytes()).split("\0")[:-1] if path.exists() else []


def _after(words: list[str], flag: str) -> list[str]:
    return [value for name, value in pairwise(words) if name == flag]


def _text(chance: random.Random, *, lines: bool = True) -> str:
    text = hostile(chance, lines=lines).replace("\0", "").replace("\r", "").strip()
    return text.encode("utf-8", "replace").decode("utf-8", "replace")
