"""A store as a person names it: by a URL."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from checkpoint_action.errors import Kind, UsageError
from checkpoint_action.jobfile.values import nearest
from checkpoint_action.store.buckets import open_bucket
from checkpoint_action.store.folder import FolderStore
from checkpoint_action.store.layout import age_in
from checkpoint_action.store.objects import ObjectStore

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SCHEMES", "patterns_of", "store_for"]

SCHEMES = ("file", "s3", "gs", "az")
_FORMS = "file:///folder, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
_OTHER_NAMES = {
    "s3a": "s3", "s3n": "s3", "r2": "s3", "minio": "s3",
    "gcs": "gs", "google": "gs",
    "azure": "az", "abfs": "az", "abfss": "az", "adl": "az", "wasb": "az", "wasbs": "az",
    "folder": "file", "dir": "file", "local": "file",
}  # fmt: skip
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")
_PREFIX = re.compile(r"[A-Za-z0-9._=+-]+(/[A-Za-z0-9._=+-]+)*")


def store_for(url: str, *, order: Callable[[str], tuple[object, ...] | None] = age_in) -> FolderStore | ObjectStore:
    """The store at a URL. Nothing is asked of it yet; credentials come from the library's usual environment.

    :param order: what a key tells of its age, the greater the newer, or ``None``.
    :raises UsageError: it is no URL of a store, or what it needs is not installed.
    """
    scheme, colon, rest = url.partition("://")
    if not colon:
        raise UsageError(f"store: {_shown(url)} is no URL: write {_FORMS}", Kind.STORE_URL)
    if scheme not in SCHEMES:
        meant = _OTHER_NAMES.get(scheme.lower())
        hint = f"; did you mean '{meant}'?" if meant else nearest(scheme, SCHEMES)
        raise UsageError(
            f"store: {_shown(url)}: there are no stores of kind '{scheme}'{hint or f': write {_FORMS}'}", Kind.STORE_URL
        )
    if "@" in rest.partition("/")[0]:
        raise UsageError(
            f"store: {scheme}://…: a user or key has no place in the URL: set it in the environment", Kind.STORE_URL
        )
    if "?" in rest or "#" in rest:
        raise UsageError(
            f"store: {_shown(url)}: '?' and '#' have no meaning in it (in a folder's name: %3F, %23)", Kind.STORE_URL
        )
    if scheme == "file":
        return FolderStore(_folder(url), order=order)
    bucket, _, prefix = rest.partition("/")
    prefix = prefix.strip("/")
    if not _BUCKET.fullmatch(bucket):
        raise UsageError(
            f"store: {_shown(url)}: '{bucket}' cannot be a bucket: write {scheme}://bucket/prefix", Kind.STORE_URL
        )
    if prefix and (not _PREFIX.fullmatch(prefix) or {".", ".."} & set(prefix.split("/"))):
        raise UsageError(
            f"store: {_shown(url)}: a prefix has letters, digits and '._=+-' only, in parts with '/' between",
            Kind.STORE_URL,
        )
    whole = f"{scheme}://{bucket}/{prefix}" if prefix else f"{scheme}://{bucket}"
    return ObjectStore(open_bucket(scheme, bucket, prefix), whole, order=order)


def patterns_of(store: object, workspace: Path) -> tuple[str, ...]:
    """Patterns of what is never a step's though it lies in a workspace: a store that is a folder in it."""
    if not isinstance(store, FolderStore):
        return ()
    real = os.path.realpath(workspace)
    inside = os.path.relpath(os.path.realpath(store.root), real).replace(os.sep, "/")
    if inside == os.curdir:
        return ("/cpr1-*",)
    return () if inside.split("/")[0] == os.pardir else ("/" + re.sub(r"[*?\[]", r"[\g<0>]", inside),)


def _folder(url: str) -> Path:
    try:
        parts = urlsplit(url)
    except ValueError:  # half of an address in brackets
        raise UsageError(
            f"store: {_shown(url)}: a folder's whole path is needed, after three slashes: file:///…", Kind.STORE_URL
        ) from None
    path = unquote(parts.path)
    if parts.netloc not in ("", "localhost"):
        if sys.platform == "win32":
            return Path(rf"\\{parts.netloc}{path}")
        raise UsageError(
            f"store: {_shown(url)}: a folder's whole path is needed, after three slashes: file:///…", Kind.STORE_URL
        )
    if "\0" in path:
        raise UsageError(f"store: {_shown(url)}: no folder's name has a zero byte", Kind.STORE_URL)
    if sys.platform == "win32":
        local = PureWindowsPath(path.lstrip("/"))
        if not local.is_absolute():
            raise UsageError(
                f"store: {_shown(url)}: a folder's whole path is needed: file:///C:/folder", Kind.STORE_URL
            )
        return Path(local)
    if not path.strip("/"):
        raise UsageError(f"store: {_shown(url)}: a folder's whole path is needed: file:///folder", Kind.STORE_URL)
    return Path("/" + path.strip("/"))


def _shown(url: str) -> str:
    """The URL as a message may show it: in one line, and without what may be a secret in it."""
    shown = re.sub(r"//[^/@]*@", "//…@", url.partition("?")[0])
    return repr(shown if len(shown) <= 200 else f"{shown[:200]}…")
