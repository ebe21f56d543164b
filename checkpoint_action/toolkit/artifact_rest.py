"""Artifacts through GitHub's REST interface: of any run of a repository, and from outside of Actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.toolkit import blob
from checkpoint_action.toolkit.artifact_messages import Artifact, artifact_of
from checkpoint_action.toolkit.rest import RestClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint_action.toolkit.artifact_messages import FindBy
    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["ArtifactRest"]


class ArtifactRest:
    """What :class:`~.artifact_v4.ArtifactV4` does to artifacts that are there, done for the run that ``find_by`` names.

    :param mask: gets the signatures of signed URLs before they are used.
    """

    def __init__(self, http: HttpClient, find_by: FindBy, *, mask: Callable[[str], None]) -> None:
        self._rest = RestClient(http, repository=find_by.repository, token=find_by.token, api_url=find_by.api_url)
        self._run = find_by.run_id
        self._mask = mask

    def find(self, *, name: str = "", number: int = 0) -> list[Artifact]:
        """The run's artifacts that have not expired, or those of one name or number; at most 1000."""
        path = f"actions/runs/{self._run}/artifacts"
        items = self._rest.pages(path, "artifacts", {"name": name}, label="list artifacts")
        found = [artifact_of(item) for item in items if not item.get("expired")]
        return [one for one in found if (not name or one.name == name) and (not number or one.id == number)]

    def locate(self, artifact: Artifact) -> str:
        """A signed URL of the artifact's body, good for about a minute.

        :raises MissingEntryError: it has expired, or is gone.
        """
        url = self._rest.redirection(f"actions/artifacts/{artifact.id}/zip", label="download artifact")
        blob.mask_signature(url, self._mask)
        return url

    def delete(self, artifact: Artifact) -> int:
        """Delete the artifact, where it is still there, and return its number."""
        self._rest.delete(f"actions/artifacts/{artifact.id}", label="delete artifact")
        return artifact.id
