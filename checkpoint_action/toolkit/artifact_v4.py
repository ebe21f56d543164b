"""Artifact service v4: five Twirp methods. The bodies travel through signed URLs (:mod:`.blob`)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.artifact_messages import Artifact, artifact_of, integer, text
from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    MissingEntryError,
    NetworkError,
    ProtocolError,
    QuotaError,
    RateLimitedError,
    ReservedError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from checkpoint_action.toolkit.http import HttpClient
    from checkpoint_action.toolkit.runtime import Runtime

__all__ = ["ArtifactV4"]

_SERVICE = "twirp/github.actions.results.api.v1.ArtifactService"
_ZIP_VERSION = 4  # for zips; every server knows it
_ANY_VERSION = 7  # the first that takes a MIME type, and with it bodies that are no zips


class ArtifactV4:
    """The five operations against one results service, for the run and the job that the runtime token names.

    :param mask: gets the signatures of signed URLs before they are used.
    :raises UnavailableError: the environment offers no such service.
    """

    def __init__(self, http: HttpClient, runtime: Runtime, *, mask: Callable[[str], None]) -> None:
        if runtime.enterprise:
            raise UnavailableError("GitHub Enterprise Server has no artifact service of version 4")
        if not runtime.results_url or not runtime.token:
            raise UnavailableError("this job has no artifacts: ACTIONS_RESULTS_URL or ACTIONS_RUNTIME_TOKEN is not set")
        if not runtime.run_backend_id or not runtime.job_backend_id:
            raise UnavailableError("this job has no artifacts: ACTIONS_RUNTIME_TOKEN names no run to keep them for")
        origin = re.match(r"\w+://[^/?#]+", runtime.results_url)
        self._http = http
        self._base = f"{origin[0] if origin else runtime.results_url}/{_SERVICE}"
        self._runtime = runtime
        self._mask = mask

    def create(self, name: str, *, expires_at: str = "", mime_type: str = "") -> str:
        """Reserve ``name`` and return the signed URL to upload to.

        :param expires_at: RFC 3339, or empty: the repository's setting decides.
        :param mime_type: of a body that is no zip. act knows none, nor do some older servers: they take any body.
        :raises ReservedError: the name is taken, by an artifact or by an upload that never ended.
        """
        if self._runtime.act:
            mime_type = ""
        payload: dict[str, object] = {"name": name}
        if expires_at:
            payload["expires_at"] = expires_at
        try:
            if mime_type:
                try:
                    data = self._call("CreateArtifact", {**payload, "version": _ANY_VERSION, "mime_type": mime_type})
                except HttpStatusError as error:
                    if error.status != 500 or error.body.strip():
                        raise
                    mime_type = ""
            if not mime_type:
                data = self._call("CreateArtifact", {**payload, "version": _ZIP_VERSION})
        except HttpStatusError as error:
            if error.status == 409:
                said = f"an artifact named {name} is there already, or an upload under way or broken off has the name"
                raise ReservedError(said, repeated=error.repeated) from error
            raise
        url = text(data, "signed_upload_url")
        if not data.get("ok") or not url:
            raise ProtocolError("CreateArtifact answered without an address for the upload")
        blob.mask_signature(url, self._mask)
        return url

    def finalize(self, name: str, *, size: int, digest: str) -> int:
        """Make the upload an artifact and return its number.

        :param size: bytes that were uploaded.
        :param digest: ``sha256:<hex>`` of them.
        """
        payload: dict[str, object] = {"name": name, "hash": digest}
        if size:
            payload["size"] = str(size)
        try:
            data = self._call("FinalizeArtifact", payload)
        except HttpStatusError as error:
            # An earlier try may have been carried out and only its answer lost.
            found = self.find(name=name) if error.repeated and error.status in {404, 409} else []
            mine = [one.id for one in found if one.run_backend_id == self._runtime.run_backend_id]
            if not mine:
                raise
            return mine[0]
        if not data.get("ok"):
            raise ProtocolError("FinalizeArtifact was refused")
        return integer(data, "artifact_id")

    def find(self, *, name: str = "", number: int = 0) -> list[Artifact]:
        """The artifacts of all attempts of this run, or those of one name or number, in no particular order."""
        payload: dict[str, object] = {}
        if name:
            payload["name_filter"] = name
        if number:
            payload["id_filter"] = str(number)
        try:
            data = self._call("ListArtifacts", payload, http=self._http.trying(1) if self._runtime.act else None)
        except NetworkError as error:
            # act breaks the connection as long as the run has no artifact at all.
            if not self._runtime.act or not _was_cut(error):
                raise
            return []
        items = data.get("artifacts") or []
        if not isinstance(items, list):
            raise ProtocolError("ListArtifacts answered without a list")
        found = [artifact_of(item) for item in items]
        return [one for one in found if (not name or one.name == name) and (not number or one.id == number)]

    def locate(self, artifact: Artifact) -> str:
        """A signed URL of the artifact's body, good for some minutes.

        :raises MissingEntryError: the service does not give one: the artifact is gone, or of an earlier attempt.
        """
        try:
            data = self._call("GetSignedArtifactURL", {"name": artifact.name}, of=artifact)
        except HttpStatusError as error:
            if error.status == 404:
                raise MissingEntryError(f"artifact {artifact.name} cannot be had: {error}") from error
            raise
        url = text(data, "signed_url")
        if not url:
            raise ProtocolError("GetSignedArtifactURL answered without an address")
        blob.mask_signature(url, self._mask)
        return url

    def delete(self, artifact: Artifact) -> int:
        """Delete the artifact, where it is still there, and return its number."""
        try:
            data = self._call("DeleteArtifact", {"name": artifact.name}, of=artifact)
        except HttpStatusError as error:
            if error.status != 404:
                raise
            return artifact.id  # by somebody else, or by a first try whose answer was lost
        if not data.get("ok"):
            raise ProtocolError("DeleteArtifact was refused")
        return integer(data, "artifact_id") or artifact.id

    def _call(
        self,
        method: str,
        payload: Mapping[str, object],
        *,
        of: Artifact | None = None,
        http: HttpClient | None = None,
    ) -> dict[str, object]:
        """Make a call for the run and job of an artifact (``of``), or for this one."""
        ids = {
            "workflow_run_backend_id": (of and of.run_backend_id) or self._runtime.run_backend_id,
            "workflow_job_run_backend_id": (of and of.job_backend_id) or self._runtime.job_backend_id,
        }
        headers = {"authorization": f"Bearer {self._runtime.token}"}
        try:
            return (http or self._http).request_json(
                "POST", f"{self._base}/{method}", label=method, headers=headers, payload={**ids, **payload}
            )
        except HttpStatusError as error:
            if error.status in {401, 403} and not isinstance(error, (QuotaError, RateLimitedError)):
                raise DeniedError(str(error)) from error
            raise


def _was_cut(error: NetworkError) -> bool:
    """Whether there was a connection, and it broke."""
    from urllib3.exceptions import ProtocolError as Broken  # noqa: PLC0415 - imported by now

    return isinstance(error.__cause__, Broken)
