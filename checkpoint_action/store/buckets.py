"""Buckets as the library has them, which knows the environment that people set for such services."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from checkpoint_action.errors import Kind, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from obstore.store import ObjectStore as Bucket

__all__ = ["open_bucket", "reason"]

_REQUEST_SECONDS = 120
_LONGEST_REASON = 300


def open_bucket(scheme: str, bucket: str, prefix: str) -> Bucket:
    """What the library makes of a URL and of the environment, where it finds credentials, region and endpoint.

    :param scheme: ``s3``, ``gs`` or ``az``.
    :param bucket: the container for Azure.
    :param prefix: of all objects, may be empty.
    :raises UsageError: the library is not installed, or the environment lacks what it needs.
    """
    try:
        from obstore.store import AzureStore, GCSStore, S3Store  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            f"{scheme}:// needs a library that is not here: pip install 'checkpoint-run[cloud]'", Kind.STORE_LIBRARY
        ) from None
    makers: dict[str, Callable[..., Any]] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}
    try:
        opened: Bucket = makers[scheme](
            bucket,
            prefix=prefix or None,
            # Not as client_options: those put aside what the environment says of the client.
            config={"timeout": f"{_REQUEST_SECONDS}s", "connect_timeout": "10s"},
            retry_config={"max_retries": 6, "retry_timeout": timedelta(seconds=_REQUEST_SECONDS)},
        )
    except Exception as error:
        raise UsageError(
            f"{scheme}://{bucket}: the environment does not give access: {reason(error)}", Kind.STORE_ACCESS
        ) from error
    return opened


def reason(error: BaseException) -> str:
    """What the library says without addresses, which may be signed, without tags and what is for its makers."""
    text = str(error).partition("\n\nDebug source:")[0]
    text = re.sub(r"<[^<>]*>", " ", re.sub(r"https?://\S+", "…", text))
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
