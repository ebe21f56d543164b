"""The YAML server that editors start, spoken to as an editor speaks (LSP over its standard streams)."""

from __future__ import annotations

import json
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Editor", "editor"]

_LONGEST = 120  # seconds for an answer


class Editor:
    """Opens files and reads what the server makes of them."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def start(self, folder: Path) -> None:
        """Begin the conversation."""
        self._ask("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": {}})
        self._tell("initialized", {})
        self._tell("workspace/didChangeConfiguration", {"settings": {"yaml": {"validate": True, "hover": True}}})

    def open(self, path: Path) -> list[dict[str, Any]]:
        """What is found wrong in a file."""
        item = {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": path.read_text()}
        self._tell("textDocument/didOpen", {"textDocument": item})
        while True:
            told = self._read()
            if told.get("method") == "textDocument/publishDiagnostics" and told["params"]["uri"] == path.as_uri():
                found: list[dict[str, Any]] = told["params"]["diagnostics"]
                return found

    def at(self, method: str, path: Path, line: int, character: int) -> Any:
        """What the server says of a place, as ``hover`` or ``completion``; line and character from 0."""
        where = {"textDocument": {"uri": path.as_uri()}, "position": {"line": line, "character": character}}
        return self._ask(f"textDocument/{method}", where)

    def _ask(self, method: str, params: object) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            told = self._read()
            if told.get("id") == self._number and "method" not in told:
                return told["result"]

    def _tell(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert length, "the server has ended"
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        if "method" in message and "id" in message:  # a question of its own: it gets no answer worth having
            asked = message["params"].get("items", []) if message["method"] == "workspace/configuration" else []
            self._send({"id": message["id"], "result": [None] * len(asked)})
        return message


@contextmanager
def editor(node: str, packages: Path, folder: Path) -> Iterator[Editor]:
    """A server for the files of a folder.

    :param node: the program.
    :param packages: where the server is installed.
    """
    program = packages / "node_modules/yaml-language-server/bin/yaml-language-server"
    if not program.exists():
        pytest.fail(f"{program} is missing")
    process = subprocess.Popen([node, str(program), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    watch = threading.Timer(_LONGEST, process.kill)  # ends a wait for an answer that never comes
    watch.start()
    try:
        found = Editor(process)
        found.start(folder)
        yield found
    finally:
        watch.cancel()
        process.kill()
        process.communicate()
