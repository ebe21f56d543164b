"""What GitHub Actions offers to this job."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from checkpoint_action.health.finding import Finding, good, warning

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint_action.toolkit.http import HttpClient
    from checkpoint_action.toolkit.runtime import Runtime

__all__ = ["actions"]

_SECONDS = 15.0  # for a look-up
_KINDS = {
    "ghs_": "of the job or an app",
    "ghp_": "personal (classic)",
    "github_pat_": "personal (fine-grained)",
    "gho_": "of an OAuth app",
    "ghu_": "of an app for a person",
}
_TOKENS = ("GITHUB_TOKEN", "GH_TOKEN", "INPUT_TOKEN")


def actions(env: Mapping[str, str]) -> list[Finding]:
    """Tokens by their kind, never by their value, and the cache service by a look-up; nothing outside of a job."""
    if env.get("GITHUB_ACTIONS") != "true" and "ACTIONS_RUNTIME_TOKEN" not in env:
        return []
    return [_token(env), _cache(env)]


def _token(env: Mapping[str, str]) -> Finding:
    found = {name: _kind(env[name]) for name in _TOKENS if env.get(name)}
    if not found:
        return good("token", "none in the environment; the action needs none there")
    return good("token", ", ".join(f"{name} {kind}" for name, kind in found.items()))


def _kind(token: str) -> str:
    return next((kind for start, kind in _KINDS.items() if token.startswith(start)), "of an unknown kind")


def _cache(env: Mapping[str, str]) -> Finding:
    from checkpoint_action.toolkit.errors import HttpStatusError, ToolkitError  # noqa: PLC0415  # only in a job
    from checkpoint_action.toolkit.http import HttpClient  # noqa: PLC0415
    from checkpoint_action.toolkit.runtime import Runtime  # noqa: PLC0415

    what = "cache service"
    http = HttpClient(env=env).trying(1)
    begun = time.monotonic()
    try:
        runtime = Runtime.resolve(env)
        address = runtime.results_url if runtime.cache_service == "v2" else runtime.cache_url
        if not address:
            return good(what, "not looked at: a 'run:' step is not told where it is; the action finds it by itself")
        if runtime.token or runtime.act:
            return _look_up(runtime, http, begun)
        http.within(_SECONDS).request("GET", address, label="the cache service")
    except HttpStatusError as error:
        if error.status in (401, 403, 404):
            return good(what, f"reached in {_since(begun)}; not asked, as 'run:' steps have no token for it")
        return warning(
            what,
            str(error),
            "the service has a fault: see githubstatus.com, and try again later; jobs run, but nothing is kept",
        )
    except ToolkitError as error:
        return warning(
            what,
            str(error),
            "not reached from here: check network, proxy and firewall; jobs run all the same, but nothing is kept",
        )
    finally:
        http.close()
    return good(what, f"reached in {_since(begun)}")


def _look_up(runtime: Runtime, http: HttpClient, begun: float) -> Finding:
    from checkpoint_action.toolkit.cache import Cache  # noqa: PLC0415  # only in a job

    cache = Cache(runtime, http)
    cache.lookup(["cpr1-doctor"], "0" * 64, seconds=_SECONDS)
    reach = f"; {cache.reach}" if cache.reach else ""
    return good("cache service", f"answers ({cache.service}) in {_since(begun)}{reach}")


def _since(begun: float) -> str:
    return f"{(time.monotonic() - begun) * 1000:.0f} ms"
