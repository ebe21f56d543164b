"""Runtime tokens, as the services hand them to a job."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["make_token", "token_ids", "token_scopes"]

MAIN = (("refs/heads/main", 3),)


def make_token(
    scopes: Sequence[tuple[str, int]] = MAIN, *, run: str = "run-1", job: str = "job-1", signature: str = "signed"
) -> str:
    """A token whose ``ac`` claim lists ``scopes`` (ref and permission bits: 1 = read, 2 = write)."""
    claims = {
        "scp": f"Actions.ExampleScope Actions.Results:{run}:{job}",
        "ac": json.dumps([{"Scope": ref, "Permission": bits} for ref, bits in scopes]),
        "exp": 4102444800,
        "nbf": 0,
    }
    return f"{_encode({'alg': 'RS256', 'typ': 'JWT'})}.{_encode(claims)}.{signature}"


def token_scopes(token: str) -> list[tuple[str, int]]:
    """The ``ac`` claim of a token; all of ``refs/heads/main`` for one that tells nothing."""
    try:
        return [(item["Scope"], int(item["Permission"])) for item in json.loads(_claims(token)["ac"])]
    except (ValueError, KeyError, IndexError, TypeError):
        return list(MAIN)


def token_ids(token: str) -> tuple[str, str]:
    """The run and the job that the ``scp`` claim of a token names, or two empty texts."""
    try:
        for scope in _claims(token)["scp"].split(" "):
            kind, *ids = scope.split(":")
            if kind == "Actions.Results":
                return ids[0], ids[1]
    except (ValueError, KeyError, IndexError, AttributeError):
        pass
    return "", ""


def _claims(token: str) -> dict[str, str]:
    text = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    assert isinstance(claims, dict)
    return claims


def _encode(data: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")
