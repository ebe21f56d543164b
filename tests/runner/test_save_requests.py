"""How a running step asks for a save, and what it hears."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.errors import StateWriteError, StoreError, UsageError
from checkpoint_action.runner import save_requests as module
from checkpoint_action.runner.save_requests import SaveDesk, request_save
from checkpoint_action.store import atomic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PATIENCE = 60.0  # seconds that nothing here takes


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "requests"
    path.mkdir()
    return path


@pytest.fixture
def desk(folder: Path) -> Iterator[SaveDesk]:
    made = SaveDesk(folder)
    yield made
    made.close()


class Asking(threading.Thread):
    """A step's ``checkpoint-run save``."""

    def __init__(self, prefix: str, patience: float = PATIENCE) -> None:
        super().__init__(daemon=True)
        self.prefix, self.patience = prefix, patience
        self.said = ""
        self.failure: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.said = request_save(self.prefix, patience=self.patience)
        except BaseException as error:
            self.failure = error

    def heard(self) -> str:
        """What it was told, or why it was not."""
        self.join(PATIENCE)
        assert not self.is_alive(), "it still waits"
        return self.said or f"{type(self.failure).__name__}: {self.failure}"


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_request_is_answered_and_leaves_nothing_behind(desk: SaveDesk, folder: Path) -> None:
    prefix = desk.open_for("token", lambda: "all of it")
    assert request_save(prefix) == "all of it"
    assert request_save(prefix) == "all of it"
    assert left(folder) == []


@pytest.mark.parametrize("error", [StateWriteError("the disk is full"), StoreError("the store is off")])
def test_an_expected_failure_is_the_answer(desk: SaveDesk, error: Exception) -> None:
    with pytest.raises(StateWriteError, match=f"^not saved: {error}$"):
        request_save(desk.open_for("token", failing(error)))


def test_an_unexpected_failure_is_an_answer_too_and_the_next_request_is_served(desk: SaveDesk) -> None:
    failures: list[Exception] = [RecursionError("deep")]

    def save() -> str:
        if failures:
            raise failures.pop()
        return "saved"

    prefix = desk.open_for("token", save)
    with pytest.raises(StateWriteError, match="not saved: unexpected RecursionError: deep"):
        request_save(prefix)
    assert request_save(prefix) == "saved"


def failing(error: Exception) -> Callable[[], str]:
    def save() -> str:
        raise error

    return save


def no_threads(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have the system give none of a name any more."""
    start = threading.Thread.start

    def started(thread: threading.Thread) -> None:
        if thread.name == name:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", started)


def test_a_desk_for_which_there_is_no_thread_says_only_that(desk: SaveDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        no_threads(patched, "save-requests")
        with pytest.raises(RuntimeError, match=r"^can't start new thread$"):
            desk.open_for("token", lambda: "saved")
        desk.close_for("token")
        desk.close()


def test_a_desk_that_gets_its_thread_later_serves(desk: SaveDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        no_threads(patched, "save-requests")
        with pytest.raises(RuntimeError):
            desk.open_for("first", lambda: "saved")
    assert request_save(desk.open_for("second", lambda: "saved")) == "saved"


def test_a_save_for_which_there_is_no_thread_is_made_without(desk: SaveDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    no_threads(monkeypatch, "save")
    prefix = desk.open_for("token", lambda: "saved")
    assert [request_save(prefix) for _ in range(2)] == ["saved", "saved"]
    begun = threading.Event()
    go = threading.Event()

    def slow() -> str:
        begun.set()
        go.wait(PATIENCE)
        return "slow"

    asking = Asking(desk.open_for("slow", slow))
    assert begun.wait(PATIENCE)
    closing = threading.Thread(target=desk.close_for, args=("slow",), daemon=True)
    closing.start()
    closing.join(0.3)
    assert closing.is_alive(), "the end of the step waits for it, too"
    go.set()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert asking.heard() == "slow"


def test_a_save_that_there_is_no_memory_for_says_so(desk: SaveDesk) -> None:
    with pytest.raises(StateWriteError, match=r"^not saved: there is too little memory, "):
        request_save(desk.open_for("token", failing(MemoryError())))


def test_an_answer_that_there_is_no_memory_for_comes_later(desk: SaveDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    replacing, lacks = atomic.replacing, [True, True]

    def forgetful(path: Path) -> Any:
        if lacks and lacks.pop():
            raise MemoryError
        return replacing(path)

    monkeypatch.setattr(module, "replacing", forgetful)
    assert request_save(desk.open_for("token", lambda: "saved")) == "saved"
    assert lacks == []


def test_a_request_that_there_is_no_memory_to_pass_on_waits_for_the_next_look(
    desk: SaveDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    pass_on, lacks = SaveDesk._pass_on, [True, True]

    def forgetful(desk: SaveDesk, request: Path) -> None:
        if lacks and lacks.pop():
            raise MemoryError
        pass_on(desk, request)

    monkeypatch.setattr(SaveDesk, "_pass_on", forgetful)
    assert request_save(desk.open_for("token", lambda: "saved")) == "saved"
    assert lacks == []


def test_a_token_that_nobody_knows_is_told_that_its_step_is_over(desk: SaveDesk, folder: Path) -> None:
    desk.open_for("token", lambda: "saved")
    with pytest.raises(StateWriteError, match="the step that asks for this is over"):
        request_save(str(folder / "other"))


def test_a_step_that_is_over_is_served_no_more(desk: SaveDesk) -> None:
    prefix = desk.open_for("token", lambda: "saved")
    desk.close_for("token")
    with pytest.raises(StateWriteError, match="the step that asks for this is over"):
        request_save(prefix)
    desk.close_for("token")


def test_steps_that_run_at_once_are_not_kept_waiting_by_each_other(desk: SaveDesk) -> None:
    go = threading.Event()
    slow = Asking(desk.open_for("slow", lambda: str(go.wait(PATIENCE))))
    quick = Asking(desk.open_for("quick", lambda: "quick"))
    assert quick.heard() == "quick"
    go.set()
    assert slow.heard() == "True"


def test_requests_that_come_during_a_save_are_heard_at_once_and_get_the_next_one_together(
    desk: SaveDesk, folder: Path
) -> None:
    """Case: a save takes longer than anybody waits for a run that is dead."""
    go, begun = threading.Event(), threading.Event()
    saves: list[int] = []

    def save() -> str:
        saves.append(len(saves) + 1)
        begun.set()
        go.wait(PATIENCE)
        return f"save {saves[-1]}"

    prefix = desk.open_for("token", save)
    first = Asking(prefix)
    assert begun.wait(PATIENCE)
    others = [Asking(prefix) for _ in range(5)]
    wait_until(lambda: len(desk._windows["token"]._waiting) == len(others))
    assert left(folder) == [], "all are heard while the first is still served"
    go.set()
    assert first.heard() == "save 1"
    assert {one.heard() for one in others} == {"save 2"}
    assert saves == [1, 2]
    assert left(folder) == []


def wait_until(there: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_the_end_of_a_step_waits_for_its_save(desk: SaveDesk) -> None:
    go, begun = threading.Event(), threading.Event()

    def save() -> str:
        begun.set()
        go.wait(PATIENCE)
        return "saved"

    asking = Asking(desk.open_for("token", save))
    assert begun.wait(PATIENCE)
    closing = threading.Thread(target=desk.close_for, args=("token",), daemon=True)
    closing.start()
    closing.join(0.3)
    assert closing.is_alive()
    go.set()
    closing.join(PATIENCE)
    assert not closing.is_alive()
    assert asking.heard() == "saved"


def test_the_end_of_a_stopped_step_does_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE_ON_STOP", 0.0)
    go, begun, stopping = threading.Event(), threading.Event(), threading.Event()

    def save() -> str:
        begun.set()
        go.wait()
        return "saved"

    desk = SaveDesk(folder, stopping.is_set)
    Asking(desk.open_for("token", save))
    try:
        assert begun.wait(PATIENCE)
        stopping.set()
        desk.close_for("token")  # for ever, if it waited
        desk.close()
    finally:
        go.set()


def test_nobody_answers_and_the_request_is_taken_back(folder: Path) -> None:
    with pytest.raises(StateWriteError, match="not saved: the run does not answer"):
        request_save(str(folder / "token"), patience=0.0)
    assert left(folder) == []


def test_a_folder_that_is_not_there_means_that_the_run_is_over(folder: Path) -> None:
    folder.rmdir()
    with pytest.raises(UsageError, match="the run that started this step is over"):
        request_save(str(folder / "token"))


def test_a_folder_that_vanishes_while_one_waits_means_it_too(folder: Path) -> None:
    asking = Asking(str(folder / "token"))
    wait_until(lambda: left(folder))
    shutil.rmtree(folder)
    assert asking.heard() == "UsageError: the run that started this step is over"


@pytest.mark.parametrize("answer", [b"", b"{", b"[]", b"null", b'"said"', b"\xff\xfe", b"7"], ids=ascii)
def test_an_answer_that_makes_no_sense_is_no_yes(folder: Path, answer: bytes) -> None:
    asking = Asking(str(folder / "token"))
    wait_until(lambda: left(folder))
    [request] = folder.iterdir()
    temporary = folder / "answer"
    temporary.write_bytes(answer)
    temporary.replace(request.with_suffix(".answer"))
    assert asking.heard().startswith("StateWriteError: not saved, as far as one can tell")


def test_what_is_no_request_keeps_nobody_from_being_served(desk: SaveDesk, folder: Path) -> None:
    (folder / "a-0.request").mkdir()
    (folder / "a-1.request").mkdir()
    (folder / "noise").write_text("noise")
    assert request_save(desk.open_for("token", lambda: "saved")) == "saved"


def test_an_answer_that_cannot_be_written_ends_nothing(desk: SaveDesk, folder: Path) -> None:
    asked: list[int] = []

    def save() -> str:
        asked.append(1)
        return "saved"

    prefix = desk.open_for("token", save)
    (folder / "token-0.answer").mkdir()
    (folder / "token-0.request").touch()
    assert request_save(prefix) == "saved"


def test_a_closed_desk_hears_nothing(folder: Path) -> None:
    desk = SaveDesk(folder)
    desk.close()
    prefix = desk.open_for("token", lambda: "saved")
    desk.close()
    desk.close()
    with pytest.raises(StateWriteError, match="the run does not answer"):
        request_save(prefix, patience=0.0)
