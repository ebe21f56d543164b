"""Workflow commands: the ``::name key=value::text`` lines that a runner reads from stdout.

Each goes out in one write and at once, as UTF-8; bytes that were never text (surrogate escapes) come out as they were.
"""

from __future__ import annotations

import io
import sys
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "add_mask",
    "commands_stopped",
    "debug",
    "encode",
    "end_group",
    "error",
    "escape_data",
    "escape_property",
    "group",
    "info",
    "issue_command",
    "notice",
    "resume_commands",
    "set_command_echo",
    "set_secret",
    "start_group",
    "stop_commands",
    "warning",
    "write_line",
]

_lock = threading.Lock()


def escape_data(text: str) -> str:
    """Text as it stands behind the second ``::`` of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Text as it stands in a property of a command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def issue_command(name: str, message: str = "", properties: Mapping[str, object] | None = None) -> None:
    """Print a workflow command. Properties that are ``None`` or empty are left out."""
    listed = ",".join(
        f"{key}={escape_property(str(value))}"
        for key, value in (properties or {}).items()
        if value is not None and value != ""
    )
    write_line(f"::{name}{' ' if listed else ''}{listed}::{escape_data(message)}")


def write_line(text: str) -> None:
    """Print a line, unchanged."""
    with _lock:
        out = sys.stdout
        data = encode(f"{text}\n")
        buffer = getattr(out, "buffer", None)
        if isinstance(buffer, (io.RawIOBase, io.BufferedIOBase)):
            out.flush()
            buffer.write(data)
            buffer.flush()
        else:
            out.write(data.decode("utf-8", "replace"))
            out.flush()


def encode(text: str) -> bytes:
    """UTF-8; surrogate escapes become the bytes they stand for, other lone surrogates a question mark."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def info(message: str) -> None:
    """Print a line for people. What it says is read as a command if it looks like one."""
    write_line(message)


def debug(message: str) -> None:
    """Print a line that only shows with debug logging."""
    issue_command("debug", message)


def notice(
    message: str | BaseException,
    *,
    title: str | None = None,
    file: str | None = None,
    start_line: int | None = None,
    end_line: int | None = None,
    start_column: int | None = None,
    end_column: int | None = None,
) -> None:
    """Make a notice annotation. The runner keeps 10 of each kind a step, and 4096 characters of each.

    :param message: an exception is told as ``Error: <its text>``.
    :param file: path in the repository, with lines and columns from 1.
    """
    issue_command("notice", _said(message), _place(title, file, start_line, end_line, start_column, end_column))


def warning(
    message: str | BaseException,
    *,
    title: str | None = None,
    file: str | None = None,
    start_line: int | None = None,
    end_line: int | None = None,
    start_column: int | None = None,
    end_column: int | None = None,
) -> None:
    """Make a warning annotation; as :func:`notice`."""
    issue_command("warning", _said(message), _place(title, file, start_line, end_line, start_column, end_column))


def error(
    message: str | BaseException,
    *,
    title: str | None = None,
    file: str | None = None,
    start_line: int | None = None,
    end_line: int | None = None,
    start_column: int | None = None,
    end_column: int | None = None,
) -> None:
    """Make an error annotation; as :func:`notice`. The step's result stays as it is."""
    issue_command("error", _said(message), _place(title, file, start_line, end_line, start_column, end_column))


def _said(message: str | BaseException) -> str:
    return message if isinstance(message, str) else f"Error: {message}"


def _place(*values: object) -> dict[str, object]:
    return dict(zip(("title", "file", "line", "endLine", "col", "endColumn"), values, strict=True))


def start_group(name: str) -> None:
    """Begin a part of the log that can be folded. Groups do not nest."""
    issue_command("group", name)


def end_group() -> None:
    """End the part of the log that :func:`start_group` began."""
    issue_command("endgroup")


@contextmanager
def group(name: str) -> Iterator[None]:
    """Fold what is printed inside."""
    start_group(name)
    try:
        yield
    finally:
        end_group()


def set_secret(value: str) -> None:
    """Have the runner mask ``value``, and each line of it, in all that is printed from now on."""
    if value:
        issue_command("add-mask", value)


add_mask = set_secret


def set_command_echo(enabled: bool) -> None:
    """Have commands shown in the log, or not."""
    issue_command("echo", "on" if enabled else "off")


def stop_commands() -> str:
    """Have the runner take no more commands, and return the token that :func:`resume_commands` needs."""
    token = f"stop-{uuid.uuid4()}"
    issue_command("stop-commands", token)
    return token


def resume_commands(token: str) -> None:
    """Have the runner take commands again."""
    issue_command(token)


@contextmanager
def commands_stopped() -> Iterator[str]:
    """Fence output that is not trusted: what is printed inside is never taken as a command."""
    token = stop_commands()
    try:
        yield token
    finally:
        resume_commands(token)
