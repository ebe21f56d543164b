"""The action's Python step with hostile texts in inputs, matrix and context, and with checkpoints made by others."""

from __future__ import annotations

import base64
import json
import re
import shutil
import string
import urllib.parse
from typing import TYPE_CHECKING, Any

import yaml

from tests.action.archives import Held
from tests.action.installation import tool_cache
from tests.action.machine import Workflow
from tests.actions_service.server import ActionsService
from tests.torture.hostile_words import LIVE, canaries, file_name, first, hostile, log_faults
from tests.torture.network_machines import copies

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from tests.action.running import Ended

__all__ = ["Actions"]

_INPUTS = (
    "job",
    "exclude",
    "working-directory",
    "shell",
    "share",
    "only",
    "scope",
    "store",
    "mode",
    "restore",
    "timeout",
    "retry",
    "backoff",
    "jobs",
    "budget",
    "logs",
    "max-size",
    "retention-days",
    "verify",
    "cleanup",
    "workflow-commands",
    "file",
    "use",
    "token",
)
_CONTEXT = (
    "GITHUB_REF_NAME",
    "GITHUB_HEAD_REF",
    "GITHUB_REF",
    "GITHUB_WORKFLOW",
    "GITHUB_WORKFLOW_REF",
    "GITHUB_JOB",
    "GITHUB_ACTOR",
    "GITHUB_EVENT_NAME",
    "GITHUB_REPOSITORY",
    "RUNNER_NAME",
    "RUNNER_OS",
    "GITHUB_RUN_ID",
    "BRANCH",
    "HOSTILE",
)

STEPS = """\
- id: one
  run: 'cp fixed made; printf "A<<E\\n%s\\nE\\n" "$HOSTILE" >> "$GITHUB_OUTPUT"; printf x >> "$KEEP/one"'
- id: two
  run: 'env > "$KEEP/env"; test -e "$KEEP/fixed"'
"""


class Actions:
    """Uses of the action, with one service and one copy of the action for all of them.

    :param folder: a folder of its own.
    """

    def __init__(self, folder: Path) -> None:
        self._tools = tool_cache(folder / "tools")
        self._action, _ = copies(folder / "copies")
        uploads = self._action / "checkpoint_action" / "runner" / "uploads.py"
        text, count = re.subn(r"^_APART = .*$", "_APART = 0.0", uploads.read_text("utf-8"), flags=re.MULTILINE)
        assert count == 1
        uploads.write_text(text, "utf-8")

    def inputs(self, folder: Path, chance: random.Random) -> list[str]:
        """One use with hostile inputs, matrix values, branch names, variables and names of files."""
        with ActionsService.running() as service:
            workflow = self._workflow(folder, service)
            workflow.sources = {"fixed": "x"}
            machine = workflow.machine()
            for _ in range(2):
                (machine.workspace / file_name(chance)).write_bytes(b"x")
            taken = chance.sample(_INPUTS, chance.randint(0, 2))
            inputs: dict[str, str] = {name.replace("-", "_"): _text(chance) for name in taken}
            inputs["matrix"] = json.dumps(
                {_text(chance): _text(chance), "os": [_text(chance)], "n": {"x": _text(chance)}}
            )
            if chance.random() < 0.2:
                inputs["matrix"] = inputs["strategy"] = _text(chance)
            env = {name: _text(chance) for name in chance.sample(_CONTEXT, 4)} | {"HOSTILE": _text(chance)}
            steps = [
                {"id": "makes", "run": "cp fixed made", "env": {"H": _text(chance)}},
                {"id": "misses", "run": ":", "needs": [], "outputs": [f"no-{_text(chance)}"]},
                {"id": "hands", "needs": [], "run": 'printf "A<<E\\n%s\\nE\\n" "$HOSTILE" >> "$GITHUB_OUTPUT"'},
            ]
            ended = machine.run(yaml.safe_dump(steps), env=env, continue_on_error="true", **inputs)
            workflow.end()
            faults = _faults(ended)
            if "Traceback" in ended.log or "unexpected" in ended.log:
                faults.append(f"a bug: {ended.log[-600:]!r}")
            if set(ended.env) - {"A"} or ended.path:
                faults.append(f"the job's environment was changed: {ended.env} {ended.path}")
        return first(faults + canaries(folder))

    def forged(self, folder: Path, chance: random.Random) -> list[str]:
        """A checkpoint that somebody without the signing key put beside the newest: nothing of it counts."""
        with ActionsService.running() as service:
            workflow = self._workflow(folder, service)
            workflow.sources = {"fixed": "x"}
            key = "k" + _text(chance)
            began = workflow.run(STEPS, signing_key=key, env={"HOSTILE": "first"})
            if began.outputs.get("ran") != ["one", "two"]:
                return [f"the first attempt: {began.outputs} {began.log[-300:]!r}"]
            entry = Held(service, folder / "held").forge(_poison(chance))
            if chance.random() < 0.3:  # a true archive under the name of a newer one
                service.blobs.content[entry.blob] = Held(service, folder / "held-2").content(_oldest(service))
            (workflow.keep / "fixed").touch()
            ended = workflow.run(STEPS, signing_key=key, env={"HOSTILE": "second"})
            workflow.end()
            faults = _faults(ended)
            if ended.code or sorted([*ended.outputs["ran"], *ended.outputs["restored"]]) != ["one", "two"]:
                faults.append(f"with a forged checkpoint: {ended.code} {ended.outputs}")
            if "two" not in ended.outputs["ran"]:
                faults.append("a step that never ended well was taken for done")
            if LIVE in (workflow.keep / "env").read_text("utf-8", "replace"):
                faults.append("a step got a variable of a forged checkpoint")
        return first(faults + canaries(folder))

    def poisoned(self, folder: Path, chance: random.Random) -> list[str]:
        """The same without a key: the values are the job's then, but they stay in the workspace and are no code."""
        with ActionsService.running() as service:
            workflow = self._workflow(folder, service)
            workflow.sources = {"fixed": "x"}
            workflow.run(STEPS, env={"HOSTILE": "first"})
            precious = folder / "precious"
            precious.write_text("what nobody else may see")
            Held(service, folder / "held").forge(_poison(chance, str(precious)))
            (workflow.keep / "fixed").touch()
            ended = workflow.run(STEPS, env={"HOSTILE": "second"})
            workflow.end()
            faults = _faults(ended)
            if "Traceback" in ended.log:
                faults.append(f"a bug: {ended.log[-600:]!r}")
            if precious.read_text() != "what nobody else may see":
                faults.append("a file outside of the workspace was changed")
            if b"what nobody else" in Held(service, folder / "held-2").everything():
                faults.append("a file outside of the workspace was uploaded")
        return first(faults + canaries(folder))

    def secrets(self, folder: Path, chance: random.Random) -> list[str]:
        """Secrets that a failing step prints in every documented form: what leaves the machine has none of them."""
        alphabet = string.ascii_letters + string.digits + '+/="\\ &%'
        secret = "".join(chance.choice(alphabet) for _ in range(chance.randint(12, 60))).strip() + "zQ"
        shift = chance.randint(0, 2)
        forms = {
            secret,
            urllib.parse.quote(secret, safe=""),
            json.dumps(secret)[1:-1],
            base64.b64encode(b"x" * shift + secret.encode() + b"y" * chance.randint(0, 2)).decode(),
        }
        with ActionsService.running() as service:
            workflow = self._workflow(folder, service)
            workflow.sources = {f"form-{number}": form + "\n" for number, form in enumerate(sorted(forms))}
            steps = "- id: tells\n  outputs: []\n  run: 'cat form-*; cat form-* | tr -d \"\\n\"; exit 3'\n"
            ended = workflow.run(steps, env={"DEPLOY_PASSWORD": secret})
            workflow.end()
            if not ended.outputs.get("artifact"):
                return [f"no logs were uploaded: {ended.log[-300:]!r}"]
            left = Held(service, folder / "held").everything() + ended.summary.encode()
            core = base64.b64encode(b"x" * shift + secret.encode()).decode()[4 : -4 or None]
            sought = {secret, urllib.parse.quote(secret, safe=""), json.dumps(secret)[1:-1], core}
            return first(f"what left the machine has {form!r}" for form in sought if form.encode() in left)

    def _workflow(self, folder: Path, service: ActionsService) -> Workflow:
        return Workflow(folder / "workflow", service, self._tools, self._action)

    def close(self) -> None:
        """Remove what was copied."""
        shutil.rmtree(self._tools, ignore_errors=True)


def _text(chance: random.Random) -> str:
    return hostile(chance).replace("\0", "").encode("utf-8", "replace").decode("utf-8", "replace")


def _faults(ended: Ended) -> list[str]:
    faults = log_faults(ended.log)
    if "<script" in ended.summary.replace("`", "") and "`" not in ended.summary:
        faults.append("the summary has a script")
    return faults


def _oldest(service: ActionsService) -> Any:
    return min((one for one in service.entries.all.values() if one.complete), key=lambda one: one.created)


def _poison(chance: random.Random, path: str = "/etc/passwd") -> Callable[[dict[str, Any]], object]:
    """What an attacker would have a header say."""

    def change(header: dict[str, Any]) -> None:
        for record in header["records"].values():
            record["status"] = "done"
            record["exit_code"] = 0
            names = ("LD_PRELOAD", "PATH", "NODE_OPTIONS", "BASH_ENV", "PYTHONPATH", "HOSTILE_ENV", _text(chance))
            record["values"] = {
                "env": {name.replace("=", "") or "x": f"{LIVE}{_text(chance)}" for name in chance.sample(names, 2)},
                "path": [f"/{LIVE}"],
                "outputs": {"A": LIVE + _text(chance)},
                "summary": _text(chance),
            }
            record["error"] = _text(chance)
            record["log"] = chance.choice([path, "../../../" + path, _text(chance)])
            if chance.random() < 0.3:
                record["status"] = "failed"
            if chance.random() < 0.3:
                record["step"] = _text(chance)
            for entry in record.get("layer", {}).get("entries", []):
                if chance.random() < 0.3:
                    entry["path"] = chance.choice([path, f"../{LIVE}", ".git/hooks/x", _text(chance)])
        if chance.random() < 0.3:
            header["records"][_text(chance)] = next(iter(header["records"].values()))

    return change
