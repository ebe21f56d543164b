"""What the action does once its steps are over: summary, logs, and on request a cleared store."""

from __future__ import annotations

import shutil
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, cast

from checkpoint_action import __version__
from checkpoint_action.errors import OutputError, StoreError
from checkpoint_action.report.log_bundle import StepLog, bundle_logs, likely_secrets
from checkpoint_action.report.summary import SUMMARY_LIMIT, summary
from checkpoint_action.report.words import size
from checkpoint_action.runner.events import Warned
from checkpoint_action.store_choice import log_artifacts
from checkpoint_action.toolkit import core
from checkpoint_action.toolkit.errors import ToolkitError
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.rest import DEFAULT_API_URL, RestClient
from checkpoint_action.toolkit.rest_caches import cache_usage, delete_caches

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from pathlib import Path

    from checkpoint_action.action_inputs import ActionInputs
    from checkpoint_action.model import Job, Record, Values
    from checkpoint_action.report.log_bundle import LogBundle
    from checkpoint_action.report.summary import Told
    from checkpoint_action.runner.events import Listener
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store.base import Store
    from checkpoint_action.store.layout import ListingStore

__all__ = ["Closing", "unless_stopped"]

_ROOM_FOR_OURS = 64 << 10  # bytes of the summary that we take whatever the steps wrote into theirs
_BETWEEN = 1024
_LOOK_SECONDS = 5.0
_CLEAN_SECONDS = 60.0
_UPLOAD_SECONDS = 300.0
_MOST_CLEANED = 1000
_SLICE = 0.05
_PAGE = "report.html"

_T = TypeVar("_T")


def unless_stopped(call: Callable[[], _T], stop: StopRequest) -> _T | None:
    """What a call gives; ``None`` where a stop is requested before it has, and it is left behind then.

    ``None``, too, where there is no thread or no memory for it: how the run ended stays.

    The runner gives a cancelled job ten seconds, whatever a service takes to answer.
    """
    results: list[_T] = []

    def work() -> None:
        with suppress(MemoryError):
            results.append(call())

    thread = threading.Thread(target=work, name="closing", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # there is none to be had, and without it a stop would have to wait
        return None
    while thread.is_alive() and stop.signum is None:
        thread.join(_SLICE)
    return results[0] if results else None


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of one use of the action. Nothing here changes how it ended: what does not work is a warning.

    :param runtime: the ``ACTIONS_*`` values that the runner gives to JavaScript actions only.
    :param secrets: values that must not show.
    :param folder: one of our own.
    """

    inputs: ActionInputs
    env: Mapping[str, str]
    runtime: Mapping[str, str]
    job: Job
    listen: Listener
    secrets: Sequence[str]
    folder: Path

    def write_summary(
        self,
        told: Sequence[Told],
        tails: Mapping[str, Sequence[str]],
        handed: Iterable[Values],
        *,
        kept: bool,
        look: bool,
    ) -> None:
        """Add what became of the run to the page of the workflow run.

        :param told: all events.
        :param tails: the last lines of failed steps, by id.
        :param handed: what the steps add to the summary themselves, which has to fit, too.
        :param kept: whether steps are kept beyond this machine.
        :param look: whether there is time to ask how full the cache is.
        """
        if not self.inputs.summary:
            return
        theirs = sum(len(values.summary.encode("utf-8", "surrogateescape")) + 1 for values in handed)
        limit = min(SUMMARY_LIMIT, max(_ROOM_FOR_OURS, core.SUMMARY_LIMIT - theirs - _BETWEEN))
        quota = self._quota() if look and kept else ""
        try:
            core.append_summary(summary(told, tails=tails, quota=quota, kept=kept, limit=limit), env=self.env)
        except (ToolkitError, OSError) as error:
            self.listen(Warned(f"the summary was not written: {error}"))

    def upload_logs(self, records: Mapping[str, Record], ran: Iterable[str], masked: Iterable[str], name: str) -> str:
        """Keep the logs of steps as an artifact, without secrets, and with them the run as a page.

        :param ran: ids of the steps that ran.
        :param masked: values that steps have had masked.
        :param name: of the artifact.
        :returns: the name, or an empty text where there is nothing to keep.
        """
        if self.inputs.logs == "never":
            return ""
        wanted = set(ran)
        logs = [
            StepLog(step.id, step.log, records[step.id].status)
            for step in self.job.steps
            if step.log is not None and step.id in wanted
        ]
        hidden = {*self.secrets, *masked, *likely_secrets(self.env)}
        for step in self.job.steps:
            hidden |= {*likely_secrets(step.env), *likely_secrets(step.inherited_env)}
        place = self.folder / "upload-logs"
        shutil.rmtree(place, ignore_errors=True)
        try:
            bundle = bundle_logs(logs, place, which=self.inputs.logs, secrets=hidden)
            for note in bundle.notes:
                self.listen(Warned(note))
            if not bundle.files:
                return ""
            artifacts = log_artifacts(self.env, self.runtime, core.set_secret)
            if artifacts is None:
                core.info("the logs of steps are not uploaded: this server has no artifact service of version 4")
                return ""
            artifacts.upload_artifact(
                name,
                [*bundle.files, *self._page(place, records, bundle, hidden)],
                place,
                retention_days=self.inputs.retention_days or 0,
                seconds=_UPLOAD_SECONDS,
            )
        except (ToolkitError, OSError) as error:
            self.listen(Warned(f"the logs of steps are not uploaded: {error}"))
            return ""
        finally:
            shutil.rmtree(place, ignore_errors=True)
        core.info(f"the logs are in the artifact {name}")
        return name

    def _page(
        self, folder: Path, records: Mapping[str, Record], bundle: LogBundle, hidden: Collection[str]
    ) -> list[Path]:
        """The run as one HTML page, with the last lines of failed steps from the copies of their logs."""
        from checkpoint_action.report.html_report import write_page  # noqa: PLC0415  # most runs need no page

        path = folder / _PAGE
        copies = {
            step: replace(record, log=str(bundle.of.get(step, "")), command="") for step, record in records.items()
        }
        try:
            write_page(path, self.job.name, [step.id for step in self.job.steps], copies, sorted(hidden))
        except OutputError as error:
            self.listen(Warned(str(error)))
            return []
        return [path]

    def clean_up(self, prefix: str, store: Store | None) -> None:
        """Delete the job's checkpoints, as it is done and no re-run wants them.

        :param prefix: what their keys begin with.
        :param store: where they are.
        """
        if self.inputs.store_url and store is not None:
            self._clean_store(prefix, cast("ListingStore", store))  # as all that have a URL are
            return
        rest = self._rest(_CLEAN_SECONDS)
        if rest is None:
            self.listen(Warned("input cleanup: checkpoints are not deleted without the input token"))
            return
        try:
            items = delete_caches(rest, key=prefix, ref=self.env.get("GITHUB_REF", ""))
            count, freed = len(items), sum(item.size for item in items)
            if self.inputs.run_id.isdecimal():
                path = f"actions/runs/{self.inputs.run_id}/artifacts"
                listed = rest.pages(path, "artifacts", label="list artifacts", most=_MOST_CLEANED)
                for item in [one for one in listed if str(one.get("name", "")).startswith(prefix)]:
                    count += rest.delete(f"actions/artifacts/{item['id']}", label="delete artifact")
                    freed += held if isinstance(held := item.get("size_in_bytes"), int) else 0
        except ToolkitError as error:
            self.listen(Warned(f"input cleanup: {error}; the token needs the permission 'actions: write'"))
            return
        core.info(f"cleanup: {count} checkpoints with {size(freed)} are deleted")

    def _clean_store(self, prefix: str, store: ListingStore) -> None:
        count = freed = 0
        try:
            for row in store.entries(prefix):
                store.delete(row.key)
                count, freed = count + 1, freed + row.size
        except StoreError as error:
            self.listen(Warned(f"input cleanup: {error}"))
        core.info(f"cleanup: {count} checkpoints with {size(freed)} are deleted")

    def _quota(self) -> str:
        """How full the repository's cache is, where the token may ask."""
        rest = self._rest(_LOOK_SECONDS)
        if rest is not None:
            with suppress(ToolkitError):
                usage = cache_usage(rest)
                return f"The repository's cache holds {size(usage.size)} in {usage.count} entries."
        return ""

    def _rest(self, seconds: float) -> RestClient | None:
        repository = self.env.get("GITHUB_REPOSITORY", "")
        if not self.inputs.token or not repository:
            return None
        http = HttpClient(user_agent=f"checkpoint-run/{__version__}", env=self.env).within(seconds)
        api_url = self.env.get("GITHUB_API_URL") or DEFAULT_API_URL
        try:
            return RestClient(http, repository=repository, token=self.inputs.token, api_url=api_url)
        except ToolkitError:
            return None
