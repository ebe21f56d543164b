"""Artifacts of a workflow run: the names of ``@actions/artifact``, in snake case.

>>> client = ArtifactClient.from_env()
>>> client.upload_artifact("logs", ["out/build.log"], "out", retention_days=5)
>>> client.download_artifact(client.get_artifact("logs"), "logs")

An artifact is a zip of files, or one file as it is. A name stays taken when its upload breaks off, although nothing is
to be seen of it, until the attempt is over. So a name should say which try it is of.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.artifact_body import check_digest
from checkpoint_action.toolkit.artifact_messages import (
    Artifact,
    DownloadedArtifact,
    FindBy,
    UploadedArtifact,
    check_name,
    expiry,
    newest_of_each_name,
)
from checkpoint_action.toolkit.artifact_rest import ArtifactRest
from checkpoint_action.toolkit.artifact_transfer import EitherWay, fetch, send
from checkpoint_action.toolkit.artifact_unzip import UnpackLimits, move_in, safe_path, unpack
from checkpoint_action.toolkit.artifact_v4 import ArtifactV4
from checkpoint_action.toolkit.artifact_zip import read_file, zip_entries, zip_pieces
from checkpoint_action.toolkit.commands import set_secret, warning
from checkpoint_action.toolkit.errors import InputError, MissingEntryError, ProtocolError
from checkpoint_action.toolkit.http import HttpClient
from checkpoint_action.toolkit.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from checkpoint_action.toolkit.artifact_transfer import Source

__all__ = [
    "CALL_SECONDS",
    "TRANSFER_SECONDS",
    "Artifact",
    "ArtifactClient",
    "DownloadedArtifact",
    "FindBy",
    "UnpackLimits",
    "UploadedArtifact",
]

CALL_SECONDS = 90.0
"""Time for a call about artifacts: long enough to wait out a refusal for too many calls."""

TRANSFER_SECONDS = 1800.0
"""Time for an upload or a download as a whole."""

_MIB = 1024 * 1024


def _unheard(_text: str) -> None:
    pass


class ArtifactClient:
    """Artifacts of this job's run, and with ``find_by`` of any run. Threads may share one.

    :param http: makes the calls, with its limits and its deadline.
    :param mask: gets each signature that must not appear in the log, before it is used.
    :param warn: gets what a person should know of, as a sentence.
    :param fallback: where this run's artifacts are looked for when the service lets the token read none, and a body is
        asked for that the service does not hand out, as it happened to those of earlier attempts of a run.
    :param elsewhere: whose artifacts are read instead of this run's own, where nothing else is said.
    :param block: bytes of the pieces of an upload, ``parallel`` of which are in memory and on their way at a time.
    :param fetch_plan: in which parts downloads are fetched.
    :param wall: seconds since the epoch.
    """

    def __init__(
        self,
        runtime: Runtime,
        http: HttpClient,
        *,
        mask: Callable[[str], None] = _unheard,
        warn: Callable[[str], None] = _unheard,
        fallback: FindBy | None = None,
        elsewhere: FindBy | None = None,
        block: int = 8 * _MIB,
        parallel: int = 5,
        fetch_plan: blob.DownloadPlan | None = None,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._runtime = runtime
        self._http = http
        self._mask = mask
        self._warn = warn
        self._fallback = fallback
        self._elsewhere = elsewhere
        self._block = block
        self._parallel = parallel
        self._fetch_plan = fetch_plan
        self._wall = wall

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> ArtifactClient:
        """A client for the job that ``env`` (this process's environment) tells of, which speaks to its log."""
        env = os.environ if env is None else env
        return cls(Runtime.resolve(env), HttpClient(env=env), mask=set_secret, warn=warning)

    def upload_artifact(
        self,
        name: str,
        files: Sequence[str | os.PathLike[str]],
        root_directory: str | os.PathLike[str],
        *,
        retention_days: int = 0,
        compression_level: int = 6,
        skip_archive: bool = False,
        mime_type: str = "application/octet-stream",
        seconds: float = TRANSFER_SECONDS,
    ) -> UploadedArtifact:
        """Keep ``files`` as an artifact: a zip of them that is made while it is sent, whatever their size.

        :param name: with ``skip_archive`` not used: the artifact is called as its file.
        :param files: regular files, links to such, and folders that are to be there although they are empty.
        :param root_directory: the folder that is the top of the zip; all files are below it.
        :param retention_days: how long it is kept; 0: as the repository's settings say, which also cap it.
        :param compression_level: 0 (none) to 9.
        :param skip_archive: keep the one file as it is. act and older servers will call it a zip all the same.
        :param mime_type: what that file is served as. The service refuses types it does not know.
        :param seconds: time for all of it, tries and waits included.
        :raises InputError: a file, its path or another argument cannot be used. No call has been made then.
        :raises ReservedError: the name is taken, be it by an upload that broke off. Use another.
        :raises DeniedError: the token permits no artifacts.
        :raises QuotaError: the account's storage is used up.
        :raises UnavailableError: the environment offers no artifacts; no enterprise server does.
        :raises ToolkitError: the service fails, or a file cannot be read.
        """
        if not files:
            raise InputError("an artifact needs at least one file")
        if not 0 <= compression_level <= 9:
            raise InputError(f"a compression level is 0 to 9, not {compression_level}")
        entries = zip_entries(files, root_directory)
        if skip_archive:
            if len(entries) != 1 or entries[0].folder:
                raise InputError("an artifact that is no archive has exactly one file")
            source = entries[0].source
            name = source.name
        check_name(name)
        if not entries:
            raise InputError("an artifact needs at least one file")

        def body() -> Iterator[bytes]:
            return read_file(source) if skip_archive else zip_pieces(entries, level=compression_level)

        return self._send(name, body, retention_days, seconds, mime_type=mime_type if skip_archive else "")

    def upload_zip(
        self,
        name: str,
        body: Callable[[], Iterator[bytes]],
        *,
        retention_days: int = 0,
        seconds: float = TRANSFER_SECONDS,
    ) -> UploadedArtifact:
        """Keep a zip that is made by the caller as an artifact. Else as :meth:`upload_artifact`.

        :param body: gives the zip's bytes from the beginning, each time it is called.
        """
        check_name(name)
        return self._send(name, body, retention_days, seconds)

    def list_artifacts(
        self, *, latest: bool = False, find_by: FindBy | None = None, seconds: float = CALL_SECONDS
    ) -> list[Artifact]:
        """The artifacts of the run, of all its attempts; with ``latest`` the newest of each name alone, newest first.

        :raises DeniedError: the token permits no look at them.
        :raises UnavailableError: the environment offers no artifacts.
        :raises ToolkitError: the service fails.
        """
        found = self._source(seconds, find_by).find()
        return newest_of_each_name(found) if latest else found

    def get_artifact(self, name: str, *, find_by: FindBy | None = None, seconds: float = CALL_SECONDS) -> Artifact:
        """The newest artifact of that name.

        :raises MissingEntryError: there is none.
        :raises ToolkitError: as in :meth:`list_artifacts`.
        """
        return self._newest(self._source(seconds, find_by), name)

    def delete_artifact(self, name: str, *, find_by: FindBy | None = None, seconds: float = CALL_SECONDS) -> int:
        """Delete the newest artifact of that name and return its number.

        :raises MissingEntryError: there is none.
        :raises ToolkitError: as in :meth:`list_artifacts`.
        """
        source = self._source(seconds, find_by)
        return source.delete(self._newest(source, name))

    def download_artifact(
        self,
        artifact: Artifact | int,
        path: str | os.PathLike[str],
        *,
        find_by: FindBy | None = None,
        expected_digest: str = "",
        skip_decompress: bool = False,
        limits: UnpackLimits | None = None,
        seconds: float = TRANSFER_SECONDS,
    ) -> DownloadedArtifact:
        """Put the files of an artifact into the folder ``path``, all of them or none, over what is there.

        What breaks off is continued where it broke, with a fresh address where the old one has expired. Nothing is
        unpacked before the digest is right, nothing is moved into place before all is unpacked.

        :param artifact: as it was found, or its number.
        :param path: made where it is missing; no file lands outside of it, nor behind a link inside of it.
        :param expected_digest: ``sha256:<hex>`` to go before the digest that the service tells.
        :param skip_decompress: keep a zip as ``<artifact's name>.zip``.
        :param limits: what a zip may become.
        :raises MissingEntryError: it is not there, or not handed out.
        :raises DigestError: another body came than the one that was stored.
        :raises ProtocolError: the zip is damaged, or holds what must not be unpacked.
        :raises ToolkitError: as in :meth:`list_artifacts`.
        """
        http = self._http.within(seconds)
        source = self._source(seconds, find_by)
        if isinstance(artifact, int):
            found = source.find(number=artifact)
            if not found:
                raise MissingEntryError(f"no artifact has the number {artifact}")
            artifact = found[0]
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".artifact-", dir=folder) as name:
            body = Path(name, "body")
            zipped, told = fetch(http, source, artifact, body, plan=self._fetch_plan)
            digest = check_digest(body, expected_digest or artifact.digest, check=lambda: http.check("download"))
            if zipped and not skip_decompress:
                files = unpack(body, folder, limits=limits, check=lambda: http.check("unpack"))
            else:
                file = safe_path(told or (f"{artifact.name}.zip" if zipped else artifact.name))
                if len(file.parts) > 1:
                    raise ProtocolError(f"the artifact has a name that no file can have: {artifact.name!r}")
                body.replace(body.with_name(file.name))
                move_in(body.parent, folder, [file])
                files = (folder / file,)
        return DownloadedArtifact(artifact, folder, files, digest)

    def download_body(self, artifact: Artifact, target: Path, *, seconds: float = TRANSFER_SECONDS) -> None:
        """Write the body of an artifact of this run, a zip mostly, to the file ``target``, whole or not at all.

        :raises ToolkitError: as in :meth:`download_artifact`.
        """
        http = self._http.within(seconds)
        fetch(http, self._source(seconds, None), artifact, target, plan=self._fetch_plan)
        try:
            check_digest(target, artifact.digest, check=lambda: http.check("download"))
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def read_range(self, artifact: Artifact, start: int, length: int, *, seconds: float = CALL_SECONDS) -> blob.Excerpt:
        """Read ``length`` bytes of the body of an artifact of this run, from byte ``start`` on.

        Where it ends before, there are fewer. No digest can be checked.

        :raises MissingEntryError: it is not there, or not handed out.
        :raises ToolkitError: the service fails.
        """
        http = self._http.within(seconds)
        source = self._source(seconds, None)
        return blob.read_range(http, source.locate(artifact), start, length, renew=lambda: source.locate(artifact))

    def _send(
        self, name: str, body: Callable[[], Iterator[bytes]], days: int, seconds: float, *, mime_type: str = ""
    ) -> UploadedArtifact:
        http = self._http.within(seconds)
        return send(
            ArtifactV4(http, self._runtime, mask=self._mask),
            http,
            name,
            body,
            expires_at=self._expiry(days),
            mime_type=mime_type,
            block=self._block,
            parallel=self._parallel,
            act=self._runtime.act,
        )

    def _source(self, seconds: float, find_by: FindBy | None) -> Source:
        http = self._http.within(seconds)
        find_by = find_by or self._elsewhere
        if find_by is not None:
            return ArtifactRest(http, find_by, mask=self._mask)
        service = ArtifactV4(http, self._runtime, mask=self._mask)
        fallback = self._fallback
        if fallback is None:
            return service
        return EitherWay(service, lambda: ArtifactRest(http, fallback, mask=self._mask))

    @staticmethod
    def _newest(source: Source, name: str) -> Artifact:
        found = newest_of_each_name(source.find(name=name))
        if not found:
            raise MissingEntryError(f"there is no artifact named {name}")
        return found[0]

    def _expiry(self, days: int) -> str:
        if days < 0:
            raise InputError(f"an artifact cannot be kept for {days} days")
        most = self._runtime.retention_days
        if most and days > most:
            self._warn(f"Artifacts are kept for at most {most} days here, not {days}.")
            days = most
        return expiry(days, now=self._wall()) if days else ""
