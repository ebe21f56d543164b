"""What an answer, or its lack, means: the error it stands for."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from checkpoint_action.toolkit.errors import HttpStatusError, NetworkError, QuotaError, RateLimitedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from checkpoint_action.toolkit.exchange import Call

__all__ = ["content_md5", "json_object", "lower", "network_error", "one_line", "retry_after", "status_error"]

_QUOTA_WORDS = "insufficient usage"  # what the official clients look for


def status_error(call: Call, status: int, headers: Mapping[str, str], body: bytes, *, now: float) -> HttpStatusError:
    """The error for a status that is no success, with the code and the first words that the server gave for it.

    :param headers: names in lower case.
    :param now: seconds since the epoch, for a ``Retry-After`` that is a date.
    """
    text = body.decode("utf-8", "replace")
    data = json_object(body) or {}
    code = str(data.get("code") or data.get("typeKey") or headers.get("x-ms-error-code") or "")
    said = data.get("msg") or data.get("message") or data.get("error") or ("" if text.startswith("<") else text)
    message = f"{call.place} answered {status}"
    for detail in (code, one_line(said)):
        if detail:
            message += f", {detail}"
    used_up = headers.get("x-ratelimit-remaining", "").strip() == "0"
    kind = HttpStatusError
    if _QUOTA_WORDS in str(said):
        kind = QuotaError
    elif status == 429 or (status == 403 and (used_up or "retry-after" in headers)):
        kind = RateLimitedError
    wait = retry_after(headers.get("retry-after", ""), now=now)
    reset = headers.get("x-ratelimit-reset", "").strip()
    if wait is None and used_up and reset.isdecimal():
        wait = max(0.0, float(reset) - now)
    return kind(message, status=status, body=text, code=code, retry_after=wait)


def retry_after(value: str, *, now: float) -> float | None:
    """Seconds that a ``Retry-After`` header asks for, as a number of them or as a date; ``None`` if it says neither."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - rarely needed

    if value.strip().isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (TypeError, ValueError, OverflowError):
        return None


def network_error(call: Call, error: Exception) -> NetworkError:
    """The error for an exception of urllib3."""
    from urllib3 import exceptions as kinds  # noqa: PLC0415

    reason: object = error.args[-1] if error.args else error
    words = "connection broke"
    permanent = False
    if isinstance(error, (kinds.ConnectTimeoutError, kinds.NewConnectionError, kinds.ProxyError)):
        words = "no connection"
    elif isinstance(error, kinds.ReadTimeoutError):
        words, reason = f"no answer for {call.limits.idle:g} s", ""
    elif isinstance(error, kinds.SSLError):
        words = "no secure connection"
        permanent = "CERTIFICATE_VERIFY_FAILED" in str(error)
    elif isinstance(error, kinds.LocationValueError):
        words, reason, permanent = "not a usable address", "", True
    detail = one_line(reason)
    return NetworkError(f"{call.place}: {words}" + (f" ({detail})" if detail else ""), permanent=permanent)


def content_md5(pieces: Iterable[bytes]) -> str:
    """The ``Content-MD5`` header that belongs to a body: guards against accidents, not against malice."""
    digest = hashlib.md5(usedforsecurity=False)
    for piece in pieces:
        digest.update(piece)
    return base64.b64encode(digest.digest()).decode()


def json_object(body: bytes) -> dict[str, object] | None:
    """The JSON object that ``body`` is, or ``None`` when it is none."""
    try:
        data: object = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def lower(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, with their names in lower case."""
    return {name.lower(): value for name, value in headers.items()}


def one_line(text: object) -> str:
    """The start of a text, short enough for a message."""
    return " ".join(str(text).split())[:300]
