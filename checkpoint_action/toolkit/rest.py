"""GitHub's REST interface for one repository: enough of it to list and delete what a job keeps there.

Paths, parameters and answers are those of GitHub's documentation of API version 2022-11-28.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from checkpoint_action.toolkit.errors import (
    DeniedError,
    HttpStatusError,
    InputError,
    MissingEntryError,
    ProtocolError,
    QuotaError,
    RateLimitedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from checkpoint_action.toolkit.http import HttpClient

__all__ = ["DEFAULT_API_URL", "MOST_ITEMS", "RestClient"]

DEFAULT_API_URL = "https://api.github.com"

MOST_ITEMS = 1000
"""Items of a list that are read at most, as in the official client."""

_PAGE = 100


class RestClient:
    """Calls for one repository. Threads may share one.

    A refusal for too many calls (429, or 403 with ``retry-after`` or no ``x-ratelimit-remaining``) is waited out as
    far as the client's limits go.

    :param repository: ``owner/name`` (``GITHUB_REPOSITORY``).
    :param token: what the calls may do depends on it; empty for none.
    :param api_url: ``GITHUB_API_URL``; may have a path, as on an enterprise server.
    :raises InputError: ``repository`` is no such name.
    """

    def __init__(self, http: HttpClient, *, repository: str, token: str, api_url: str = DEFAULT_API_URL) -> None:
        owner, slash, name = repository.partition("/")
        if not owner or not slash or not name or "/" in name or {owner, name} & {".", ".."}:
            raise InputError(f"a repository is named owner/name, not {repository!r}")
        self._http = http
        self._base = f"{api_url.rstrip('/')}/repos/{quote(owner, safe='')}/{quote(name, safe='')}"
        self._headers = {"accept": "application/vnd.github+json", "x-github-api-version": "2022-11-28"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    def get(self, path: str, query: Mapping[str, object] | None = None, *, label: str) -> dict[str, object]:
        """The JSON object at ``path`` below the repository.

        :param query: parameters; those that are ``None`` or empty are left out.
        :param label: what messages call it.
        :raises DeniedError: the token is not let (401 or 403).
        :raises MissingEntryError: there is no such thing (404 or 410), or none that the token may see.
        :raises ToolkitError: the service fails.
        """
        return self._call("GET", path, query, label=label)

    def delete(self, path: str, query: Mapping[str, object] | None = None, *, label: str) -> bool:
        """Delete what is at ``path``; ``False`` when it is not there, or no more. Else as :meth:`get`."""
        try:
            self._call("DELETE", path, query, label=label)
        except MissingEntryError:
            return False
        return True

    def pages(
        self,
        path: str,
        items: str,
        query: Mapping[str, object] | None = None,
        *,
        label: str,
        most: int = MOST_ITEMS,
    ) -> Iterator[dict[str, object]]:
        """The items of a list, page by page, each once though the list may move meanwhile. Else as :meth:`get`.

        :param items: the field that holds them; each has an ``id``.
        :param most: items after which it ends.
        """
        seen: set[object] = set()
        for page in range(1, -(-most // _PAGE) + 1):
            data = self.get(path, {**(query or {}), "per_page": _PAGE, "page": page}, label=label)
            listed = data.get(items)
            if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
                raise ProtocolError(f"{label} answered without a list of {items}")
            for item in listed:
                number = item.get("id")
                if not isinstance(number, (int, str)):
                    raise ProtocolError(f"{label} answered one of its {items} without an id")
                if number not in seen and len(seen) < most:
                    seen.add(number)
                    yield item
            total = data.get("total_count")
            if len(listed) < _PAGE or (isinstance(total, int) and page * _PAGE >= total):
                return

    def redirection(self, path: str, *, label: str) -> str:
        """The address that ``path`` leads to. Nothing is sent there, so no credentials either. Else as :meth:`get`."""
        try:
            return self._http.redirection(f"{self._base}/{path}", label=label, headers=self._headers)
        except HttpStatusError as error:
            raise _meaning(error) from error

    def _call(self, method: str, path: str, query: Mapping[str, object] | None, *, label: str) -> dict[str, object]:
        given = {name: value for name, value in (query or {}).items() if value is not None and value != ""}
        url = f"{self._base}/{path}" + (f"?{urlencode(given)}" if given else "")
        try:
            return self._http.request_json(method, url, label=label, headers=self._headers)
        except HttpStatusError as error:
            raise _meaning(error) from error


def _meaning(error: HttpStatusError) -> Exception:
    """The error that says what the status means here."""
    if error.status in {404, 410}:
        return MissingEntryError(str(error))
    if error.status in {401, 403} and not isinstance(error, (RateLimitedError, QuotaError)):
        return DeniedError(str(error))
    return error
