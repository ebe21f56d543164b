"""Connection pools: urllib3 with the request target sent byte for byte, and the proxy the environment names.

A signed URL is only valid as it was signed, and urllib3 normalises what it sends (``%2b`` becomes ``%2B``), so the
raw target travels beside the request in a header that never leaves the process.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

__all__ = ["TARGET_HEADER", "make_pool", "proxy_for", "raw_target"]

TARGET_HEADER = "x-raw-target"
"""Names the target of a request towards the pools made here; taken off before anything is sent."""


class _ExactHTTPConnection(HTTPConnection):
    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **options: Any) -> None:
        url, headers = _take_target(url, headers)
        super().request(method, url, body, headers, **options)


class _ExactHTTPSConnection(HTTPSConnection):
    def request(self, method: str, url: str, body: Any = None, headers: Any = None, **options: Any) -> None:
        url, headers = _take_target(url, headers)
        super().request(method, url, body, headers, **options)


class _ExactHTTPPool(HTTPConnectionPool):
    ConnectionCls = _ExactHTTPConnection


class _ExactHTTPSPool(HTTPSConnectionPool):
    ConnectionCls = _ExactHTTPSConnection


def _take_target(url: str, headers: Mapping[str, str] | None) -> tuple[str, dict[str, str]]:
    rest = dict(headers or {})
    return rest.pop(TARGET_HEADER, url), rest


def raw_target(url: str, *, absolute: bool) -> str:
    """The target of a request for ``url`` with path and query exactly as they stand there.

    :param absolute: the request goes to an HTTP proxy, which wants the whole URL.
    """
    url = url.split("#", 1)[0]
    if absolute:
        return url
    rest = url.split("://", 1)[1]
    start = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    target = rest[start:]
    return target if target.startswith("/") else f"/{target}"


def make_pool(proxy: str | None, *, size: int) -> urllib3.PoolManager:
    """A pool manager that goes through ``proxy``, or straight where there is none.

    :param size: connections kept per host.
    """
    pool: urllib3.PoolManager
    if proxy is None:
        pool = urllib3.PoolManager(maxsize=size)
    else:
        parts = urlsplit(proxy)
        auth = None
        if parts.username is not None:
            auth = urllib3.make_headers(
                proxy_basic_auth=f"{unquote(parts.username)}:{unquote(parts.password or '')}",
            )
            proxy = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        pool = urllib3.ProxyManager(proxy, maxsize=size, proxy_headers=auth)
    pool.pool_classes_by_scheme = {"http": _ExactHTTPPool, "https": _ExactHTTPSPool}
    return pool


def proxy_for(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy that ``env`` names for ``url``, by the rules of the official toolkit.

    ``HTTPS_PROXY`` and ``HTTP_PROXY`` (lower case first) by the URL's scheme; never for loopback addresses nor for
    what ``NO_PROXY`` lists: ``*``, names with all their subdomains, each with or without a port, and networks.
    """
    parts = urlsplit(url)
    name = f"{parts.scheme}_proxy"
    proxy = env.get(name) or env.get(name.upper()) or ""
    host = (parts.hostname or "").lower()
    if not proxy or not host or _is_loopback(host):
        return None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    for entry in (env.get("no_proxy") or env.get("NO_PROXY") or "").lower().split(","):
        if _excludes(entry.strip(), host, port):
            return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address.is_loopback if address else host == "localhost" or host.endswith(".localhost")


def _excludes(entry: str, host: str, port: int) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    address = _address(host)
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, colon, digits = entry.rpartition(":")
    if colon and digits.isdigit() and ":" not in name:
        if int(digits) != port:
            return False
        entry = name
    entry = entry.removeprefix("*").lstrip(".").strip("[]")
    return host == entry or host.endswith(f".{entry}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
