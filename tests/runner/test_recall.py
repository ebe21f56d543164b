"""What an answer is made of: a look shows each change of it, and the file gives back what was put in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.runner.recall import Basis, Memory, Question

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
        "stamped": ["file", "stamped"],
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


@pytest.mark.parametrize(
    "change",
    [
        lambda: Path("checkpoint.yml").write_text("124"),
        lambda: Path("s.json").write_text("124"),
        lambda: Path("s.journal").write_text("124"),
        lambda: Path("s.index").touch(),
        lambda: Path("file").write_text("1234"),
        lambda: os.utime("file", ns=(1, 1)),
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
    ],
)
def test_each_change_shows(change: Callable[[], object]) -> None:
    before = basis().look(ENV)
    assert basis().look(ENV) == before
    change()
    assert basis().look(ENV) != before


@pytest.mark.parametrize("env", [{"SEEN": ""}, {"SEEN": "1"}, {"GITHUB_SHA": "1"}, {"RUNNER_OS": "Linux"}])
def test_a_variable_that_counts_shows_and_no_other(env: dict[str, str]) -> None:
    assert basis().look({**ENV, **env}) != basis().look(ENV)
    assert basis().look({**ENV, "UNSEEN": "1"}) == basis().look(ENV)


@pytest.mark.parametrize("name", ["checkpoint.yml", "s.json", "s.journal", "file", "listed", "kept", "link"])
def test_what_is_not_there_is_no_answer(name: str) -> None:
    os.rename(name, "gone")
    with pytest.raises(OSError, match=r"."):
        basis().look(ENV)


def test_what_is_of_another_kind_is_no_answer() -> None:
    os.symlink("a", "listed/b")
    with pytest.raises(OSError, match="is no plain folder"):
        basis().look(ENV)
    os.unlink("listed/b")
    os.rename("kept", "away")
    os.symlink("away", "kept")
    with pytest.raises(OSError, match="is no plain folder"):
        basis().look(ENV)


def test_files_of_our_own_do_not_show() -> None:
    before = basis().look(ENV, b"build/\0")
    Path("listed/.checkpoint-run-demo.plan").touch()
    assert basis().look(ENV, b"listed/.checkpoint-run-demo.plan\0build/\0") == before
    assert basis().look(ENV, b"dist/\0build/\0") != before


def test_git_is_asked_where_it_counts_and_its_failure_is_no_answer() -> None:
    with pytest.raises(OSError, match="git failed"):
        basis(git=True).look(ENV)


@pytest.mark.parametrize("stamped", [[], ["file"], ["a\nb", os.fsdecode(b"\xff"), "ä"]])
@pytest.mark.parametrize("names", [[], ["A", "B"]])
def test_a_file_gives_back_what_was_put_in(stamped: list[str], names: list[str]) -> None:
    what = Basis("checkpoint.yml", "s", names, git=True, stamped=stamped, listed=[], kept=["kept"], links=[])
    Path("s.plan").write_bytes(Memory("key", "seen", "a  skip\nb  skip\n", "{}\n", what).to_bytes())
    memory = Memory.of("s.plan", "checkpoint.yml")
    assert (memory.key, memory.seen, memory.lines, memory.json) == ("key", "seen", "a  skip\nb  skip\n", "{}\n")
    for name in Basis.__slots__:
        assert getattr(memory.basis, name) == getattr(what, name)


def test_the_key_tells_questions_apart(tmp_path: Path) -> None:
    keys = {Question().key(), Question("other.yml").key(), Question(state_dir="listed").key(), Question(job="a").key()}
    assert len(keys) == 4
    assert Question(json=True).key() == Question("checkpoint.yml", ".").key()
    os.chdir("kept")
    assert Question().key() not in keys


def test_words_and_question_are_one() -> None:
    for question in (Question(), Question("a.yml", "dir", "job")):
        again = Question.of(question.words())
        assert again is not None
        assert again.key() == question.key()
