"""What can go wrong in the toolkit: one tree, usable without the rest of the package.

Every text is one line and free of secrets: an operation and a host are named, never a path, a query or a token.
"""

from __future__ import annotations

__all__ = [
    "CommandFileError",
    "DeadlineError",
    "DeniedError",
    "DigestError",
    "HttpStatusError",
    "InputError",
    "MissingEntryError",
    "NetworkError",
    "ProtocolError",
    "QuotaError",
    "RateLimitedError",
    "ReservedError",
    "ToolkitError",
    "UnavailableError",
]


class ToolkitError(Exception):
    """Base of every failure that the toolkit expects."""


class InputError(ToolkitError):
    """A value handed in cannot be used: a missing input, a bad boolean, a key that no service takes."""


class CommandFileError(ToolkitError):
    """A file that the runner gave for outputs, variables, state or the summary cannot be used."""


class UnavailableError(ToolkitError):
    """This environment offers no such service."""


class NetworkError(ToolkitError):
    """No complete answer came: no connection, a reset, silence, a body that broke off.

    :param permanent: trying again cannot help (a certificate that is not trusted).
    """

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        super().__init__(message)
        self.permanent = permanent


class DeadlineError(NetworkError):
    """The time for the call has run out."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)


class HttpStatusError(ToolkitError):
    """The server answered with a status that is no success.

    :param status: the HTTP status.
    :param body: the start of the answer's text.
    :param code: the service's own word for it (Twirp ``code``, v1 ``typeKey``, Azure ``x-ms-error-code``), or empty.
    :param retry_after: seconds that the server asked to wait, where it said so.
    :ivar repeated: whether an earlier try of the same call got no clear answer, so that it may have been carried out.
    """

    def __init__(
        self, message: str, *, status: int, body: str = "", code: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body = body
        self.code = code
        self.retry_after = retry_after
        self.repeated = False


class RateLimitedError(HttpStatusError):
    """Too many calls: status 429, or 403 with a word about when to come back (as GitHub's REST interface answers)."""


class QuotaError(HttpStatusError):
    """The account's storage is used up ("insufficient usage"): nothing new is taken, and trying again does not help."""


class ProtocolError(ToolkitError):
    """The server's answer is not what the protocol says: no JSON, a field missing, a length that does not fit."""


class DigestError(ProtocolError):
    """The content that came is not the content that was stored."""


class DeniedError(ToolkitError):
    """The service refuses this job to read or to write, and will go on refusing."""


class ReservedError(ToolkitError):
    """The key is taken, by a finished entry or by an upload that has not ended. Another key is needed.

    :param repeated: an earlier try of the same reservation got no clear answer, and may itself have taken the key.
    """

    def __init__(self, message: str, *, repeated: bool = False) -> None:
        super().__init__(message)
        self.repeated = repeated


class MissingEntryError(ToolkitError):
    """What was asked for is not there: it never was, or it is gone (evicted, expired, deleted)."""
