"""Signatures of archives: whoever has the key can tell that nobody else wrote what an archive says.

The signature covers the header as it is stored (all of its JSON text but the signature itself, in ``checkpoint.json``)
and the key that the archive is kept under. So no archive passes for another one, be it another job's or an older one;
and as the header holds each file's digest, no layer can be exchanged either.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import BundleError, Kind
from checkpoint_action.store.bundle import FORMAT

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["SIGNATURE", "check_signature", "signed"]

SIGNATURE = "signature"
"""The header's field for it, the last one."""

_PURPOSE = b"checkpoint-run archive 1\0"


def signed(header: Mapping[str, Any], key: str, signing_key: bytes) -> dict[str, Any]:
    """A header with its signature.

    :param key: what the archive will be kept under.
    :param signing_key: the secret; not empty.
    """
    whole = {"format": FORMAT} | {name: value for name, value in header.items() if name != SIGNATURE}
    return whole | {SIGNATURE: _signature(whole, key, signing_key)}


def check_signature(header: Mapping[str, Any], key: str, signing_key: bytes) -> None:
    """Refuse a header that was not signed with this key, for an archive of this name.

    :param key: what the archive is kept under, as the store says; letter case apart, which some stores change.
    :raises BundleError: it was not.
    """
    said = header.get(SIGNATURE)
    rest = {name: value for name, value in header.items() if name != SIGNATURE}
    mine = _signature(rest, key, signing_key)
    if not isinstance(said, str) or not hmac.compare_digest(said.encode("utf-8", "replace"), mine.encode()):
        raise BundleError("it is not signed with this key", Kind.UNSIGNED)


def _signature(header: Mapping[str, Any], key: str, signing_key: bytes) -> str:
    # What is read is written again to be compared: then it is the very data that is used that the signature is held
    # against, whatever its text was. This text has no zero byte in it, so there is one way only to take it apart.
    text = json.dumps(header, ensure_ascii=True, separators=(",", ":"))
    message = _PURPOSE + key.lower().encode("utf-8", "replace") + b"\0" + text.encode("ascii")
    return hmac.new(signing_key, message, hashlib.sha256).hexdigest()
