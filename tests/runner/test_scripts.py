"""The files that shells read steps from."""

from __future__ import annotations

import shutil
import stat
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint_action.runner.shells import Scripts, forget_scripts

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scripts]:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with closing(Scripts()) as found:
        yield found


def test_a_file_is_written_again_once_nobody_reads_it(scripts: Scripts) -> None:
    first = Path(scripts.take(b"a long text\n", ".sh"))
    beside = Path(scripts.take(b"beside\n", ".sh"))
    assert beside != first
    scripts.give_back(str(first), alone=True)
    again = Path(scripts.take(b"short\n", ".sh"))
    assert again == first
    assert again.read_bytes() == b"short\n"
    assert beside.read_bytes() == b"beside\n"


def test_what_may_still_be_read_is_not_written_to(scripts: Scripts) -> None:
    first = Path(scripts.take(b"one\n", ".sh"))
    with first.open("rb") as reader:
        scripts.give_back(str(first), alone=False)
        other = Path(scripts.take(b"two\n", ".sh"))
        assert other != first
        assert reader.read() == b"one\n"
    assert not first.exists()


def test_each_kind_has_its_own(scripts: Scripts) -> None:
    shell = Path(scripts.take(b"x", ".sh"))
    scripts.give_back(str(shell), alone=True)
    python = Path(scripts.take(b"y", ".py"))
    assert python.suffix == ".py"
    assert python != shell


def test_a_step_may_clear_up_all_that_is_temporary(scripts: Scripts) -> None:
    first = Path(scripts.take(b"one\n", ".sh"))
    scripts.give_back(str(first), alone=True)
    shutil.rmtree(first.parent)
    assert Path(scripts.take(b"two\n", ".sh")).read_bytes() == b"two\n"


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such modes there")
def test_nobody_else_reads_them(scripts: Scripts) -> None:
    script = Path(scripts.take(b"secret\n", ".sh"))
    assert stat.S_IMODE(script.stat().st_mode) == 0o600
    assert stat.S_IMODE(script.parent.stat().st_mode) == 0o700


def test_nothing_is_left_neither_by_us_nor_by_whoever_clears_up_for_us(tmp_path: Path) -> None:
    scripts = Scripts()
    scripts.take(b"x", ".sh")
    scripts.close()
    killed = Scripts()
    script = Path(killed.take(b"x", ".sh"))
    forget_scripts(str(script.parent.parent), killed.token)
    assert not script.parent.exists()
    assert list(tmp_path.iterdir()) == []
