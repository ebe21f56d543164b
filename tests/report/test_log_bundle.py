"""Copies of step logs that may leave the machine."""

from __future__ import annotations

import base64
import os
import sys
import threading
import tracemalloc
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkpoint_action.model import Status
from checkpoint_action.report import log_bundle
from checkpoint_action.report.log_bundle import LogBundle, StepLog, bundle_logs, likely_secrets

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "hunter2/+ä"


def log(folder: Path, step: str, data: bytes, status: Status = Status.FAILED) -> StepLog:
    path = folder / f"{step}.raw"
    path.write_bytes(data)
    return StepLog(step, path, status)


def only(bundle: LogBundle) -> bytes:
    assert not bundle.notes
    [file] = bundle.files
    return file.read_bytes()


def test_only_logs_of_undone_steps_are_taken_unless_all_are_wanted(tmp_path: Path) -> None:
    logs = [log(tmp_path, status.value, status.value.encode(), status) for status in Status]
    undone = bundle_logs(logs, tmp_path / "some", which="on-failure")
    assert [file.name for file in undone.files] == ["failed.log", "timeout.log", "interrupted.log"]
    assert [file.read_bytes() for file in undone.files] == [b"failed", b"timeout", b"interrupted"]
    every = bundle_logs(logs, tmp_path / "all", which="always")
    assert [file.stem for file in every.files] == [status.value for status in Status]
    assert bundle_logs(logs[:1], tmp_path / "none", which="on-failure") == LogBundle((), ())
    assert not (tmp_path / "none").exists()


def test_secrets_masks_and_credentials_are_hidden_in_all_their_forms(tmp_path: Path) -> None:
    lines = [
        SECRET,
        quote(SECRET),
        base64.b64encode(f"user:{SECRET}".encode()).decode(),
        "second line of it",
        "::add-mask::masked%25 value",
        "masked% value",
        "masked%25+value",
        "ghs_" + "a1B2" * 9,
        "> authorization: Bearer abc",
        "https://h/?sig=abc%3D&x=1",
        "harmless",
    ]
    found = log(tmp_path, "a", "\n".join(lines).encode())
    seen = only(bundle_logs([found], tmp_path / "out", which="always", secrets=[f"{SECRET}\nsecond line of it"]))
    shown = seen.decode().split("\n")
    assert shown[2].startswith("dXNlcj")  # "user:"
    assert shown.pop(2) == "dXNlcjp***=="
    assert shown == [
        "***", "***", "***", "::add-mask::***", "***", "***", "***", "> authorization: ***", "https://h/?sig=***&x=1",
        "harmless",
    ]  # fmt: skip


def test_what_one_step_masks_is_hidden_in_the_log_of_another(tmp_path: Path) -> None:
    logs = [log(tmp_path, "a", b"x s3cret y"), log(tmp_path, "b", b"::add-mask::s3cret\n", Status.DONE)]
    assert only(bundle_logs(logs, tmp_path / "out", which="on-failure")) == b"x *** y"


def test_small_logs_are_whole_and_large_ones_lose_their_middle(tmp_path: Path) -> None:
    large = b"".join(b"%09d\n" % number for number in range(100_000))
    logs = [log(tmp_path, "small", b"all of it\n"), log(tmp_path, "large", large), log(tmp_path, "other", large)]
    small, *cut = [
        file.read_bytes() for file in bundle_logs(logs, tmp_path / "out", which="always", limit=200_010).files
    ]
    assert small == b"all of it\n"
    for data in cut:
        head, note, tail = data.partition(b"\n[checkpoint-run: 878.9 KiB of this log are left out here]\n")
        assert note
        assert head == large[:25_000]
        assert tail == large[-75_000:]


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.sampled_from([0, 1, 7, 20, 44, 80]))
def test_a_secret_that_is_cut_by_the_gap_shows_no_part_of_itself(
    tmp_path_factory: pytest.TempPathFactory, first: int, second: int, third: int, limit: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("cut")
    data = b"." * first + b"XYZWVU" + b"." * second + b"XYZWVU" + b"." * third
    seen = only(
        bundle_logs([log(tmp_path, "a", data)], tmp_path / "out", which="always", secrets=["XYZWVU"], limit=limit)
    )
    assert not set(b"XYZWVU") & set(seen)


@pytest.mark.slow
def test_the_memory_used_does_not_grow_with_a_log(tmp_path: Path) -> None:
    def peak(megabytes: int) -> int:
        path = tmp_path / f"{megabytes}.raw"
        with path.open("wb") as file:
            for _ in range(megabytes):
                file.write((b"line without an end " * 52429)[: 1 << 20])
        tracemalloc.start()
        try:
            bundle_logs([StepLog("a", path, Status.FAILED)], tmp_path / "out", which="always", secrets=[SECRET])
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(1)
    assert peak(12) < peak(3) * 1.2


def test_a_log_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    logs = [StepLog("gone", tmp_path / "gone", Status.INTERRUPTED), log(tmp_path, "a", b"x")]
    assert only(bundle_logs(logs, tmp_path / "out", which="always")) == b"x"


def test_names_are_safe_and_never_the_same(tmp_path: Path) -> None:
    logs = [
        StepLog(step, log(tmp_path, "x", b"x").path, Status.FAILED) for step in ("../a b", "a-b", "A-B", "nul", "..")
    ]
    bundle = bundle_logs(logs, tmp_path / "out", which="always")
    assert [file.name for file in bundle.files] == ["a-b.log", "a-b-2.log", "A-B-3.log", "_nul.log", "step.log"]
    assert {file.parent for file in bundle.files} == {tmp_path / "out"}


@pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
def test_what_a_step_has_put_in_the_place_of_its_log_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("private")
    (tmp_path / "link").symlink_to(tmp_path / "private")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    logs = [StepLog(name, tmp_path / name, Status.FAILED) for name in ("link", "pipe", "folder")]
    done: list[LogBundle] = []
    worker = threading.Thread(
        target=lambda: done.append(bundle_logs(logs, tmp_path / "out", which="always")), daemon=True
    )
    worker.start()
    worker.join(60)
    [bundle] = done
    assert bundle.files == ()
    assert [note.partition(" is not uploaded")[0] for note in bundle.notes] == [
        f"the log of step '{name}'" for name in ("link", "pipe", "folder")
    ]


def test_more_values_than_can_be_looked_for_keep_the_logs_here(tmp_path: Path) -> None:
    masks = "".join(f"::add-mask::value-{number:06d}\n" for number in range(20_000))
    bundle = bundle_logs([log(tmp_path, "a", masks.encode())], tmp_path / "out", which="always")
    assert bundle == LogBundle((), ("no step log is uploaded: there are too many secret values to hide (20000)",))


def test_a_copy_that_cannot_be_written_leaves_nothing_of_itself(tmp_path: Path) -> None:
    (tmp_path / "out" / "a.log").mkdir(parents=True)
    logs = [log(tmp_path, "a", b"x"), log(tmp_path, "b", b"y")]
    bundle = bundle_logs(logs, tmp_path / "out", which="always")
    assert [file.name for file in bundle.files] == ["b.log"]
    assert bundle.notes[0].startswith("the log of step 'a' is not uploaded: ")


def test_the_default_limit_is_the_documented_one() -> None:
    assert log_bundle.LOGS_LIMIT == 64 * 1024 * 1024


def test_variables_whose_names_say_so_are_taken_for_secrets() -> None:
    env = {
        "NPM_TOKEN": "npm-12345678",
        "db_password": "correct horse",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
        "SIGNING_KEY": "signed-by-me",
        "MY_APIKEY": "0123456789",
        "TOKEN_TTL": "3600",
        "KEYBOARD": "qwertyuiop",
        "MONKEY": "bananas-and-more",
        "PATH": "/usr/bin:/bin",
        "AUTH_TOKEN": "",
    }
    assert set(likely_secrets(env)) == set(list(env.values())[:5])
