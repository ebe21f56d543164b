"""What the ways to artifacts share: what an artifact is, which names one may have, and how the service writes both."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import PurePath
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.errors import InputError, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = [
    "Artifact",
    "DownloadedArtifact",
    "FindBy",
    "UploadedArtifact",
    "artifact_of",
    "check_name",
    "check_path",
    "expiry",
    "file_name",
    "integer",
    "newest_of_each_name",
    "text",
]

_NOT_IN_PATHS = '":<>|*?\r\n'
_NOT_IN_NAMES = _NOT_IN_PATHS + "\\/"
_EPOCH = datetime.fromtimestamp(0, timezone.utc)


@dataclass(frozen=True, slots=True)
class Artifact:
    """An artifact that was found.

    :param id: its number; numbers do **not** grow from one attempt of a run to the next.
    :param size: bytes as the service counts them: of the stored body on GitHub, something else under act.
    :param created_at: with a time zone; ``None`` where it is not told.
    :param digest: ``sha256:<hex>`` of the stored body, or empty where it is not told.
    :param run_backend_id: the attempt it belongs to, as the service calls it; empty when found through REST.
    :param job_backend_id: likewise, the job.
    """

    name: str
    id: int
    size: int = 0
    created_at: datetime | None = None
    digest: str = ""
    run_backend_id: str = ""
    job_backend_id: str = ""


@dataclass(frozen=True, slots=True)
class UploadedArtifact:
    """An artifact that has been stored.

    :param size: bytes of the stored body: of the zip, or of the file itself where none was made.
    :param digest: ``sha256:<hex>`` of that body.
    """

    name: str
    id: int
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class DownloadedArtifact:
    """An artifact that is here now.

    :param folder: where its files are.
    :param files: each of them, in the order in which the artifact lists them.
    :param digest: ``sha256:<hex>`` of the body that came.
    """

    artifact: Artifact
    folder: Path
    files: tuple[Path, ...]
    digest: str


@dataclass(frozen=True, slots=True)
class FindBy:
    """Look through GitHub's REST interface instead of the job's own service: for other runs, and from outside.

    :param repository: ``owner/name``.
    :param run_id: the workflow run's number (``GITHUB_RUN_ID``); all its attempts are looked through.
    :param token: needs ``actions: read``, and ``actions: write`` to delete.
    :param api_url: ``GITHUB_API_URL``.
    """

    repository: str
    run_id: int
    token: str = field(repr=False)
    api_url: str = "https://api.github.com"


def check_name(name: str) -> None:
    """Refuse a name that no artifact can have.

    The characters are those that the official client refuses, because some file system does not take them.

    :raises InputError: it is empty or has one of them in it.
    """
    if not name:
        raise InputError("an artifact's name must not be empty")
    if any(character in _NOT_IN_NAMES for character in name):
        raise InputError(f"an artifact's name must have none of \" : < > | * ? \\ / and no line break in it: {name!r}")


def check_path(path: str) -> None:
    """Refuse a path that no file in an artifact can have: as :func:`check_name`, but slashes are fine.

    A backslash is refused too: the official client takes it for a slash, and so do Windows machines.

    :raises InputError: it is empty or has one of the characters in it.
    """
    if not path:
        raise InputError("a file in an artifact must have a name")
    if any(character in _NOT_IN_PATHS or character == "\\" for character in path):
        raise InputError(f'a path in an artifact must have none of " : < > | * ? \\ and no line break in it: {path!r}')
    try:
        path.encode()
    except UnicodeEncodeError:
        raise InputError(f"a path in an artifact must be text: {path!r}") from None


def expiry(days: int, *, now: float) -> str:
    """The moment ``days`` from ``now`` (seconds since the epoch) as the service wants it."""
    moment = datetime.fromtimestamp(now, timezone.utc) + timedelta(days=days)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def newest_of_each_name(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """The newest artifact of each name, newest first.

    By the time of creation. The official client takes the highest id, which is not the newest once a run has several
    attempts; where times are equal or not told, so does this.
    """
    found: dict[str, Artifact] = {}
    for artifact in sorted(artifacts, key=lambda one: (one.created_at or _EPOCH, one.id), reverse=True):
        found.setdefault(artifact.name, artifact)
    return list(found.values())


def artifact_of(data: object) -> Artifact:
    """Read an item of ``ListArtifacts``, or of a REST list.

    :raises ProtocolError: it is none.
    """
    if not isinstance(data, dict):
        raise ProtocolError("an artifact in the list is no JSON object")
    name, number = text(data, "name"), integer(data, "database_id") or integer(data, "id")
    if not name or not number:
        raise ProtocolError("an artifact in the list has no name or no id")
    return Artifact(
        name=name,
        id=number,
        size=integer(data, "size") or integer(data, "size_in_bytes"),
        created_at=_moment(text(data, "created_at")),
        digest=text(data, "digest"),
        run_backend_id=text(data, "workflow_run_backend_id"),
        job_backend_id=text(data, "workflow_job_run_backend_id"),
    )


def text(data: Mapping[str, object], name: str) -> str:
    """A text field in either of the two spellings that servers use, or empty text."""
    return str(_field(data, name) or "")


def integer(data: Mapping[str, object], name: str) -> int:
    """A 64-bit field: in JSON a text of digits, from some servers a number; 0 where it is left out.

    :raises ProtocolError: it is neither.
    """
    try:
        return int(str(_field(data, name) or 0))
    except ValueError:
        raise ProtocolError(f"{name} is no whole number in the answer") from None


def file_name(disposition: str) -> str:
    """The file name in a ``Content-Disposition`` header without any folder, or empty text.

    ``filename*`` goes before ``filename``, which may only have an ASCII stand-in.
    """
    from urllib.parse import unquote  # noqa: PLC0415 - rarely needed

    match = re.search(r"filename\*\s*=\s*utf-8'[^']*'([^;\r\n]*)", disposition, re.IGNORECASE)
    name = unquote(match[1].strip()) if match else ""
    if not name:
        match = re.search(r"(?<!\*)filename\s*=\s*(?:\"([^\"\r\n]*)\"|([^;\r\n]*))", disposition, re.IGNORECASE)
        name = unquote((match[1] or match[2] or "").strip()) if match else ""
    name = PurePath(name.replace("\\", "/")).name
    return "" if name in {".", ".."} or "\0" in name else name


def _field(data: Mapping[str, object], name: str) -> object:
    if name in data:
        return data[name]
    return data.get(re.sub(r"_(\w)", lambda match: match[1].upper(), name))


def _moment(value: str) -> datetime | None:
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(?:Z|([+-]\d\d:\d\d))", value.strip())
    if match is None:
        return None
    try:
        return datetime.fromisoformat(f"{match[1]}.{(match[2] or '')[:6]:0<6}{match[3] or '+00:00'}")
    except ValueError:
        return None
