"""A restore that fails half-way, by whatever cause, leaves the workspace as it was."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import BundleError, TornError
from checkpoint_action.store.apply import apply_layer
from tests.store.labs import Lab, become, everything, furnish
from tests.store.trees import (
    as_nobody,
    nothing_else,
    scan,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and modes as POSIX has them")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


FALLIBLE = ["replace", "link", "mkdir", "rmdir", "chmod", "fchmod", "utime", "symlink", "fsync", "unlink"]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], list[str]]]:
    """Make the n-th call that changes the disk fail as a full disk does, once."""

    def arm(number: int) -> list[str]:
        monkeypatch.undo()
        calls: list[str] = []
        if not number:
            return calls

        def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*given: Any, **named: Any) -> Any:
                calls.append(name)
                if len(calls) == number:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                return real(*given, **named)

            return call

        for name in FALLIBLE:
            monkeypatch.setattr(os, name, wrap(name, getattr(os, name)))
        return calls

    yield arm
    monkeypatch.undo()


def other_filesystem(folder: Path) -> bool:
    return Path("/dev/shm").is_dir() and Path("/dev/shm").stat().st_dev != folder.stat().st_dev


@pytest.mark.parametrize("place", ["beside", "on another filesystem"])
def test_whatever_fails_everything_is_put_back(lab: Lab, failing: Callable[[int], list[str]], place: str) -> None:
    if place != "beside" and not other_filesystem(lab.folder):
        pytest.skip("one filesystem only")
    furnish(lab.work)
    lab.step(everything)
    before, number, seen, said = scan(lab.root), 0, set(), set()
    shutil.copytree(lab.side, lab.folder / "kept")
    shutil.copytree(lab.root, lab.folder / "before", symlinks=True)
    while True:
        number += 1 if place == "beside" else 4
        root_time = lab.root.stat().st_mtime_ns
        with tempfile.TemporaryDirectory(dir=lab.folder if place == "beside" else "/dev/shm") as parent:
            lab.side = Path(parent, "side")
            shutil.copytree(lab.folder / "kept", lab.side)
            calls = failing(number)
            try:
                lab.apply()
            except BundleError as error:
                failing(0)
                said.add(str(error))
                assert scan(lab.root) == before
                assert lab.root.stat().st_mtime_ns == root_time
                seen.add(calls[number - 1])
                continue
            failing(0)
        assert scan(lab.root) == lab.wanted
        if len(calls) < number:
            break  # nothing is left that could fail
        # No hard links here, or something left over in the side folder: neither is a reason to fail.
        assert calls[number - 1] in ("link", "unlink", "rmdir")
        shutil.rmtree(lab.root)
        shutil.copytree(lab.folder / "before", lab.root, symlinks=True)
    assert {"replace", "mkdir", "utime"} <= seen
    assert all("No space left" in text and "taken back" not in text for text in said)


def test_a_folder_we_may_not_write_to_leaves_all_as_it_was() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        Path(folder, "lab").mkdir()
        lab = Lab(Path(folder, "lab"))
        for name in ["a", "m", "z"]:
            (lab.work / name).mkdir()
            (lab.work / name / "f").write_text("before")
        lab.step(lambda root: [(root / name / "f").write_text(f"after {name}") for name in "amz"])
        with as_nobody(lab.folder):
            if os.geteuid() == 65534:
                os.seteuid(0)
                os.chown(lab.root / "m", 0, 0)  # somebody else's folder, in the middle of the work
                os.seteuid(65534)
                lab.refuse("Permission denied|not permitted")
        if os.geteuid() == 0:
            lab.unpack()
            lab.apply()  # with the right to do it, the same layer is fine
            assert scan(lab.root) == lab.wanted


def test_a_disk_that_is_really_full_leaves_all_as_it_was(lab: Lab) -> None:
    resource = pytest.importorskip("resource")
    if not other_filesystem(lab.folder):
        pytest.skip("one filesystem only")
    (lab.work / "a").write_text("before")
    lab.step(lambda root: ((root / "a").write_text("after"), (root / "big").write_bytes(bytes(1 << 20))))
    with tempfile.TemporaryDirectory(dir="/dev/shm") as parent:
        shutil.copytree(lab.side, Path(parent, "side"))
        lab.side = Path(parent, "side")
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 19, hard))  # Python ignores the signal: EFBIG
        try:
            lab.refuse("File too large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert sorted(os.listdir(lab.root)) == ["a"]


def test_a_failure_that_cannot_be_taken_back_says_where_the_originals_are(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab.work / "a").write_text("before")
    lab.step(lambda root: become(root, {"b": "b"}))
    real, count = os.replace, 0

    def dying(*given: Any, **named: Any) -> None:
        nonlocal count
        count += 1
        if count > 1:
            raise OSError(errno.EIO, "the disk died")
        real(*given, **named)

    monkeypatch.setattr(os, "replace", dying)
    with pytest.raises(TornError, match=r"could not be taken back.*what could not be put back is in ") as caught:
        lab.apply()
    monkeypatch.undo()
    aside = Path(str(caught.value).rpartition(" is in ")[2])
    shutil.rmtree(lab.side)
    assert [path.read_text() for path in aside.iterdir()] == ["before"]


def test_a_time_that_cannot_be_taken_back_tears_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (lab.work / "a").write_text("before")
    lab.step(lambda root: become(root, {"b": "b"}))

    real, count = os.replace, 0

    def once(*given: Any, **named: Any) -> None:
        nonlocal count
        count += 1
        if count == 2:
            raise OSError(errno.EIO, "the disk hiccuped")
        real(*given, **named)

    def refused(*_given: Any, **_named: Any) -> None:
        raise OSError(errno.EIO, "the disk died")

    monkeypatch.setattr(os, "replace", once)
    monkeypatch.setattr(os, "utime", refused)
    with pytest.raises(BundleError, match=r"could not be taken back") as caught:
        lab.apply()
    monkeypatch.undo()
    assert not isinstance(caught.value, TornError)
    assert (lab.root / "a").read_text() == "before"
    assert not (lab.root / "b").exists()


def test_an_interrupt_in_the_middle_puts_everything_back(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    furnish(lab.work)
    lab.step(everything)
    before = scan(lab.root)
    real, count = os.replace, 0

    def interrupted(*given: Any, **named: Any) -> None:
        nonlocal count
        count += 1
        if count == 12:
            raise KeyboardInterrupt
        real(*given, **named)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        lab.apply()
    assert scan(lab.root) == before


def test_a_side_folder_that_lacks_a_file_changes_nothing(lab: Lab) -> None:
    furnish(lab.work)
    lab.step(everything)
    (lab.side / "src" / "new").unlink()
    lab.refuse("cannot restore into")


def test_another_filesystem_keeps_modes_and_times(lab: Lab) -> None:
    if not other_filesystem(lab.folder):
        pytest.skip("one filesystem only")
    furnish(lab.work)
    lab.step(everything)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as parent:
        shutil.copytree(lab.side, Path(parent, "side"))
        apply_layer(Path(parent, "side"), lab.root, lab.layer, nothing_else)
        assert not [path for path in scan(Path(parent)) if ".cpr-" in path]
    assert scan(lab.root) == lab.wanted


def test_a_file_is_never_missing_while_it_is_replaced(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    (lab.work / "f").write_text("before")
    lab.step(lambda root: (root / "f").write_text("after"))
    real = os.replace
    seen = []

    def looking(*given: Any, **named: Any) -> None:
        seen.append((lab.root / "f").read_text())
        real(*given, **named)

    monkeypatch.setattr(os, "replace", looking)
    lab.apply()
    assert seen == ["before"]
    assert (lab.root / "f").read_text() == "after"
