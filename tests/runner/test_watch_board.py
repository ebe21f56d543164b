"""The board that tells a guardian which steps run."""

from __future__ import annotations

import os

from checkpoint_action.runner.watch_board import WatchBoard, tokens_on


def on(board: WatchBoard) -> set[str]:
    return tokens_on(os.dup(board.number))


def test_it_tells_who_is_on_it_and_nobody_else() -> None:
    board = WatchBoard()
    assert on(board) == set()
    for number in range(40):
        board.put(f"{number:016x}")
    assert on(board) == {f"{number:016x}" for number in range(40)}
    for number in range(0, 40, 2):
        board.remove(f"{number:016x}")
    board.remove("not there")
    assert on(board) == {f"{number:016x}" for number in range(1, 40, 2)}
    board.close()


def test_places_are_taken_again() -> None:
    board = WatchBoard()
    board.put("stays")
    for number in range(100):
        board.put(f"step{number}")
        board.remove(f"step{number}")
    board.put("last")
    assert os.fstat(board.number).st_size == 2 * 32
    assert on(board) == {"stays", "last"}
    board.close()


def test_no_step_gets_it() -> None:
    board = WatchBoard()
    assert not os.get_inheritable(board.number)
    board.close()
