"""Plays GitHub's runner for the action's one Python step, each time on a fresh machine.

>>> workflow = Workflow(folder, service, tools, action)
>>> first = workflow.run(STEPS)                # attempt 1
>>> second = workflow.run(STEPS, jobs="2")     # attempt 2, on another machine
>>> assert second.outputs["restored"] == ["build"]

What is run is the script of ``action.yml`` with the inputs and variables that stand there, in a workspace whose files
all have new times. What lives on from machine to machine is what the service holds, and the folder ``$KEEP``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil

from tests.action.manifest import SCRIPT, variables
from tests.action.running import Running

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.action.running import Ended
    from tests.actions_service.server import ActionsService

__all__ = ["Machine", "Workflow"]


class Machine:
    """A machine with a checkout, on which the action may be used more than once.

    :param folder: where all of it is; while it is the newest, the same for each, as on hosted runners.
    """

    def __init__(self, workflow: Workflow, folder: Path, attempt: int) -> None:
        self.workflow = workflow
        self.folder = folder
        self.attempt = attempt
        self.running: list[Running] = []
        self._tracking = f"github_{uuid.uuid4()}"
        for place in (self.workspace, self.temporary, self.folder / "home", self.folder / "files"):
            place.mkdir(parents=True)

    @property
    def workspace(self) -> Path:
        """The checkout."""
        return self.folder / "work" / "demo" / "demo"

    @property
    def temporary(self) -> Path:
        """RUNNER_TEMP."""
        return self.folder / "work" / "_temp"

    def command_files(self, number: int) -> Path:
        """The folder of the runner's files for one use of the action."""
        return self.folder / "files" / str(number)

    def retire(self, folder: Path) -> None:
        """Make room for the next machine."""
        self.end()
        self.folder = self.folder.rename(folder)

    def renew(self) -> None:
        """Begin the next attempt on the same machine, one of the user's own: only RUNNER_TEMP is emptied."""
        self.attempt = self.workflow.next_attempt()
        shutil.rmtree(self.temporary)
        self.temporary.mkdir()

    def checkout(self) -> None:
        """Put the sources into the workspace, and remove what else is there: ``actions/checkout``."""
        shutil.rmtree(self.workspace)
        if self.workflow.repository is not None:
            git("clone", "--quiet", str(self.workflow.repository), str(self.workspace))
            return
        write_files(self.workspace, self.workflow.sources)

    def clean(self) -> None:
        """What ``actions/checkout`` does to a workspace that is a clone already."""
        git("-C", str(self.workspace), "clean", "-ffdx", "--quiet")
        git("-C", str(self.workspace), "reset", "--hard", "--quiet")

    def run(self, steps: str, **options: Any) -> Ended:
        """Use the action, to its end. Options are those of :meth:`start`."""
        return self.start(steps, **options).wait()

    def start(self, steps: str, *, env: Mapping[str, str] | None = None, use: str = "job", **inputs: str) -> Running:
        """Start the action.

        :param steps: the input of this name.
        :param env: of the workflow job.
        :param use: id of the step that uses the action.
        :param inputs: further ones, with ``_`` for ``-``.
        """
        number = len(self.running)
        files = self.command_files(number)
        files.mkdir()
        for name in ("env", "path", "output", "summary", "log"):
            (files / name).touch()
        given = {"steps": steps, "use": use, "python": sys.executable, "matrix": "null", "strategy": "{}"}
        given["token"] = self.workflow.token
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        script = self.temporary / f"{uuid.uuid4()}.sh"
        script.write_text(SCRIPT)
        with (files / "log").open("wb") as log:
            process = subprocess.Popen(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
                cwd=self.workspace,
                env=self._environment(files) | dict(env or {}) | variables(given, self.workflow.runtime),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        running = Running(process, self, number)
        self.running.append(running)
        return running

    def _environment(self, files: Path) -> dict[str, str]:
        workflow = self.workflow
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_REPOSITORY": "octo/demo",
            "GITHUB_WORKFLOW": "ci",
            "GITHUB_WORKFLOW_REF": "octo/demo/.github/workflows/ci.yml@refs/heads/main",
            "GITHUB_JOB": "build",
            "GITHUB_SHA": workflow.commit,
            "GITHUB_RUN_ID": workflow.run_id,
            "GITHUB_RUN_ATTEMPT": str(self.attempt),
            "GITHUB_SERVER_URL": workflow.runtime["GITHUB_SERVER_URL"],
            "GITHUB_API_URL": workflow.service.rest.url,
            "GITHUB_RETENTION_DAYS": "90",
            "GITHUB_ACTION_PATH": str(workflow.action),
            "GITHUB_ENV": str(files / "env"),
            "GITHUB_PATH": str(files / "path"),
            "GITHUB_OUTPUT": str(files / "output"),
            "GITHUB_STEP_SUMMARY": str(files / "summary"),
            "RUNNER_TEMP": str(self.temporary),
            "RUNNER_TOOL_CACHE": str(workflow.tools),
            "RUNNER_OS": "Linux",
            "RUNNER_ARCH": "X64",
            "RUNNER_TRACKING_ID": self._tracking,
            "KEEP": str(workflow.keep),
        }

    def leftovers(self) -> list[psutil.Process]:
        """What still runs of all that was started here."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("RUNNER_TRACKING_ID") == self._tracking:
                    found.append(process)
        return found

    def end(self) -> None:
        """End what still runs."""
        for running in self.running:
            if running.process.poll() is None:
                running.die()
        for process in self.leftovers():
            with suppress(psutil.Error):
                process.kill()


class Workflow:
    """One run of a workflow: its sources, its cache, and a fresh machine for each attempt.

    :param folder: a folder of its own.
    :param tools: a tool cache with the action's packages.
    :param action: this repository, or a copy.
    :ivar sources: path to content; a script where the text begins with ``#!``.
    :ivar keep: ``$KEEP``, a folder that no machine takes along.
    :ivar runtime: what the service tells the action.
    :ivar token: what the job's GITHUB_TOKEN is.
    :ivar repository: where the machines clone from, once there is one.
    """

    def __init__(self, folder: Path, service: ActionsService, tools: Path, action: Path) -> None:
        self.folder = folder
        self.service = service
        self.tools = tools
        self.action = action
        self.sources: Mapping[str, str | bytes] = {"src/main.c": "int main;\n"}
        self.keep = folder / "keep"
        self.keep.mkdir(parents=True)
        self.runtime = service.env()
        self.token = "rest-token"
        self.repository: Path | None = None
        self.run_id = "77"
        self.commit = "a" * 40
        self.machines: list[Machine] = []
        self._attempts = 0

    def commit_sources(self) -> None:
        """Have the sources in a git repository, from which machines clone from now on."""
        if self.repository is None:
            self.repository = self.folder / "origin"
            git("init", "--quiet", "--initial-branch=main", str(self.repository))
        write_files(self.repository, self.sources)
        git("-C", str(self.repository), "add", "--all")
        git("-C", str(self.repository), "commit", "--quiet", "--allow-empty", "--message", "next")
        self.commit = git("-C", str(self.repository), "rev-parse", "HEAD").strip()

    def next_attempt(self) -> int:
        self._attempts += 1
        return self._attempts

    def machine(self) -> Machine:
        """A fresh machine for the next attempt."""
        attempt = self.next_attempt()
        if self.machines:
            self.machines[-1].retire(self.folder / f"machine-{len(self.machines)}")
        machine = Machine(self, self.folder / "machine", attempt)
        self.machines.append(machine)
        machine.checkout()
        return machine

    def run(self, steps: str, **options: Any) -> Ended:
        """The next attempt, to its end."""
        return self.machine().run(steps, **options)

    def start(self, steps: str, **options: Any) -> Running:
        """The next attempt."""
        return self.machine().start(steps, **options)

    def fifo(self, name: str) -> Path:
        """A named pipe in ``$KEEP``."""
        path = self.keep / name
        os.mkfifo(path)
        return path

    def kept(self, name: str) -> list[str]:
        """The lines of a file in ``$KEEP``; steps leave one each time they run."""
        path = self.keep / name
        return path.read_text().splitlines() if path.exists() else []

    def end(self) -> None:
        """End what still runs, on all machines."""
        for machine in self.machines:
            machine.end()


def git(*arguments: str) -> str:
    """Run git without anybody's settings; its output."""
    who = ["-c", "user.name=Octo", "-c", "user.email=octo@example.com", "-c", "commit.gpgsign=false"]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(
        ["git", *who, *arguments], env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    return done.stdout.decode()


def write_files(folder: Path, files: Mapping[str, str | bytes]) -> None:
    """Write files, path to content."""
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = content.encode() if isinstance(content, str) else content
        path.write_bytes(data)
        if data.startswith(b"#!"):
            path.chmod(0o755)
