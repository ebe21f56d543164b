"""The services at the far end of the line: GitHub's on this machine, S3 twice, Azurite where it is installed."""

from __future__ import annotations

import base64
import os
import secrets
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import urllib3

from tests.action.manifest import ROOT
from tests.actions_service import ActionsService, make_token
from tests.peers.azurite.server import ACCOUNT, CONTAINER, Azurite, _address
from tests.store.places import _server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["ACTIONS", "Far", "Servers", "runtime_of", "servers"]

ACTIONS: Mapping[str, tuple[str, str]] = {
    "Actions cache v2": ("v2", "cache"),
    "Actions cache v1": ("v1", "cache"),
    "Actions artifacts": ("v2", "artifact"),
    "Actions cache, else artifacts": ("v2", "auto"),
}
"""What the action keeps steps in: the services that it is offered, and the input ``store``."""

_BUCKET = "bucket"
_SIGNATURE = "SiGnAtUrE-of-the-token"


@dataclass(frozen=True)
class Far:
    """A service, and how a client is told of it.

    :ivar origin: where it is.
    :ivar env: variables for the program, with ``{}`` where the address goes.
    :ivar url: of a store in it, with ``{}`` for a prefix.
    :ivar secret: texts that no output may show.
    """

    origin: str
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    secret: tuple[str, ...] = ()

    def environment(self, address: str) -> dict[str, str]:
        """The variables with an address."""
        return {name: value.format(address) for name, value in self.env.items()}


class Servers:
    """What runs for as long as the torture does; :func:`servers` starts them.

    :ivar stores: object stores by name.
    """

    def __init__(self, stores: Mapping[str, Far]) -> None:
        self.stores = stores

    @property
    def kinds(self) -> list[str]:
        """Names of all that can be tried."""
        return [*ACTIONS, *self.stores]


def runtime_of(service: ActionsService, kind: str, address: str, attempt: int) -> tuple[dict[str, str], str]:
    """What the runner hands over for one attempt when the service is reached at an address, and the token in it."""
    token = make_token(run=f"run-77.{attempt}", signature=_SIGNATURE)
    offered = service.env(ACTIONS[kind][0], token=token)
    return {name: value.replace(service.origin, address) for name, value in offered.items()}, token


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    """Start what is installed here, and end it."""
    with ExitStack() as stack:
        stores = {}
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
        says = rb"Running on (http://[0-9.:]+)"
        origin = stack.enter_context(_server(command, says, _made(folder / "moto")))
        assert urllib3.request("PUT", f"{origin}/{_BUCKET}").status == 200
        stores["S3 (moto)"] = _s3(origin, "m" * 20, "n" * 40)
        beside = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
        if executable := shutil.which("rclone", path=beside):
            _made(folder / "rclone" / _BUCKET)
            user, secret = secrets.token_hex(10), secrets.token_hex(20)
            command = [executable, "serve", "s3", "--auth-key", f"{user},{secret}", "--addr", "127.0.0.1:0"]
            command += ["--config", os.devnull, str(folder / "rclone")]
            says = rb"Starting s3 server on \[(http://[0-9.:]+)"
            stores["S3 (rclone)"] = _s3(stack.enter_context(_server(command, says, folder)), user, secret)
        if (main := _azurite()) is not None and (node := shutil.which("node")):
            stores["Azure (Azurite)"] = stack.enter_context(_emulated(node, main, _made(folder / "azurite")))
        yield Servers(stores)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _s3(origin: str, user: str, secret: str) -> Far:
    env = {
        "AWS_ACCESS_KEY_ID": user,
        "AWS_SECRET_ACCESS_KEY": secret,
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "{}",
        "AWS_ALLOW_HTTP": "true",
    }
    return Far(origin, env, f"s3://{_BUCKET}/{{}}", (secret,))


def _azurite() -> Path | None:
    """The emulator where the tests of its protocol have installed it."""
    found = ROOT.glob(".pytest_cache/d/npm-azurite/*/node_modules/azurite/dist/src/blob/main.js")
    return max(found, default=None)


@contextmanager
def _emulated(node: str, main: Path, cwd: Path) -> Iterator[Far]:
    key = os.urandom(32)
    options = ["--blobHost", "127.0.0.1", "--blobPort", "0", "--silent"]
    options += ["--disableTelemetry", "--inMemoryPersistence", "--skipApiVersionCheck"]
    process = subprocess.Popen(
        [node, str(main), *options],
        env={**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{base64.b64encode(key).decode()}"},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        azurite = Azurite(_address(process), key)
        env = {**azurite.env, "AZURE_STORAGE_ENDPOINT": f"{{}}/{ACCOUNT}"}
        yield Far(azurite.origin, env, f"az://{CONTAINER}/{{}}", (azurite.env["AZURE_STORAGE_ACCOUNT_KEY"],))
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
