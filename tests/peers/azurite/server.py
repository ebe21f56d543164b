"""The emulator as a process, and the signatures that it checks (shared access signatures, version 2021-12-02)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import subprocess
import threading
from contextlib import suppress
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
import urllib3

from tests.peers.npm import npm_packages

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ACCOUNT", "CONTAINER", "Azurite", "azurite"]

ACCOUNT = "testaccount1"
CONTAINER = "cache"
_VERSION = "2021-12-02"
_STARTS_WITHIN = 60.0


class Azurite:
    """A running emulator with one container.

    :param origin: its address.
    :param key: the account's key.
    """

    def __init__(self, origin: str, key: bytes) -> None:
        self.origin = origin
        self._key = key
        self._create_container()

    @property
    def env(self) -> dict[str, str]:
        """Variables by which a client finds the account."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": base64.b64encode(self._key).decode(),
            "AZURE_STORAGE_ENDPOINT": f"{self.origin}/{ACCOUNT}",
            "AZURE_ALLOW_HTTP": "true",
        }

    def sign(self, blob: str, permissions: str, seconds: float = 3600) -> str:
        """A URL for a blob.

        :param permissions: ``r`` reads, ``cw`` creates and writes.
        :param seconds: from now until it expires; whole ones count.
        """
        expiry = (datetime.now(timezone.utc) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
        resource = f"/blob/{ACCOUNT}/{CONTAINER}/{blob}"
        fields = [permissions, "", expiry, resource, "", "", "", _VERSION, "b", *[""] * 7]
        query = {"sv": _VERSION, "se": expiry, "sr": "b", "sp": permissions, "sig": self._signature(fields)}
        return f"{self.origin}/{ACCOUNT}/{CONTAINER}/{blob}?{urlencode(query)}"

    def _create_container(self) -> None:
        expiry = (datetime.now(timezone.utc) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        fields = [ACCOUNT, "cw", "b", "c", "", expiry, "", "", _VERSION, "", ""]
        query = {"sv": _VERSION, "ss": "b", "srt": "c", "sp": "cw", "se": expiry, "sig": self._signature(fields)}
        url = f"{self.origin}/{ACCOUNT}/{CONTAINER}?restype=container&{urlencode(query)}"
        answer = urllib3.request("PUT", url, headers={"x-ms-version": _VERSION})
        assert answer.status == 201, answer.data

    def _signature(self, fields: list[str]) -> str:
        return base64.b64encode(hmac.digest(self._key, "\n".join(fields).encode(), hashlib.sha256)).decode()


@pytest.fixture(scope="session")
def azurite(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    """Return the pinned emulator, listening on a free port of this machine with all it holds in memory."""
    node, folder = npm_packages(request, tmp_path_factory, Path(__file__).parent, "npm-azurite")
    key = os.urandom(32)
    main = folder / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    options = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--silent"]
    options += ["--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck"]
    process = subprocess.Popen(
        [node, str(main), *options],
        env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{base64.b64encode(key).decode()}"},
        cwd=tmp_path_factory.mktemp("azurite"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        yield Azurite(_address(process), key)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def _address(process: subprocess.Popen[bytes]) -> str:
    """What the process says it listens on."""
    said: list[bytes] = []
    assert process.stdout is not None
    late = threading.Timer(_STARTS_WITHIN, process.kill)
    late.start()
    try:
        for line in process.stdout:
            said.append(line)
            match = re.search(rb"successfully listens on (http://[0-9.:]+)", line)
            if match:
                return match[1].decode()
    finally:
        late.cancel()
    raise AssertionError(b"".join(said).decode("utf-8", "replace"))
