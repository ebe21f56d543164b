"""Installs the pinned dependencies beside the runner's other tools, once for each list, Python and platform.

Only what ``requirements.txt`` names by hash is used, never what happens to be installed already.
A folder comes into being by one rename, so a half-made one never counts and two jobs may install at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.compiling import compiling

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["BootstrapError", "ensure", "escape", "folder_name", "is_complete"]

PACKAGE = Path(__file__).resolve().parent.parent / "checkpoint_action"
INVENTORY = "checkpoint-run.json"
INSTALL_SECONDS = 300
UV_SECONDS = 60  # a uv that knows no mirror must not cost more: pip comes next
STALE_SECONDS = 24 * 3600
TAIL_LINES = 6
OPTIONS = ("--require-hashes", "--only-binary", ":all:", "--no-deps")
# Settings of the user's own installs that would bend ours. Index, proxy and certificate settings are kept.
UNWANTED = frozenset(
    {
        "PIP_CONSTRAINT",
        "PIP_NO_BINARY",
        "PIP_PREFIX",
        "PIP_REQUIREMENT",
        "PIP_ROOT",
        "PIP_TARGET",
        "PIP_USER",
        "UV_BUILD_CONSTRAINT",
        "UV_CONSTRAINT",
        "UV_EXCLUDE_NEWER",
        "UV_NO_BINARY",
        "UV_OVERRIDE",
        "UV_PYTHON",
        "UV_SYSTEM_PYTHON",
    }
)


class BootstrapError(Exception):
    """The dependencies could not be installed."""


def ensure(requirements: Path, env: Mapping[str, str]) -> Path:
    """Return a folder that holds the dependencies, and make it if need be.

    :param requirements: the list, with hashes.
    :param env: the environment; tells where the tool cache is.
    :returns: a folder for ``sys.path``.
    """
    name = folder_name(requirements.read_bytes())
    places = [Path(place) / "checkpoint-run" for place in candidates(env)]
    for place in places:
        if is_complete(place / name):
            return place / name
    for place in places:
        staging = make_staging(place, name)
        if staging is None:
            continue
        try:
            with compiling(PACKAGE):
                install(requirements, staging, env)
            if publish(staging / "packages", place / name):
                return place / name
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    tried = ", ".join(map(str, places)) or "RUNNER_TOOL_CACHE and RUNNER_TEMP are not set"
    raise BootstrapError(f"there is no folder to install the action's Python packages in ({tried})")


def candidates(env: Mapping[str, str]) -> Iterator[str]:
    """Name the folders to try, best first."""
    for name in ("RUNNER_TOOL_CACHE", "AGENT_TOOLSDIRECTORY", "RUNNER_TEMP"):
        if env.get(name):
            yield env[name]


def folder_name(requirements: bytes) -> str:
    """Tell list, Python and platform apart. One tool cache may serve the host and containers with another libc."""
    parts = (
        sys.implementation.cache_tag,
        sysconfig.get_config_var("EXT_SUFFIX"),
        sysconfig.get_platform(),
        *platform.libc_ver(),
    )
    text = "\0".join(str(part) for part in parts).encode()
    return hashlib.sha256(hashlib.sha256(requirements).digest() + text).hexdigest()[:20]


def is_complete(folder: Path) -> bool:
    """Tell whether every installed file is still there in full: a power loss or a clean-up may have taken some."""
    try:
        sizes = json.loads((folder / INVENTORY).read_bytes())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def make_staging(place: Path, name: str) -> Path | None:
    """Make a private folder beside the final one, and clear away those that dead installs left."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=place))
    except OSError:
        return None
    with suppress(OSError):
        for other in place.glob(".*-*"):
            if other.stat().st_mtime < time.time() - STALE_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
    return staging


def install(requirements: Path, staging: Path, env: Mapping[str, str]) -> None:
    """Install into ``staging/packages`` with uv where there is one, else with pip."""
    target = staging / "packages"
    # An empty file, because an empty value would leave a constraint of the configuration in force.
    no_constraints = staging / "constraints.txt"
    no_constraints.touch()
    child_env = {key: value for key, value in env.items() if key not in UNWANTED and not key.startswith("CPR_")}
    child_env.update(PIP_CONSTRAINT=str(no_constraints), PIP_REQUIRE_VIRTUALENV="0")
    report = "neither uv nor pip was found; install pip for this Python, or use actions/setup-python"
    for command, seconds in installers(env):
        shutil.rmtree(target, ignore_errors=True)
        line = [*command, "--target", str(target), *OPTIONS, "-r", str(requirements)]
        failure = run(line, staging, child_env, seconds)
        if failure is None:
            write_inventory(target)
            return
        report = failure
    raise BootstrapError(f"the action's Python packages could not be installed: {report}")


def installers(env: Mapping[str, str]) -> Iterator[tuple[list[str], float]]:
    """Name the commands that can install, and how long each may take."""
    uv = shutil.which("uv", path=env.get("PATH"))
    if uv is not None and Path(uv).is_absolute():  # else it lies in the current folder, which is the workspace
        yield [uv, "pip", "install", "--python", sys.executable, "--link-mode", "copy", "--color", "never"], UV_SECONDS
    pip = [sys.executable, "-E", *(["-m", "pip"] if has_pip() else map(str, bundled_pip()))]
    if len(pip) > 2:
        options = ["--no-user", "--no-compile", "--no-input", "--no-color", "--progress-bar", "off"]
        yield [*pip, "install", *options, "--disable-pip-version-check"], INSTALL_SECONDS


def has_pip() -> bool:
    """Tell whether this Python has pip. This process may not see it, so a new one is asked where it is not plain."""
    if Path(sysconfig.get_path("purelib"), "pip", "__main__.py").is_file():
        return True
    command = [sys.executable, "-E", "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('pip') is None)"]
    return subprocess.run(command, cwd=Path(sys.executable).parent, check=False).returncode == 0


def bundled_pip() -> Iterator[Path]:
    """Find the pip that comes with Python for new environments. It runs from its wheel; nothing need be installed."""
    spec = find_spec("ensurepip")
    folders = [sysconfig.get_config_var("WHEEL_PKG_DIR")]
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent / "_bundled")
    for folder in folders:
        wheels = sorted(Path(folder).glob("pip-*.whl")) if folder else []
        if wheels:
            yield wheels[-1] / "pip"
            return


def run(command: list[str], cwd: Path, env: Mapping[str, str], seconds: float) -> str | None:
    """Run one installer, its output kept back.

    :returns: None if it worked, else the last lines that it printed.
    """
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{Path(command[0]).name} did not end within {seconds:g} s"
    except OSError as error:
        return f"{command[0]}: {error.strerror or error}"
    if done.returncode == 0:
        return None
    lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line.strip()]
    return "\n".join(lines[-TAIL_LINES:]) or f"{Path(command[0]).name} ended with {done.returncode}"


def write_inventory(target: Path) -> None:
    """List the installed files with their sizes, as the last file of the folder."""
    files = (Path(base) / name for base, _, names in os.walk(target) for name in names)
    sizes = {path.relative_to(target).as_posix(): path.stat().st_size for path in files}
    (target / INVENTORY).write_text(json.dumps(sizes, sort_keys=True), encoding="utf-8")
    target.chmod(0o755)


def publish(packages: Path, final: Path) -> bool:
    """Move the finished folder to its place, unless another job put one there in the meantime.

    :returns: whether a whole folder is there.
    """
    for wait in (0.1, 0.3, 1.0, 0.0):
        with suppress(OSError):
            packages.rename(final)
        if is_complete(final):
            return True
        with suppress(OSError):  # damaged: into the staging folder, which is about to go
            final.rename(Path(tempfile.mkdtemp(dir=packages.parent)) / "damaged")
        time.sleep(wait)  # Windows: a virus scanner may hold the new files for a moment
    return False


def escape(text: str) -> str:
    """Escape text for a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
