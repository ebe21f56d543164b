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

from checkpoint_action.errors import BundleError
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
        return problem("python", found, "use Python 3.10 or newer")
    if version[:2] > _NEWEST:
        return warning("python", found, "newer than any that was tested; with odd errors try 3.14")
    return good("python", found)


def shells(path: str | None) -> Finding:
    """The shells that steps may ask for.

    :param path: the ``PATH`` to look in.
    """
    where = {name: shutil.which(name, path=path) for name in ("bash", "sh", "pwsh")}
    where["python"] = shutil.which("python", path=path) or shutil.which("python3", path=path)
    found = ", ".join(name for name, there in where.items() if there) or "none"
    if sys.platform != "win32" and where["sh"] is None:
        return problem("shells", found, "install sh: --step commands need it; is PATH right?")
    bash = where["bash"]
    if bash is None:
        return warning("shells", found, "job files run in bash by default: install it, or set 'shell: sh' (or pwsh)")
    if sys.platform == "win32" and Path(bash).parent.name.lower() == "system32":
        return warning("shells", f"{found}; bash is that of WSL", "put the bash of Git for Windows first on PATH")
    return good("shells", found)


def git(path: str | None) -> Finding:
    """Git, which only some things need.

    :param path: the ``PATH`` to look in.
    """
    program = shutil.which("git", path=path)
    if program is None:
        return warning("git", "not found", "install it to use scope 'content' without 'inputs'; nothing else needs it")
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return warning("git", f"{program} does not run", "repair or remove it")
    return good("git", said.removeprefix("git version "))


def zstandard() -> Finding:
    """Zstandard, which stores need; tried once."""
    from checkpoint_action.store import zstd  # noqa: PLC0415  # only when it is asked for

    text = b"checkpoint " * 20
    try:
        whole = zstd.decompress(zstd.compress(text), len(text))
    except BundleError as error:
        return warning("zstandard", str(error).partition(":")[0], "pip install backports.zstd, to use a store")
    if whole != text:
        return problem("zstandard", "gives back other bytes than it got", "install backports.zstd anew")
    return good("zstandard", "works")


def yaml() -> Finding:
    """The YAML library, which job files need."""
    try:
        import yaml as library  # noqa: PLC0415  # only when it is asked for
    except ImportError as error:
        return problem("yaml", f"not there ({error})", "pip install pyyaml; only --step works without it")
    if not hasattr(library, "CSafeLoader"):
        return warning("yaml", f"PyYAML {library.__version__} without its C loader", "large job files load slowly")
    return good("yaml", f"PyYAML {library.__version__} with its C loader")


def temporary_folder() -> Finding:
    """Where scripts of steps are put for as long as they run."""
    try:
        folder = tempfile.gettempdir()
        with tempfile.NamedTemporaryFile(prefix="checkpoint-run-doctor-", dir=folder) as file:
            file.write(b"x" * 4096)
            file.flush()
    except OSError as error:
        return problem("temporary folder", error.strerror or str(error), "set TMPDIR to a folder that can be written")
    return good("temporary folder", folder)


def terminal(out: TextIO, term: str | None) -> Finding:
    """Where the output goes, and whether it can show all characters.

    :param term: the variable ``TERM``.
    """
    kind = "a terminal" if out.isatty() else "no terminal"
    encoding = (out.encoding or "ascii").lower()
    found = f"{kind}, {encoding}" + (f", TERM={term}" if term and out.isatty() else "")
    if encoding.replace("-", "").replace("_", "") != "utf8":
        hint = "set PYTHONUTF8=1 (or a UTF-8 locale) to see all characters; nothing else suffers"
        return warning("terminal", found, hint)
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
            return warning("proxy", f"{name} is no address", f"write {name}=http://HOST:PORT")
        if parts.scheme not in ("http", "https"):
            return warning("proxy", f"{name} is for {parts.scheme}", "only http and https proxies are used")
        found[name] = f"{host}:{port}" if port else host
    if not found:
        return good("proxy", "none")
    but = env.get("no_proxy") or env.get("NO_PROXY")
    return good(
        "proxy", ", ".join(f"{name} {where}" for name, where in found.items()) + (f", not for {but}" if but else "")
    )
