"""Artifact service v4, as on github.com."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.actions_service.messages import Reply, Route, json_reply, twirp_error
from tests.actions_service.tokens import token_ids

if TYPE_CHECKING:
    from tests.actions_service.artifact_store import ArtifactItem, ArtifactStore
    from tests.actions_service.blobs import Blobs
    from tests.actions_service.messages import Request

__all__ = ["ArtifactService"]

_PREFIX = "/twirp/github.actions.results.api.v1.ArtifactService/"
_REFUSED_TYPES = frozenset({"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"})


class ArtifactService:
    """The five methods.

    Switches, all off: ``camel_case`` answers in the other JSON spelling; ``numbers_as_numbers`` writes 64-bit fields
    bare; ``old_attempts_are_hidden`` answers 404 for the address of what another attempt uploaded; ``read_only``
    refuses uploads; ``knows_no_types`` fails on a MIME type with an empty answer.
    """

    def __init__(self, store: ArtifactStore, blobs: Blobs, base_url: str) -> None:
        self.camel_case = False
        self.numbers_as_numbers = False
        self.old_attempts_are_hidden = False
        self.read_only = False
        self.knows_no_types = False
        self._store = store
        self._blobs = blobs
        self._base_url = base_url

    def route(self, request: Request) -> Route | None:
        if not request.path.startswith(_PREFIX):
            return None
        method = request.path.removeprefix(_PREFIX)
        return Route(method, lambda: self._answer(request, method))

    def _answer(self, request: Request, method: str) -> Reply:
        known = {
            "CreateArtifact": self._create,
            "FinalizeArtifact": self._finalize,
            "ListArtifacts": self._list,
            "GetSignedArtifactURL": self._sign,
            "DeleteArtifact": self._delete,
        }.get(method)
        if known is None or request.method != "POST":
            return twirp_error(404, "bad_route", f"no handler for path {request.path}")
        if not request.bearer:
            return twirp_error(401, "unauthenticated", "missing bearer token")
        data = {_snake(name): value for name, value in request.json().items()}
        run, job = token_ids(request.bearer)
        if method in {"CreateArtifact", "FinalizeArtifact"} and (run, job) != _ids(data):
            return twirp_error(403, "permission_denied", "the token is of another job")
        if str(_ids(data)[0]).split(".")[0] != run.split(".")[0]:
            return twirp_error(403, "permission_denied", "the token is of another run")
        reply = known(run, data)
        return reply if isinstance(reply, Reply) else json_reply(self._spelled(reply))

    def _create(self, run: str, data: dict[str, object]) -> Reply | dict[str, object]:
        name, version = str(data.get("name", "")), int(str(data.get("version", 0)))
        kind = data.get("mime_type", "")
        if self.read_only:
            return twirp_error(403, "permission_denied", "artifacts are read-only for this job")
        if "mime_type" in data and self.knows_no_types:
            return Reply(500)
        if not name or re.search(r'[":<>|*?\r\n\\/]', name):
            return twirp_error(400, "invalid_argument", "name contains an invalid character")
        if not isinstance(kind, str) or (version >= 7 and (not kind or kind in _REFUSED_TYPES)):
            text = "mime_type a valid mime_type is required for this artifact version"
            return twirp_error(400, "invalid_argument", text)
        item = self._store.reserve(run, str(data["workflow_job_run_backend_id"]), name)
        if item is None:
            text = "an artifact with this name already exists on the workflow run"
            return twirp_error(409, "already_exists", text)
        item.version, item.expires_at = version, str(data.get("expires_at", ""))
        suffix = "" if version >= 7 and kind != "application/zip" else ".zip"
        disposition = f'attachment; filename="{name.encode("ascii", "replace").decode()}{suffix}"; '
        disposition += f"filename*=UTF-8''{quote(name)}{suffix}"
        self._blobs.headers[item.blob] = {"content-disposition": disposition}
        return {"ok": True, "signed_upload_url": self._blobs.sign(self._base_url, item.blob, "w")}

    def _finalize(self, run: str, data: dict[str, object]) -> Reply | dict[str, object]:
        item = self._find(run, str(data.get("name")), complete=None)
        if item is None:
            return twirp_error(404, "not_found", "artifact not found")
        if item.complete:
            return twirp_error(409, "already_exists", "the artifact is finalized")
        size = int(str(data.get("size", 0)))
        if item.blob not in self._blobs.content or size != len(self._blobs.content[item.blob]):
            return twirp_error(400, "invalid_argument", "size does not match the upload")
        item.complete, item.size, item.digest = True, size, str(data.get("hash", ""))
        return {"ok": True, "artifact_id": str(item.number)}

    def _list(self, run: str, data: dict[str, object]) -> Reply | dict[str, object]:
        found = self._store.of_run(run.split(".", 1)[0])
        if "name_filter" in data:
            found = [item for item in found if item.name == data["name_filter"]]
        if "id_filter" in data:
            found = [item for item in found if str(item.number) == str(data["id_filter"])]
        # No order is promised.
        return {"artifacts": [self._spelled(_listed(item)) for item in reversed(found)]} if found else {}

    def _sign(self, run: str, data: dict[str, object]) -> Reply | dict[str, object]:
        asked = _ids(data)[0]
        if self.old_attempts_are_hidden and asked != run:
            return twirp_error(404, "not_found", "workflow run not found")
        item = self._find(asked, str(data.get("name")))
        if item is None:
            return twirp_error(404, "not_found", "artifact not found")
        return {"signed_url": self._blobs.sign(self._base_url, item.blob, "r")}

    def _delete(self, run: str, data: dict[str, object]) -> Reply | dict[str, object]:
        item = self._find(_ids(data)[0], str(data.get("name")))
        if item is None:
            return twirp_error(404, "not_found", "artifact not found")
        self._store.remove(item)
        return {"ok": True, "artifact_id": str(item.number)}

    def _find(self, run: str, name: str, *, complete: bool | None = True) -> ArtifactItem | None:
        for item in self._store.items:
            if (item.run, item.name) == (run, name) and complete in {None, item.complete}:
                return item
        return None

    def _spelled(self, data: dict[str, object]) -> dict[str, object]:
        if self.numbers_as_numbers:
            wide = {"size", "database_id", "artifact_id"}
            data = {name: int(str(value)) if name in wide else value for name, value in data.items()}
        return {_camel(name) if self.camel_case else name: value for name, value in data.items()}


def _ids(data: dict[str, object]) -> tuple[str, str]:
    return str(data.get("workflow_run_backend_id", "")), str(data.get("workflow_job_run_backend_id", ""))


def _listed(item: ArtifactItem) -> dict[str, object]:
    listed: dict[str, object] = {
        "workflow_run_backend_id": item.run,
        "workflow_job_run_backend_id": item.job,
        "database_id": str(item.number),
        "name": item.name,
        "created_at": item.created_text,
    }
    if item.size:
        listed["size"] = str(item.size)
    if item.digest:
        listed["digest"] = item.digest
    return listed


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)
