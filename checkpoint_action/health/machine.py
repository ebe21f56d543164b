"""The programs, libraries and settings of this machine."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from checkpoint_action.errors import BundleError, Kind
from checkpoint_action.health.finding import Finding, good, problem, warning

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

__all__ = ["git", "proxies", "python", "shells", "temporary_folder", "terminal", "yaml", "zstandard"]

_NEWEST = (3, 14)
_SECONDS = 10  # for a program to say its version
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY")


def python(version: tuple[int, ...] = sys.version_info[:3]) -> Finding:
    """The Python that runs this."""
    found = f"{platform.python_implementation()} {'.'.join(map(str, version))} ({sys.executable})"
    if version[:2] < (3, 10):
        return problem(
            "python", found, "checkpoint-run needs Python 3.10 or newer: install one, and start it with that"
        )
    if version[:2] > _NEWEST:
        return warning(
            "python", found, "newer than any that checkpoint-run was tested with: should it misbehave, use Python 3.14"
        )
    return good("python", found)


def shells(path: str | None) -> Finding:
    """The shells that steps may ask for.

    :param path: the ``PATH`` to look in.
    """
    where = {name: shutil.which(name, path=path) for name in ("bash", "sh", "pwsh")}
    where["python"] = shutil.which("python", path=path) or shutil.which("python3", path=path)
    found = ", ".join(name for name, there in where.items() if there) or "none"
    if sys.platform != "win32" and where["sh"] is None:
        remedy = "steps cannot start: add the folder of sh (mostly /bin) to PATH"
        return problem("shells", f"{found}; no sh", remedy, Kind.NO_SHELL)
    bash = where["bash"]
    if bash is None:
        remedy = "job files use bash where they name no shell: install bash, or write 'shell: sh' into the job file"
        return warning("shells", f"{found}; no bash", remedy)
    if sys.platform == "win32" and Path(bash).parent.name.lower() == "system32":
        remedy = "put the folder with the bash of Git for Windows before System32 on PATH"
        return warning("shells", f"{found}; this bash is the one of WSL, which sees other paths", remedy)
    return good("shells", found)


def git(path: str | None) -> Finding:
    """Git, which only some things need.

    :param path: the ``PATH`` to look in.
    """
    program = shutil.which("git", path=path)
    if program is None:
        remedy = "needed only for 'scope: content' with steps that list no 'inputs': install git if you use that"
        return warning("git", "not found", remedy)
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return warning("git", f"{program} does not run", "run 'git --version' to see why, and install git anew")
    return good("git", said.removeprefix("git version "))


def zstandard() -> Finding:
    """Zstandard, which stores need; tried once."""
    from checkpoint_action.store import zstd  # noqa: PLC0415  # only when it is asked for

    text = b"checkpoint " * 20
    try:
        whole = zstd.decompress(zstd.compress(text), len(text))
    except BundleError as error:
        return warning(
            "zstandard",
            str(error).partition(":")[0],
            "needed only to keep steps in a store: pip install backports.zstd",
        )
    if whole != text:
        remedy = (
            "its library is broken: pip install --force-reinstall backports.zstd (from Python 3.14 on: Python itself)"
        )
        return problem("zstandard", "what it packs and unpacks again is not the same", remedy)
    return good("zstandard", "works")


def yaml() -> Finding:
    """The YAML library, which job files need."""
    try:
        import yaml as library  # noqa: PLC0415  # only when it is asked for
    except ImportError as error:
        remedy = "job files cannot be read: pip install pyyaml (jobs that are given with --step work without it)"
        return problem("yaml", f"PyYAML is not there ({error})", remedy)
    if not hasattr(library, "CSafeLoader"):
        remedy = "job files of thousands of lines load slowly, all else is well: pip install --force-reinstall pyyaml"
        return warning("yaml", f"PyYAML {library.__version__} without its C loader", remedy)
    return good("yaml", f"PyYAML {library.__version__} with its C loader")


def temporary_folder() -> Finding:
    """Where scripts of steps are put for as long as they run."""
    folder = ""
    try:
        folder = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(prefix="checkpoint-run-doctor-", dir=folder) as file:
            file.write(b"x" * 4096)
            file.flush()
    except OSError as error:
        found = f"{folder or 'none'}: cannot be written ({error.strerror or error})"
        return problem(
            "temporary folder", found, "steps cannot start: set TMPDIR to a folder with room that can be written"
        )
    return good("temporary folder", folder)


def terminal(out: TextIO, term: str | None) -> Finding:
    """Where the output goes, and whether it can show all characters.

    :param term: the variable ``TERM``.
    """
    kind = "a terminal" if out.isatty() else "no terminal"
    encoding = (out.encoding or "ascii").lower()
    found = f"{kind}, {encoding}" + (f", TERM={term}" if term and out.isatty() else "")
    if encoding.replace("-", "").replace("_", "") != "utf8":
        hint = "it only looks odd, all else is well: set PYTHONUTF8=1, or a UTF-8 locale such as LANG=C.UTF-8"
        return warning("terminal", f"{found}: some characters show as ?", hint)
    return good("terminal", found)


def proxies(env: Mapping[str, str]) -> Finding:
    """Proxies for the network, without what is secret in them."""
    found = {}
    for name in _PROXIES:
        text = env.get(name.lower()) or env.get(name) or ""
        if not text:
            continue
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            host, port = parts.hostname, parts.port
        except ValueError:
            host, port = None, None
        if not host:
            return warning("proxy", f"{name} is set, but is no address", f"set {name}=http://HOST:PORT, or unset it")
        if parts.scheme not in ("http", "https"):
            found_it = f"{name} names a {parts.scheme} proxy, and only http and https proxies can be used"
            return warning("proxy", found_it, f"set {name}=http://HOST:PORT, or unset it; stores are not reached so")
        found[name] = f"{host}:{port}" if port else host
    if not found:
        return good("proxy", "none")
    but = env.get("no_proxy") or env.get("NO_PROXY")
    return good(
        "proxy", ", ".join(f"{name} {where}" for name, where in found.items()) + (f", not for {but}" if but else "")
    )
