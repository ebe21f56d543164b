"""Artifact service v4, as act has it: much the same, with surprises."""

from __future__ import annotations

import itertools
import re
import threading
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.actions_service.messages import Reply, Route, json_reply

if TYPE_CHECKING:
    from tests.actions_service.messages import Request

__all__ = ["ArtifactActService"]

_PREFIX = "/twirp/github.actions.results.api.v1.ArtifactService/"
_FIELDS = {
    "CreateArtifact": {"name", "version", "expires_at"},
    "FinalizeArtifact": {"name", "size", "hash"},
    "ListArtifacts": {"name_filter", "id_filter"},
    "GetSignedArtifactURL": {"name"},
    "DeleteArtifact": {"name"},
}
_IDS = {"workflow_run_backend_id", "workflow_job_run_backend_id"}


class ArtifactActService:
    """The five methods and the uploads. Off by default: ``present`` puts it before the other service.

    An unknown field is a 500 without a word; creating empties what is there; blocks are kept as they arrive, and any
    list of them is ignored; a run without artifacts breaks the connection; sizes are those of a folder.
    """

    def __init__(self, base_url: str) -> None:
        self.present = False
        self.content: dict[str, bytearray] = {}
        self._base_url = base_url
        self._serial = itertools.count(1)
        self._lock = threading.Lock()

    def route(self, request: Request) -> Route | None:
        if not self.present or not request.path.startswith(_PREFIX):
            return None
        method = request.path.removeprefix(_PREFIX)
        operation = {
            ("UploadArtifact", "block"): "PutBlock",
            ("UploadArtifact", "appendBlock"): "PutBlock",
            ("UploadArtifact", "blocklist"): "PutBlockList",
            ("DownloadArtifact", ""): "GetBlob",
        }.get((method, request.query.get("comp", "")), method)
        return Route(operation, lambda: self._answer(request, method))

    def _answer(self, request: Request, method: str) -> Reply:
        if method == "UploadArtifact":
            return self._upload(request)
        if method == "DownloadArtifact":
            return self._download(request)
        data = request.json()
        if method not in _FIELDS or not set(data) <= _FIELDS[method] | _IDS:
            return Reply(500)
        if not str(data.get("workflow_run_backend_id", "")).isdigit():
            return Reply(400)
        name = str(data.get("name", ""))
        if method == "CreateArtifact":
            self.content[name] = bytearray()
            return json_reply({"ok": True, "signedUploadUrl": self._url("UploadArtifact", name)})
        if method == "FinalizeArtifact":
            return json_reply({"ok": True, "artifactId": _number(name)})
        if method == "GetSignedArtifactURL":
            return json_reply({"name": name, "signedUrl": self._url("DownloadArtifact", name)})
        if method == "DeleteArtifact":
            self.content.pop(name, None)
            return json_reply({"ok": True, "artifactId": _number(name)})
        return self._list(data)

    def _list(self, data: dict[str, object]) -> Reply:
        if not self.content:
            return Reply(reset=True)
        listed = [
            {
                "workflowRunBackendId": "1",
                "workflowJobRunBackendId": "1",
                "databaseId": _number(name),
                "name": name,
                "size": "4096",
            }
            for name in self.content
            if data.get("name_filter", name) == name and str(data.get("id_filter", _number(name))) == _number(name)
        ]
        return json_reply({"artifacts": listed})

    def _upload(self, request: Request) -> Reply:
        name = request.query.get("artifactName", "")
        if not re.search(r"[?&]sig=[^&]*=(?:&|$)", request.target):
            return Reply(401)
        comp = request.query.get("comp", "")
        if comp in {"block", "appendBlock"}:
            with self._lock:
                self.content[name] += request.body
        return Reply(201 if comp else 200)

    def _download(self, request: Request) -> Reply:
        content = bytes(self.content[request.query.get("artifactName", "")])
        kind = "application/zip" if content.startswith(b"PK\x03\x04") else "application/octet-stream"
        return Reply(200, content, {"content-type": kind})

    def _url(self, method: str, name: str) -> str:
        signature = f"sig{next(self._serial)}="  # with padding: it must come back as it is
        return f"{self._base_url}{_PREFIX}{method}?sig={signature}&artifactName={quote(name)}&taskID=1"


def _number(name: str) -> str:
    return str(zlib.crc32(name.encode()) or 1)
