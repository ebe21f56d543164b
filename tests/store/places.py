"""Stores of every kind that exists, each with its real server where it has one."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import urllib3

from tests.peers.azurite.server import CONTAINER
from tests.peers.installation import missing_peer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.peers.azurite.server import Azurite

__all__ = ["KINDS", "Place", "make_place", "moto", "rclone"]

KINDS = ("folder", "moto", "rclone", "azurite")
_BUCKET = "bucket"
_STARTS_WITHIN = 60.0


@dataclass(frozen=True)
class Place:
    """An empty store.

    :param env: variables by which a client finds it.
    """

    kind: str
    url: str
    env: Mapping[str, str] = field(default_factory=dict)


def make_place(kind: str, request: pytest.FixtureRequest, folder: Path) -> Place:
    """A store that nothing else uses."""
    prefix = f"of-{secrets.token_hex(8)}/deep"
    if kind == "folder":
        return Place(kind, (folder / "store").as_uri())
    if kind == "azurite":
        azurite: Azurite = request.getfixturevalue("azurite")
        return Place(kind, f"az://{CONTAINER}/{prefix}", azurite.env)
    return Place(kind, f"s3://{_BUCKET}/{prefix}", request.getfixturevalue(kind))


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return what finds an S3 server that keeps all in memory and heeds conditions."""
    pytest.importorskip("moto.server", reason="moto[server] is not installed")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    with _server(command, rb"Running on (http://[0-9.:]+)", tmp_path_factory.mktemp("moto")) as origin:
        assert urllib3.request("PUT", f"{origin}/{_BUCKET}").status == 200
        yield _s3(origin, "m" * 20, "n" * 40)


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Return what finds rclone's S3 server, which checks signatures and keeps all in files."""
    beside = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    executable = shutil.which("rclone", path=beside)
    if executable is None:
        missing_peer("rclone is not installed")
    folder = tmp_path_factory.mktemp("rclone")
    (folder / _BUCKET).mkdir()
    user, secret = secrets.token_hex(10), secrets.token_hex(20)
    command = [executable, "serve", "s3", "--auth-key", f"{user},{secret}", "--addr", "127.0.0.1:0"]
    command += ["--config", os.devnull, str(folder)]
    with _server(command, rb"Starting s3 server on \[(http://[0-9.:]+)", tmp_path_factory.mktemp("cwd")) as origin:
        yield _s3(origin, user, secret)


def _s3(origin: str, user: str, secret: str) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": user,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": origin,
        "AWS_ALLOW_HTTP": "true",
    }


@contextmanager
def _server(command: Sequence[str], says: bytes, cwd: Path) -> Iterator[str]:
    """A server's address, as it says it."""
    process = subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    said: list[bytes] = []
    late = threading.Timer(_STARTS_WITHIN, process.kill)
    late.start()
    try:
        origin = ""
        for line in process.stdout:
            said.append(line)
            if match := re.search(says, line):
                origin = match[1].decode()
                break
        late.cancel()
        assert origin, b"".join(said).decode("utf-8", "replace")
        drain = threading.Thread(target=_read_all, args=[process.stdout], daemon=True)  # a full pipe would stop it
        drain.start()
        yield origin
    finally:
        late.cancel()
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()
        process.stdout.close()


def _read_all(stream: object) -> None:
    with suppress(ValueError, OSError):
        for _line in stream:  # type: ignore[attr-defined]
            pass
