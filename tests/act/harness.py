"""Runs workflows with the real act on this machine, offline, with a copy of this repository as the action.

>>> result = act.run(WORKFLOW, files={"Makefile": "…"})
>>> assert result.returncode == 0, result.log
>>> result.outputs["job"]["result"]

Every run is a fresh machine: act makes a new workspace and removes it at the end; what is to be looked at afterwards, a
workflow copies to the folder ``$OUT``. What lives on from run to run of one :class:`Act` is the git repository
and what the cache and artifact servers hold.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tests.act.proxy import free_port

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.act.proxy import Proxy

__all__ = ["ACTION", "RUNTIME_NAMES", "Act", "ActRun", "Running", "copy_repository"]

ROOT = Path(__file__).resolve().parents[2]
ACTION = "agenticaotearoa/checkpoint-run@v1"
RUNTIME_NAMES = (
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_RUNTIME_URL",
    "ACTIONS_RESULTS_URL",
    "ACTIONS_CACHE_URL",
    "ACTIONS_CACHE_SERVICE_V2",
    "ACTIONS_CACHE_MODE",
)


@dataclass(frozen=True, kw_only=True)
class ActRun:
    """What came of one run.

    :ivar returncode: act's exit code; 137 after :meth:`Running.kill`.
    :ivar log: what a person would read: the steps' output and act's own lines.
    :ivar events: act's JSON log lines.
    :ivar outputs: step id to its outputs; the composite's inner steps are ``ID/INNER``.
    :ivar results: step id to ``success``, ``failure`` or ``skipped``, of the main stage.
    :ivar out: the folder that the workflow knew as ``$OUT``.
    :ivar leftovers: command lines of processes that still ran when act had ended.
    """

    returncode: int
    log: str
    events: Sequence[Mapping[str, Any]]
    out: Path
    leftovers: Sequence[str] = ()
    outputs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)

    def output_of(self, step: str) -> str:
        """Return what one step printed."""
        return "".join(
            event["msg"] for event in self.events if event.get("raw_output") and step_of(event).split("/")[0] == step
        )


class Running:
    """A run that goes on."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path, leftovers: Path, out: Path) -> None:
        self.process = process
        self.out = out
        self._log = log
        self._leftovers = leftovers

    def log_so_far(self) -> str:
        """Return the raw log that there is."""
        return self._log.read_text(errors="replace")

    def interrupt(self) -> None:
        """Press Ctrl-C. act kills the running step at once, then runs `always()` steps."""
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """Let the machine die: SIGKILL for act and all that it started."""
        self.process.terminate()

    def wait(self, timeout: float = 300) -> ActRun:
        """Wait for the end.

        :raises AssertionError: it did not end in time; everything is killed then.
        """
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            self.process.wait(30)
            raise AssertionError(f"act did not end within {timeout} s:\n{self.log_so_far()}") from None
        events = events_of(self.log_so_far())
        return ActRun(
            returncode=code,
            log="".join(f"{str(event.get('msg', '')).rstrip()}\n" for event in events),
            events=events,
            out=self.out,
            leftovers=json.loads(self._leftovers.read_text()) if self._leftovers.exists() else (),
            outputs=outputs_of(events),
            results={
                step_of(event): event["stepResult"]
                for event in events
                if event.get("stage") == "Main" and "stepResult" in event
            },
        )


class Act:
    """One repository with its servers' contents, and as many fresh machines as there are runs.

    :param folder: a folder of its own; everything is kept below it.
    :param shared: the copy of this repository that ``uses: agenticaotearoa/checkpoint-run@v1`` means, for all tests
    :param tool_cache: RUNNER_TOOL_CACHE of all runs.
    """

    def __init__(self, folder: Path, shared: Path, tool_cache: Path) -> None:
        self.folder = folder
        self._shared = self._used = shared
        self.tool_cache = tool_cache
        self.repository = folder / "repository"
        self.caches = folder / "caches"
        self.artifacts = folder / "artifacts"
        self._running: list[Running] = []
        self.repository.mkdir(parents=True)
        self._git("init", "--quiet", "--initial-branch=main")
        self._git("remote", "add", "origin", "https://github.com/octo/demo")

    @property
    def action(self) -> Path:
        """A copy of the action that is free to patch; from the first time that it is asked for, all runs use it."""
        if self._used == self._shared:
            self._used = self.folder / "action"
            shutil.copytree(self._shared, self._used)
        return self._used

    def run(self, workflow: str, *, timeout: float = 300, **options: Any) -> ActRun:
        """Commit, run to the end, and return what came of it. Options are those of :meth:`start`."""
        return self.start(workflow, **options).wait(timeout)

    def start(
        self,
        workflow: str,
        *,
        event: str = "push",
        files: Mapping[str, str | bytes] | None = None,
        env: Mapping[str, str] | None = None,
        run_id: int = 1,
        attempt: int = 1,
        cache_server: bool = True,
        artifact_server: bool = False,
        proxy: Proxy | None = None,
        hide_runtime: bool = False,
        arguments: Sequence[str] = (),
    ) -> Running:
        """Commit and start a run.

        :param workflow: the workflow's text.
        :param event: what starts it.
        :param files: path in the repository to content, written before the commit.
        :param env: variables for all steps; ``ACTIONS_CACHE_URL`` and its like go ahead of act's own.
        :param run_id: GITHUB_RUN_ID, the same for all attempts of one workflow run.
        :param attempt: GITHUB_RUN_ATTEMPT.
        :param cache_server: whether act serves the v1 cache.
        :param artifact_server: whether act serves artifacts; only then is there a runtime token.
        :param proxy: what the action is told to be the cache server; its ``upstream`` is where act serves.
        :param hide_runtime: leave the Python step of the composite without ACTIONS_* variables, as GitHub does.
        :param arguments: more of act's own arguments.
        """
        self.commit({".github/workflows/ci.yml": workflow, **(files or {})})
        machine = Path(tempfile.mkdtemp(prefix="machine-", dir=self.folder))
        for name in ("home", "config", "cache", "tmp", "out", "work"):
            (machine / name).mkdir()
        (machine / "work" / "tool_cache").symlink_to(self.tool_cache)
        action = self._used
        if hide_runtime:
            action = machine / "action"
            shutil.copytree(self._used, action)
            hide_runtime_variables(action / "action.yml")
        command = ["act", event, "--json", "--pull=false", "-P", "ubuntu-latest=-self-hosted"]
        command += ["--action-cache-path", str(machine / "work"), "--local-repository", f"{ACTION}={action}"]
        variables = {"GITHUB_RUN_ID": str(run_id), "GITHUB_RUN_ATTEMPT": str(attempt), "OUT": str(machine / "out")}
        for name, value in {**variables, **(env or {})}.items():
            command += ["--env", f"{name}={value}"]
        command += self._servers(cache_server, artifact_server, proxy)
        return self._start([*command, *arguments], machine)

    def commit(self, files: Mapping[str, str | bytes]) -> None:
        """Write files and commit them; with nothing changed it stays the same commit, as when a run is repeated."""
        for name, content in files.items():
            path = self.repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        self._git("add", "--all")
        if self._git("status", "--porcelain"):
            self._git("commit", "--quiet", "--message", "next")

    def end(self) -> None:
        """Kill what still runs."""
        for running in self._running:
            if running.process.poll() is None:
                running.kill()
                running.process.wait(30)

    def _servers(self, cache: bool, artifacts: bool, proxy: Proxy | None) -> list[str]:
        arguments = ["--no-cache-server"]
        if cache:
            arguments = ["--cache-server-addr", "127.0.0.1", "--cache-server-path", str(self.caches)]
            if proxy is not None:
                arguments += ["--cache-server-port", str(proxy.upstream), "--cache-server-external-url", proxy.url]
        if artifacts:
            port = str(free_port())
            arguments += ["--artifact-server-path", str(self.artifacts), "--artifact-server-addr", "127.0.0.1"]
            arguments += ["--artifact-server-port", port]
        return arguments

    def _start(self, command: Sequence[str], machine: Path) -> Running:
        log = machine / "log"
        leftovers = machine / "leftovers.json"
        supervisor = [sys.executable, str(Path(__file__).with_name("supervisor.py")), str(leftovers)]
        nowhere = "http://127.0.0.1:9"
        env = {
            # python3 is this Python, for which the tool cache was filled.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "HOME": str(machine / "home"),
            "TMPDIR": str(machine / "tmp"),
            "XDG_CONFIG_HOME": str(machine / "config"),
            "XDG_CACHE_HOME": str(machine / "cache"),
            "HTTP_PROXY": nowhere,
            "HTTPS_PROXY": nowhere,
            "NO_PROXY": "127.0.0.1,localhost",
        }
        with log.open("wb") as stream:
            process = subprocess.Popen(
                [*supervisor, *command],
                cwd=self.repository,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        running = Running(process, log, leftovers, machine / "out")
        self._running.append(running)
        return running

    def _git(self, *arguments: str) -> bytes:
        who = ["-c", "user.name=Octo", "-c", "user.email=octo@example.com", "-c", "commit.gpgsign=false"]
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        command = ["git", "-C", str(self.repository), *who, *arguments]
        return subprocess.run(command, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout


def copy_repository(target: Path) -> None:
    """Copy what git would take of this repository, committed or not."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    for name in filter(None, names):
        source = ROOT / name
        if source.is_file() and not name.startswith("tests/"):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name, follow_symlinks=False)


def hide_runtime_variables(manifest: Path) -> None:
    """Give the Python step of an action.yml empty ACTIONS_* variables."""
    content = yaml.safe_load(manifest.read_text())
    (step,) = [step for step in content["runs"]["steps"] if step.get("id") == "run"]
    step["env"].update(dict.fromkeys(RUNTIME_NAMES, ""))
    manifest.write_text(yaml.safe_dump(content, sort_keys=False))


def events_of(log: str) -> list[dict[str, Any]]:
    """Read act's JSON lines. The last may be torn, and a panic is none."""
    events = []
    for line in log.splitlines():
        with suppress(ValueError):
            event = json.loads(line)
            events.append(event if isinstance(event, dict) else {"msg": line})
            continue
        events.append({"msg": line})
    return events


def step_of(event: Mapping[str, Any]) -> str:
    """Return the id of the step an event belongs to: ``ID``, or ``ID/INNER`` inside a composite."""
    return "/".join(event.get("stepID", ()))


def outputs_of(events: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Gather the steps' outputs."""
    outputs: dict[str, dict[str, str]] = {}
    for event in events:
        if event.get("command") == "set-output":
            outputs.setdefault(step_of(event), {})[event["name"]] = event["arg"]
    return outputs
