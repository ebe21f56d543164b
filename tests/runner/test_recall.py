"""What an answer is made of: a look shows each change of it, and the file gives back what was put in."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.runner.basis import MOST_READ, Basis
from checkpoint_action.runner.memory import Answers, Memory, Sights
from checkpoint_action.runner.recall import Question

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="nothing is kept there")

ENV = {"PATH": os.environ["PATH"]}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("checkpoint.yml", "s.json", "s.journal", "file", "listed/a", "kept/a", "stamped/a"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("123")
    Path("link").symlink_to("file")


def basis(**other: Any) -> Basis:
    parts: dict[str, Any] = {
        "git": False,
        "files": ["file"],
        "dated": ["stamped"],
        "listed": ["listed"],
        "kept": ["kept"],
        "links": ["link"],
    }
    return Basis("checkpoint.yml", "s", ["SEEN"], **{**parts, **other})


def retarget() -> None:
    os.unlink("link")
    os.symlink("elsewhere", "link")


def become_folder() -> None:
    os.unlink("listed/a")
    os.mkdir("listed/a")


CHANGES: tuple[Callable[[], object], ...] = (
    lambda: Path("checkpoint.yml").write_text("124"),
    lambda: Path("s.json").write_text("124"),
    lambda: Path("s.journal").write_text("124"),
    lambda: Path("file").write_text("1234"),
    lambda: os.chmod("file", 0o600),
    lambda: os.chmod("kept", 0o700),
    lambda: Path("stamped/b").touch(),
    lambda: os.rename("stamped/a", "stamped/b"),
    lambda: Path("listed/b").touch(),
    lambda: os.unlink("listed/a"),
    lambda: os.rename("listed/a", "listed/b"),
    become_folder,
    retarget,
    lambda: os.mkdir(".git"),
)
ONLY_STAMPS: tuple[Callable[[], object], ...] = (
    lambda: Path("s.index").touch(),
    lambda: os.utime("file", ns=(1, 1)),
    lambda: Path("other").write_text("123") and Path("other").rename("file"),
)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("trusting", [True, False])
def test_each_change_shows(change: Callable[[], object], trusting: bool) -> None:
    before = basis().look(ENV, trusting=trusting)
    assert basis().look(ENV, trusting=trusting) == before
    change()
    assert basis().look(ENV, trusting=trusting) != before


@pytest.mark.parametrize("change", ONLY_STAMPS)
def test_what_is_read_may_have_other_times(change: Callable[[], object]) -> None:
    stamps, contents = basis().look(ENV, trusting=True), basis().look(ENV, trusting=False)
    change()
    assert basis().look(ENV, trusting=True) != stamps
    assert basis().look(ENV, trusting=False) == contents


def test_what_is_read_counts_though_its_times_were_put_back() -> None:
    before, times = basis().look(ENV, trusting=False), os.stat("file")
    Path("file").write_text("124")
    os.utime("file", ns=(times.st_atime_ns, times.st_mtime_ns))
    assert basis().look(ENV, trusting=False) != before


def test_what_is_known_of_files_need_not_be_read() -> None:
    known = [f"644 {sha256(b'123').hexdigest()}"]
    os.chmod("file", 0o644)
    read = basis().look(ENV, trusting=False)
    os.unlink("file")
    assert basis().look(ENV, trusting=False, contents=lambda _paths: known) == read


def test_what_takes_long_to_read_is_no_answer() -> None:
    os.truncate("file", MOST_READ)
    basis().look(ENV, trusting=False)
    os.truncate("file", MOST_READ + 1)
    with pytest.raises(OSError, match="is too large"):
        basis().look(ENV, trusting=False)


def test_a_folder_is_no_link_to_one() -> None:
    os.rename("listed", "elsewhere")
    os.symlink("elsewhere", "listed")
    for trusting in (True, False):
        with pytest.raises(OSError, match="is no plain folder"):
            basis().look(ENV, trusting=trusting)


def test_a_file_is_no_link_to_one_and_no_pipe() -> None:
    os.rename("file", "elsewhere")
    os.symlink("elsewhere", "file")
    with pytest.raises(OSError, match=r"."):
        basis().look(ENV, trusting=False)
    os.unlink("file")
    os.mkfifo("file")
    with pytest.raises(OSError, match="is no file"):
        basis().look(ENV, trusting=False)


@pytest.mark.parametrize("env", [{"SEEN": ""}, {"SEEN": "1"}, {"GITHUB_SHA": "1"}, {"RUNNER_OS": "Linux"}])
def test_a_variable_that_counts_shows_and_no_other(env: dict[str, str]) -> None:
    for trusting in (True, False):
        before = basis().look(ENV, trusting=trusting)
        assert basis().look({**ENV, **env}, trusting=trusting) != before
        assert basis().look({**ENV, "UNSEEN": "1"}, trusting=trusting) == before


def test_a_variable_of_ours_is_no_answer() -> None:
    with pytest.raises(OSError, match="may say anything"):
        basis().look({**ENV, "CHECKPOINT_STORE": ""}, trusting=True)


@pytest.mark.parametrize("name", ["checkpoint.yml", "s.json", "s.journal", "file", "stamped", "listed", "kept", "link"])
@pytest.mark.parametrize("trusting", [True, False])
def test_what_is_not_there_is_no_answer(name: str, trusting: bool) -> None:
    os.rename(name, "gone")
    with pytest.raises(OSError, match=r"."):
        basis().look(ENV, trusting=trusting)


@pytest.mark.parametrize("trusting", [True, False])
def test_what_is_of_another_kind_is_no_answer(trusting: bool) -> None:
    os.symlink("a", "listed/b")
    with pytest.raises(OSError, match="is no plain folder"):
        basis().look(ENV, trusting=trusting)
    os.unlink("listed/b")
    os.rename("kept", "away")
    os.symlink("away", "kept")
    with pytest.raises(OSError, match="is no plain folder"):
        basis().look(ENV, trusting=trusting)


def test_files_of_our_own_do_not_show() -> None:
    before = basis().look(ENV, trusting=True, ignored=b"build/\0")
    Path("listed/.checkpoint-run-demo.plan").touch()
    assert basis().look(ENV, trusting=True, ignored=b"listed/.checkpoint-run-demo.plan\0build/\0") == before
    assert basis().look(ENV, trusting=True, ignored=b"dist/\0build/\0") != before


def test_git_is_asked_where_it_counts_and_its_failure_is_no_answer() -> None:
    with pytest.raises(OSError, match="git failed"):
        basis(git=True).look(ENV, trusting=True)


@pytest.mark.parametrize("files", [[], ["file"], ["a\nb", os.fsdecode(b"\xff"), "ä"]])
@pytest.mark.parametrize("names", [[], ["A", "B"]])
@pytest.mark.parametrize("shells", [[], [("sh", ""), ("a b", "/x:/y"), ("c", "\n")]])
def test_a_file_gives_back_what_was_put_in(files: list[str], names: list[str], shells: list[tuple[str, str]]) -> None:
    what = Basis("checkpoint.yml", "s", names, git=True, files=files, dated=["d"], listed=[], kept=["kept"], links=[])
    said = Answers("a  skip\nb  skip\n", "{}\n", "a: 2 skipped in ", "; saved 1 s\n")
    kept = Memory("key", Sights("", "contents"), said, what, shells=shells, secrets=names)
    Path("s.plan").write_bytes(b"".join(kept.pieces()))
    memory = Memory.of("s.plan", "checkpoint.yml")
    assert (memory.key, memory.shells, memory.secrets) == ("key", shells, names)
    for one, other in ((memory.basis, what), (memory.answers, said), (memory.sights, kept.sights)):
        for name in type(one).__slots__:
            assert getattr(one, name) == getattr(other, name)


@pytest.mark.parametrize("place", range(4))
def test_an_answer_that_we_never_write_is_damage_though_its_digest_fits(place: int) -> None:
    what = Basis("checkpoint.yml", "s", [], git=False, files=[], dated=[], listed=[], kept=[], links=[])
    said = ["a  skip\n", "{}\n", "a: 1 skipped in ", "\n"]
    said[place] = "\udcff"
    memory = Memory("key", Sights("stamps", "contents"), Answers(*said), what, shells=[], secrets=[])
    Path("s.plan").write_bytes(b"".join(memory.pieces()))
    with pytest.raises(ValueError, match="damaged"):
        Memory.of("s.plan", "checkpoint.yml")


def test_the_key_tells_questions_apart(tmp_path: Path) -> None:
    keys = {Question().key(), Question("other.yml").key(), Question(state_dir="listed").key(), Question(job="a").key()}
    assert len(keys) == 4
    assert Question(json=True).key() == Question("checkpoint.yml", ".").key()
    os.chdir("kept")
    assert Question().key() not in keys


def test_words_and_question_are_one() -> None:
    for question in (Question(), Question("a.yml", "dir", "job"), Question(trusting=True)):
        again = Question.of(question.words())
        assert again is not None
        assert (again.key(), again.trusting, again.runs) == (question.key(), question.trusting, False)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", "run full"),
        ("run", "run full"),
        ("-q --no-logs --verify stat", "run stat"),
        ("run --verify=stat -f a.yml --state-dir b --job c", "run stat"),
        ("plan --json", "plan full"),
        ("plan --quiet", ""),
        ("run --json", ""),
        ("run run", ""),
        ("--verify", ""),
        ("--verify -q", ""),
        ("--verify=other", ""),
        ("--only a", ""),
        ("--no-pty", ""),
        ("--job a --job b", ""),
        ("--file=a.yml", ""),
        ("status", ""),
    ],
)
def test_only_what_is_clear_at_a_glance_is_a_question(words: str, found: str) -> None:
    question = Question.of(words.split())
    seen = "" if question is None else f"{('plan', 'run')[question.runs]} {('full', 'stat')[question.trusting]}"
    assert seen == found


def test_the_job_file_that_is_there_is_the_one_that_is_meant() -> None:
    os.rename("checkpoint.yml", "checkpoint.yaml")
    assert Question().file == "checkpoint.yaml"
    Path("checkpoint.yml").touch()
    assert Question().file == "checkpoint.yml"
