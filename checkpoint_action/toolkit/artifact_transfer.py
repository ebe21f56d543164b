"""Bodies of artifacts on their way: sent to the job's service, and fetched from where it tells or from REST."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.artifact_body import Blocks
from checkpoint_action.toolkit.artifact_messages import Artifact, UploadedArtifact, file_name
from checkpoint_action.toolkit.errors import DeniedError, HttpStatusError, MissingEntryError, NetworkError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from checkpoint_action.toolkit.artifact_rest import ArtifactRest
    from checkpoint_action.toolkit.artifact_v4 import ArtifactV4
    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["ZIP", "EitherWay", "Source", "fetch", "send"]

ZIP = "application/zip"
_ZIP_TYPES = frozenset({ZIP, "application/x-zip-compressed", "application/zip-compressed"})
_ACT_TRIES = 3


class Source(Protocol):
    """Where artifacts are found: the job's own service, or REST."""

    def find(self, *, name: str = "", number: int = 0) -> list[Artifact]:
        """Those of a name or number, or all."""
        ...

    def locate(self, artifact: Artifact) -> str:
        """A signed URL of the body."""
        ...

    def delete(self, artifact: Artifact) -> int:
        """Delete it and return its number."""
        ...


class EitherWay:
    """The job's own service, and REST for what it does not hand out.

    That is a body of an earlier attempt of the run, as it happened, or anything for a token that may not read.

    :param rest: makes the other way, when it is needed.
    """

    def __init__(self, service: ArtifactV4, rest: Callable[[], ArtifactRest]) -> None:
        self._service = service
        self._rest = rest

    def find(self, *, name: str = "", number: int = 0) -> list[Artifact]:
        """Those of a name or number, or all."""
        try:
            return self._service.find(name=name, number=number)
        except DeniedError:
            return self._rest().find(name=name, number=number)

    def locate(self, artifact: Artifact) -> str:
        """A signed URL of the body."""
        if artifact.run_backend_id:  # else it was found by REST
            try:
                return self._service.locate(artifact)
            except (MissingEntryError, DeniedError):
                pass
        return self._rest().locate(artifact)

    def delete(self, artifact: Artifact) -> int:
        """Delete it and return its number."""
        return self._service.delete(artifact)


def send(
    service: ArtifactV4,
    http: HttpClient,
    name: str,
    body: Callable[[], Iterator[bytes]],
    *,
    expires_at: str,
    mime_type: str,
    block: int,
    parallel: int,
    act: bool,
) -> UploadedArtifact:
    """Reserve ``name``, send what ``body`` gives, and make it an artifact.

    :param body: gives the bytes from the beginning, each time it is called.
    :param mime_type: of a body that is no zip, or empty.
    :param act: whether it goes to act.
    :raises ToolkitError: as of :meth:`.artifact.ArtifactClient.upload_artifact`.
    """

    def attempt(http: HttpClient, parallel: int) -> Blocks:
        url = service.create(name, expires_at=expires_at, mime_type=mime_type)
        blocks = Blocks(body(), block)
        blob.upload_blocks(http, url, blocks, parallel=parallel, content_type=mime_type or ZIP)
        return blocks

    sent = _to_act(attempt, http) if act else attempt(http, parallel)
    number = service.finalize(name, size=sent.size, digest=sent.digest)
    return UploadedArtifact(name, number, sent.size, sent.digest)


def fetch(
    http: HttpClient, source: Source, artifact: Artifact, body: Path, *, plan: blob.DownloadPlan | None
) -> tuple[bool, str]:
    """Download a body to a file; whether it is a zip, and its file name where one is told."""
    address = ""
    headers: dict[str, str] = {}

    def locate() -> str:
        nonlocal address
        address = source.locate(artifact)
        return address

    blob.download(http, locate(), body, renew=locate, described=headers.update, plan=plan)
    kind = headers.get("content-type", "").split(";")[0].strip().lower()
    zipped = kind in _ZIP_TYPES or urlsplit(address).path.lower().endswith(".zip")
    return zipped, file_name(headers.get("content-disposition", ""))


def _to_act(attempt: Callable[[HttpClient, int], Blocks], http: HttpClient) -> Blocks:
    """Upload as act needs it: it keeps blocks in the order of their arrival, one that is sent again twice.

    So they go one by one, and after a failure all of them anew: reserving the name again empties it.
    """
    tries = 1
    while True:
        try:
            return attempt(http.trying(1), 1)
        except (NetworkError, HttpStatusError) as error:
            final = error.permanent if isinstance(error, NetworkError) else error.status < 500
            if final or tries >= _ACT_TRIES:
                raise
        http.pause(http.backoff(tries), "upload")
        tries += 1
