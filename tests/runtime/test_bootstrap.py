"""Installing the dependencies: with real installers, mostly from a folder with one small wheel."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from runtime import bootstrap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "runtime" / "requirements.txt"
BIN = Path(sys.executable).parent
needs_uv = pytest.mark.skipif(not (BIN / "uv").exists(), reason="needs uv beside this Python")


class Bench:
    """A tool cache, a list of one small wheel, and an environment in which that wheel can be found."""

    def __init__(self, folder: Path, path: str) -> None:
        self.tools = folder / "tools"
        self.temp = folder / "temp"
        self.temp.mkdir()
        self.requirements = folder / "requirements.txt"
        wheels = folder / "wheels"
        wheels.mkdir()
        digest = make_wheel(wheels / "tiny-1.0-py3-none-any.whl")
        self.requirements.write_text(f"tiny==1.0 --hash=sha256:{digest}\n")
        self.env = {
            **os.environ,
            "PATH": path,
            "HOME": str(folder),
            "RUNNER_TOOL_CACHE": str(self.tools),
            "RUNNER_TEMP": str(self.temp),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(wheels),
            "UV_NO_INDEX": "1",
            "UV_FIND_LINKS": str(wheels),
        }

    def ensure(self, **env: str) -> Path:
        return bootstrap.ensure(self.requirements, {**self.env, **env})

    @property
    def folder(self) -> Path:
        return self.tools / "checkpoint-run"


def make_wheel(path: Path) -> str:
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny.py", "answer = 42\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", f"tiny.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """Return a bench with nothing but uv on PATH, where there is one: it is ten times as fast as pip."""
    path = tmp_path / "bin"
    path.mkdir()
    if (BIN / "uv").exists():
        (path / "uv").symlink_to(BIN / "uv")
    return Bench(tmp_path, str(path))


def put_uv(tmp_path: Path, script: str) -> None:
    """Put a stand-in for uv on the bench's PATH."""
    uv = tmp_path / "bin" / "uv"
    uv.unlink(missing_ok=True)
    uv.write_text(f"#!/bin/sh\n{script}\n")
    uv.chmod(0o755)


def no_installers(_: Mapping[str, str]) -> Iterator[tuple[list[str], float]]:
    raise AssertionError("nothing was to be installed")
    yield [], 0


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", pytest.param("uv", marks=needs_uv)])
def test_installs_once(bench: Bench, monkeypatch: pytest.MonkeyPatch, installer: str) -> None:
    if installer == "pip":
        bench.env["PATH"] = ""
    else:
        monkeypatch.setattr(bootstrap, "has_pip", lambda: pytest.fail("pip was asked for"))
    folder = bench.ensure()
    assert folder.parent == bench.folder
    assert (folder / "tiny.py").read_text() == "answer = 42\n"
    assert [path.name for path in bench.folder.iterdir()] == [folder.name]
    monkeypatch.setattr(bootstrap, "installers", no_installers)
    assert bench.ensure() == folder


@pytest.mark.slow
def test_pip_comes_after_a_uv_that_fails(bench: Bench, tmp_path: Path) -> None:
    put_uv(tmp_path, "echo no; exit 2")
    assert (bench.ensure() / "tiny.py").exists()


@pytest.mark.slow
def test_pip_of_ensurepip_serves_where_there_is_none(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    if not list(bootstrap.bundled_pip()):
        pytest.skip("this Python comes without a bundled pip")
    monkeypatch.setattr(bootstrap, "has_pip", lambda: False)
    assert (bench.ensure(PATH="") / "tiny.py").exists()


def test_a_uv_in_the_current_folder_is_none(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows looks there first, and it is the workspace."""
    put_uv(tmp_path, "touch canary; exit 2")
    monkeypatch.chdir(tmp_path)
    bench.env["PATH"] = "bin"
    assert [Path(command[0]).name for command, _ in bootstrap.installers(bench.env)] == [Path(sys.executable).name]


def test_no_installer_is_a_clear_error(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "has_pip", lambda: False)
    monkeypatch.setattr(bootstrap, "bundled_pip", lambda: iter(()))
    with pytest.raises(bootstrap.BootstrapError, match="neither uv nor pip was found"):
        bench.ensure(PATH="")


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", pytest.param("uv", marks=needs_uv)])
def test_a_wrong_hash_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch, installer: str) -> None:
    if installer == "pip":
        bench.env["PATH"] = ""
    else:
        monkeypatch.setattr(bootstrap, "has_pip", lambda: False)
        monkeypatch.setattr(bootstrap, "bundled_pip", lambda: iter(()))
    bench.requirements.write_text(f"tiny==1.0 --hash=sha256:{'0' * 64}\n")
    with pytest.raises(bootstrap.BootstrapError, match=r"(?i)hash"):
        bench.ensure()
    assert list(bench.folder.iterdir()) == []


@pytest.mark.slow
def test_settings_of_other_installs_do_not_bend_ours(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "constraints.txt").write_text("tiny==2.0\n")
    folder = bench.ensure(
        PATH="",
        PIP_CONSTRAINT=str(tmp_path / "constraints.txt"),
        PIP_USER="1",
        PIP_REQUIRE_VIRTUALENV="1",
        PIP_TARGET=str(tmp_path / "elsewhere"),
        PYTHONPATH=str(tmp_path / "nowhere"),
    )
    assert (folder / "tiny.py").exists()
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
def test_our_variables_do_not_reach_installers(bench: Bench, tmp_path: Path) -> None:
    put_uv(tmp_path, f"export -p > '{tmp_path}/env'; exit 1")
    bench.ensure(CPR_INPUT_STEPS="s", CPR_RUNTIME="r")
    assert "CPR_" not in (tmp_path / "env").read_text()


def test_a_half_installed_folder_never_counts(bench: Bench) -> None:
    half = bench.folder / bootstrap.folder_name(bench.requirements.read_bytes())
    half.mkdir(parents=True)
    (half / "tiny.py").write_text("answer = ")
    assert not bootstrap.is_complete(half)
    assert bench.ensure() == half
    assert (half / "tiny.py").read_text() == "answer = 42\n"


@pytest.mark.parametrize("harm", ["truncate", "remove", "inventory"])
def test_a_damaged_folder_is_replaced(bench: Bench, harm: str) -> None:
    folder = bench.ensure()
    victim = folder / (bootstrap.INVENTORY if harm == "inventory" else "tiny.py")
    if harm == "remove":
        victim.unlink()
    else:
        victim.write_text("")
    assert bench.ensure() == folder
    assert (folder / "tiny.py").read_text() == "answer = 42\n"
    assert [path.name for path in bench.folder.iterdir()] == [folder.name]


def test_falls_back_where_the_tool_cache_cannot_be_written(bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert bench.ensure(RUNNER_TOOL_CACHE=str(tmp_path / "file" / "tools")).parent == bench.temp / "checkpoint-run"
    assert bench.ensure(RUNNER_TOOL_CACHE="").parent == bench.temp / "checkpoint-run"


def test_no_folder_at_all_is_a_clear_error(bench: Bench) -> None:
    with pytest.raises(bootstrap.BootstrapError, match="RUNNER_TOOL_CACHE and RUNNER_TEMP are not set"):
        bench.ensure(RUNNER_TOOL_CACHE="", AGENT_TOOLSDIRECTORY="", RUNNER_TEMP="")


def test_a_changed_list_is_another_folder(bench: Bench) -> None:
    first = bench.ensure()
    bench.requirements.write_text(bench.requirements.read_text() + "# changed\n")
    assert bench.ensure() != first


def test_what_dead_installs_left_is_cleared(bench: Bench) -> None:
    for name, age in ((".abc-old", 2 * bootstrap.STALE_SECONDS), (".abc-new", 60)):
        (bench.folder / name).mkdir(parents=True)
        os.utime(bench.folder / name, (time() - age, time() - age))
    folder = bench.ensure()
    assert {path.name for path in bench.folder.iterdir()} == {".abc-new", folder.name}


def test_an_installer_that_hangs_is_stopped(bench: Bench) -> None:
    report = bootstrap.run([sys.executable, "-c", "import time; time.sleep(60)"], bench.temp, bench.env, 0.2)
    assert report is not None
    assert "did not end within 0.2 s" in report


def test_only_the_last_lines_are_reported(bench: Bench) -> None:
    code = "[print(i) for i in range(100)]; raise SystemExit(3)"
    report = bootstrap.run([sys.executable, "-c", code], bench.temp, bench.env, 30)
    assert report == "94\n95\n96\n97\n98\n99"


@pytest.mark.slow
def test_two_jobs_at_once(bench: Bench) -> None:
    code = (
        "import os, pathlib, sys; from runtime import bootstrap;"
        "folder = bootstrap.ensure(pathlib.Path(sys.argv[1]), dict(os.environ));"
        "sys.path.insert(0, str(folder)); import tiny; print(folder, tiny.answer)"
    )
    command = [sys.executable, "-c", code, str(bench.requirements)]

    def job(_: int) -> str:
        return subprocess.run(command, cwd=ROOT, env=bench.env, check=True, stdout=subprocess.PIPE, text=True).stdout

    with ThreadPoolExecutor(4) as pool:
        results = set(pool.map(job, range(4)))
    (name,) = {path.name for path in bench.folder.iterdir()}
    assert results == {f"{bench.folder / name} 42\n"}


@pytest.mark.slow
@pytest.mark.parametrize("installer", ["pip", pytest.param("uv", marks=needs_uv)])
def test_the_real_list_installs_and_imports(tmp_path: Path, installer: str) -> None:
    path = os.environ["PATH"].split(os.pathsep)
    path = [str(BIN), *path] if installer == "uv" else [entry for entry in path if not shutil.which("uv", path=entry)]
    env = {**os.environ, "PATH": os.pathsep.join(path), "RUNNER_TOOL_CACHE": str(tmp_path)}
    folder = bootstrap.ensure(REQUIREMENTS, env)
    code = "import sys; sys.path.insert(0, sys.argv[1]); import yaml, urllib3, psutil; yaml.CSafeLoader"
    if sys.version_info < (3, 14):
        code += "; from backports import zstd; assert zstd.decompress(zstd.compress(b'x')) == b'x'"
    subprocess.run([sys.executable, "-I", "-S", "-c", code, str(folder)], check=True)


def test_the_list_covers_what_the_package_needs() -> None:
    tomllib: Any = pytest.importorskip("tomllib")  # Python 3.11
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = [line for line in REQUIREMENTS.read_text().splitlines() if "==" in line]
    pinned = {canonicalize_name(pin.name): pin for pin in (Requirement(line.rstrip("\\ ")) for line in lines)}
    for text in project["dependencies"]:
        wanted = Requirement(text)
        (version,) = pinned[canonicalize_name(wanted.name)].specifier
        assert wanted.specifier.contains(version.version), text


def test_the_list_names_nothing_of_where_it_was_made() -> None:
    for line in REQUIREMENTS.read_text().splitlines()[1:]:
        assert "==" in line or line.startswith("    --hash=sha256:"), line
    assert "://" not in REQUIREMENTS.read_text()


@pytest.mark.slow
@needs_uv
def test_the_list_is_fresh() -> None:
    env = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, str(ROOT / "runtime" / "lock.py"), "--check"]
    done = subprocess.run(command, env=env, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
