"""A project in GitLab, whose jobs the real gitlab-ci-local runs in this machine's shell."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.integrations.machines import ROOT, Ended, checkout, plain, run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

__all__ = ["COMPONENT", "GitLab"]

COMPONENT = ROOT / "templates" / "checkpoint-run.yml"


class GitLab:
    """A project with the component in it.

    :param folder: all lies below.
    :param command: starts gitlab-ci-local.
    :param files: the project's sources.
    """

    def __init__(self, folder: Path, command: Sequence[str], tools: Path, files: Mapping[str, str]) -> None:
        self.project = checkout(folder / "project", {**files, "templates/checkpoint-run.yml": COMPONENT.read_text()})
        self._command = command
        self._env = plain(folder / "machine", tools)

    def job(self, pipeline: int, number: int, *arguments: str, **variables: str) -> Ended:
        """Run the pipeline's jobs, each in a fresh copy of the sources.

        :param pipeline: its id; the same for a job that is retried.
        :param number: id of the job; another one for each try.
        :param variables: further ones that the runner has.
        """
        shutil.rmtree(self.project / ".gitlab-ci-local" / "builds", ignore_errors=True)
        told = {"GITLAB_CI": "true", "CI_PIPELINE_ID": str(pipeline), "CI_JOB_ID": str(number)}
        words = [f"--variable={name}={value}" for name, value in told.items()]
        words += ["--force-shell-executor", "--shell-isolation", "--no-color", *arguments]
        return run([*self._command, *words], self.project, {**self._env, **variables})

    def artifact(self, path: str) -> Path:
        """Where a file of the job's artifacts is."""
        return self.project / path
