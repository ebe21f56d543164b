"""A run of GitHub Actions, seen from outside: its checkpoints and step logs, through REST."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action import __version__
from checkpoint_action.errors import Kind, StoreError, UsageError
from checkpoint_action.jobfile.values import name_from, nearest
from checkpoint_action.runner.keys import scheme_of
from checkpoint_action.store.github_artifact import GithubArtifactStore
from checkpoint_action.store_use import StoreUse, signing_key_of
from checkpoint_action.toolkit.artifact import ArtifactClient, FindBy
from checkpoint_action.toolkit.errors import DeniedError, InputError, MissingEntryError, ToolkitError
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.rest import DEFAULT_API_URL
from checkpoint_action.toolkit.runtime import Runtime

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from checkpoint_action.intent import Surroundings
    from checkpoint_action.runner.keys import KeyScheme
    from checkpoint_action.toolkit.artifact import Artifact

__all__ = ["fetch_logs", "use_of_run"]

_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN")
_LOGS = "checkpoint-run-logs-"


def use_of_run(options: argparse.Namespace, name: str, around: Surroundings) -> StoreUse:
    """The checkpoints of one job of a run.

    :param name: of the job here: of several in the run, the one that is called so is meant.
    :raises UsageError: there is none, or several and none is named.
    """
    if not options.run or not options.run.isascii() or not options.run.isdecimal():
        raise UsageError("--github needs the run: --run ID, the number in its address (…/actions/runs/ID)", Kind.CI_RUN)
    client = _client(options, around.env)
    attempt = options.attempt
    schemes: dict[str, KeyScheme] = {}
    for artifact in _listed(client, options):
        scheme = scheme_of(artifact.name)
        if scheme is not None and (attempt is None or int(scheme.attempt) <= attempt):
            schemes[scheme.prefix] = scheme
    keys = _chosen(list(schemes.values()), options.job or name, explicit=options.job, run=options.run)

    def order(key: str) -> tuple[object, ...] | None:
        origin = keys.origin(key)
        return None if origin is None or (attempt is not None and origin.attempt > attempt) else origin

    return StoreUse(
        store=GithubArtifactStore(client, order=order, only=lambda key: order(key) is not None),
        keys=keys,
        by_content=False,
        read_only=True,
        required=True,
        exclude=(),
        max_size=None,
        signing_key=signing_key_of(around.env),
    )


def _listed(client: ArtifactClient, options: argparse.Namespace) -> list[Artifact]:
    where = f"{options.github} run {options.run}"
    try:
        return client.list_artifacts()
    except InputError as error:
        raise UsageError(f"--github {options.github}: {error}", Kind.CI_RUN) from None
    except DeniedError as error:
        raise UsageError(
            f"{where}: {error}; set GITHUB_TOKEN to one that may read the repository's Actions", Kind.CI_RUN
        ) from None
    except MissingEntryError:
        raise UsageError(
            f"{where}: there is no such run, or none that GITHUB_TOKEN may see; check the repository and the number",
            Kind.CI_RUN,
        ) from None
    except ToolkitError as error:
        raise StoreError(f"{where}: {error}") from error


def _chosen(schemes: Sequence[KeyScheme], name: str, *, explicit: str | None, run: str) -> KeyScheme:
    """The job that is meant among those that left checkpoints."""
    if not schemes:
        raise UsageError(
            f"run {run} has no checkpoints among its artifacts; the action leaves them there with 'store: artifact'",
            Kind.NO_CHECKPOINT,
        )
    by_slug = {scheme.job: scheme for scheme in schemes}
    if name in by_slug:
        return by_slug[name]
    readable = name_from(name, name).lower()
    called = [scheme for slug, scheme in by_slug.items() if slug.rpartition("-")[0] == readable]
    if len(called) == 1:
        return called[0]
    if len(by_slug) == 1 and not explicit:
        return next(iter(by_slug.values()))
    names = sorted(slug for slug in by_slug if not called or by_slug[slug] in called)
    hint = nearest(name, names) if explicit and not called else ""
    raise UsageError(
        f"run {run} has checkpoints of several jobs{hint}; name one with --job: {', '.join(names)}", Kind.CI_RUN
    )


def fetch_logs(options: argparse.Namespace, keys: KeyScheme, folder: Path, around: Surroundings) -> None:
    """Put the step logs that the run has uploaded beside the state, the newest attempt's last.

    They are a help, and their failure is one warning.

    :param folder: the job's own for logs.
    """
    client = _client(options, around.env)
    try:
        listed = [one for one in client.list_artifacts() if one.name.startswith(f"{_LOGS}{keys.job}-")]
        for artifact in sorted(listed, key=_attempt_of):
            if options.attempt is None or _attempt_of(artifact) <= options.attempt:
                with tempfile.TemporaryDirectory(prefix="checkpoint-run-logs-") as name:
                    client.download_artifact(artifact, name)
                    _take(Path(name), folder)
    except (ToolkitError, OSError) as error:
        around.warn([f"the step logs of the run could not be fetched: {error}"])


def _attempt_of(artifact: Artifact) -> int:
    number = artifact.name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdecimal() else 0


def _take(source: Path, folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in sorted(source.rglob("*.log")):
        if path.is_file() and not path.is_symlink():
            target = folder / path.name
            with suppress(FileNotFoundError):
                target.unlink()
            shutil.copyfile(path, target)
            os.chmod(target, 0o600)  # noqa: PTH101  # what steps print may be anything


def _client(options: argparse.Namespace, env: Mapping[str, str]) -> ArtifactClient:
    token = next((env[name] for name in _TOKENS if env.get(name)), "")
    try:
        where = FindBy(options.github, int(options.run), token, env.get("GITHUB_API_URL") or DEFAULT_API_URL)
        http = HttpClient(user_agent=f"checkpoint-run/{__version__}", env=env)
        client = ArtifactClient(Runtime(), http, elsewhere=where)
    except ToolkitError as error:
        raise UsageError(f"--github {options.github}: {error}", Kind.CI_RUN) from None
    return client
