"""What the runner tells a job about its services, read once."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, cast
from urllib.parse import urlsplit

from checkpoint_action.toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CacheScope", "CacheService", "Runtime"]

CacheService = Literal["v1", "v2"]

_RESULTS_SCOPE = "Actions.Results"


@dataclass(frozen=True, slots=True)
class CacheScope:
    """A ref whose cache entries the token reaches (claim ``ac``).

    :param permission: bit 1 = read, bit 2 = write.
    """

    scope: str
    permission: int

    @property
    def readable(self) -> bool:
        """Whether entries of this ref can be read."""
        return bool(self.permission & 1)

    @property
    def writable(self) -> bool:
        """Whether entries can be written under this ref."""
        return bool(self.permission & 2)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The runner's service addresses and the job's token.

    :param token: bearer of cache and artifact calls; empty under act without an artifact server.
    :param results_url: base of cache v2 and artifacts (only its origin is used), or empty.
    :param cache_url: base of cache v1, with a closing slash and any path it came with, or empty.
    :param cache_service: the cache protocol to speak first, ``None`` when no cache is offered.
    :param cache_mode: ``read``, ``write`` (which also reads), ``write-only``, ``none``, or empty: the server decides.
    :param run_backend_id: the run's id inside the services (claim ``scp``), or empty.
    :param job_backend_id: the job's, likewise.
    :param scopes: refs and permissions for cache entries (claim ``ac``); often not told.
    :param enterprise: ``GITHUB_SERVER_URL`` is of no github.com and no ghe.com: a server without artifacts v4.
    :param act: the runner is act (``ACT``), whose services differ.
    :param retention_days: the longest that an artifact may be kept (``GITHUB_RETENTION_DAYS``), or 0: not told.
    """

    token: str = field(default="", repr=False)
    results_url: str = ""
    cache_url: str = field(default="", repr=False)
    cache_service: CacheService | None = None
    cache_mode: str = ""
    run_backend_id: str = ""
    job_backend_id: str = ""
    scopes: tuple[CacheScope, ...] = ()
    enterprise: bool = False
    act: bool = False
    retention_days: int = 0

    @property
    def may_read_cache(self) -> bool:
        """Whether ``ACTIONS_CACHE_MODE`` lets the job read entries; the server can still refuse."""
        return self.cache_mode not in {"write-only", "none"}

    @property
    def may_write_cache(self) -> bool:
        """Whether ``ACTIONS_CACHE_MODE`` lets the job write entries; the server can still refuse."""
        return self.cache_mode not in {"read", "none"}

    @classmethod
    def resolve(cls, env: Mapping[str, str], *, cache_service: str | None = None) -> Runtime:
        """Read the ``ACTIONS_*`` values of ``env``, ``GITHUB_SERVER_URL``, ``GITHUB_RETENTION_DAYS`` and ``ACT``.

        The cache protocol is the first that fits: what ``cache_service`` says, or ``ACTIONS_CACHE_API_FORCE_VERSION``;
        v1 on an enterprise server that has one; v2 where the runner's flag is set (any text at all, as the official
        client reads it) and a results address is known; v1 where there is an address for it; v2 likewise.

        A token that is no JWT, or lacks claims, leaves the fields that come from claims empty.

        :raises InputError: the override is neither ``v1`` nor ``v2``.
        """
        results_url = env.get("ACTIONS_RESULTS_URL", "").strip()
        cache_url = env.get("ACTIONS_CACHE_URL", "").strip()
        if cache_url and not cache_url.endswith("/"):
            cache_url += "/"
        mode = env.get("ACTIONS_CACHE_MODE", "").strip().lower()
        token = env.get("ACTIONS_RUNTIME_TOKEN", "").strip()
        claims = _claims(token)
        run_id, job_id = _backend_ids(claims)
        enterprise = _is_enterprise(env.get("GITHUB_SERVER_URL", ""))
        days = env.get("GITHUB_RETENTION_DAYS", "").strip()
        return cls(
            token=token,
            results_url=results_url,
            cache_url=cache_url,
            cache_service=_choose(
                cache_service or env.get("ACTIONS_CACHE_API_FORCE_VERSION", ""),
                enterprise=enterprise,
                flag=bool(env.get("ACTIONS_CACHE_SERVICE_V2")),
                results_url=results_url,
                cache_url=cache_url,
            ),
            cache_mode=mode if mode in {"read", "write", "write-only", "none"} else "",
            run_backend_id=run_id,
            job_backend_id=job_id,
            scopes=_cache_scopes(claims),
            enterprise=enterprise,
            act=bool(env.get("ACT", "").strip()),
            retention_days=int(days) if days.isascii() and days.isdecimal() else 0,
        )


def _choose(override: str, *, enterprise: bool, flag: bool, results_url: str, cache_url: str) -> CacheService | None:
    word = override.strip().lower()
    if word:
        if word not in {"v1", "v2"}:
            raise InputError(f"the cache service version must be v1 or v2, not {word!r}")
        return cast("CacheService", word)
    if enterprise and cache_url:
        return "v1"
    if flag and results_url:
        return "v2"
    if cache_url:
        return "v1"
    return "v2" if results_url else None


def _is_enterprise(server_url: str) -> bool:
    try:
        host = (urlsplit(server_url or "https://github.com").hostname or "").lower()
    except ValueError:
        return False
    return host != "github.com" and not host.endswith((".ghe.com", ".localhost"))


def _claims(token: str) -> Mapping[str, object]:
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        text = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _backend_ids(claims: Mapping[str, object]) -> tuple[str, str]:
    for scope in str(claims.get("scp") or "").split(" "):
        parts = scope.split(":")
        if len(parts) == 3 and parts[0] == _RESULTS_SCOPE:
            return parts[1], parts[2]
    return "", ""


def _cache_scopes(claims: Mapping[str, object]) -> tuple[CacheScope, ...]:
    try:
        items: object = json.loads(str(claims.get("ac") or "[]"))
    except (ValueError, RecursionError):
        return ()
    if not isinstance(items, list):
        return ()
    return tuple(
        CacheScope(item["Scope"], item["Permission"])
        for item in items
        if isinstance(item, dict) and isinstance(item.get("Scope"), str) and isinstance(item.get("Permission"), int)
    )
