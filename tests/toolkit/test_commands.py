from __future__ import annotations

import io

import pytest

from checkpoint_action.toolkit import commands


def test_annotations_carry_their_place_and_escape_it(capfd: pytest.CaptureFixture[str]) -> None:
    commands.error(
        "50%\r\nof it: a,b", title="T:1,2", file="a,b.py", start_line=1, end_line=2, start_column=3, end_column=4
    )
    commands.warning("w", file="x")
    commands.notice("n", start_line=0)
    commands.debug("d")
    assert capfd.readouterr().out.splitlines() == [
        "::error title=T%3A1%2C2,file=a%2Cb.py,line=1,endLine=2,col=3,endColumn=4::50%25%0D%0Aof it: a,b",
        "::warning file=x::w",
        "::notice line=0::n",
        "::debug::d",
    ]


def test_a_group_ends_when_its_block_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), commands.group("build: all"):
        raise KeyError
    assert capfd.readouterr().out == "::group::build: all\n::endgroup::\n"


def test_masks_are_printed_and_empty_ones_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    commands.set_secret("a%b")
    commands.add_mask("")
    commands.add_mask("x\ny")
    assert capfd.readouterr().out == "::add-mask::a%25b\n::add-mask::x%0Ay\n"


def test_untrusted_output_is_fenced_with_a_token_of_its_own(capfd: pytest.CaptureFixture[str]) -> None:
    with commands.commands_stopped() as token:
        commands.info("::error::not a command")
    with commands.commands_stopped() as other:
        pass
    lines = capfd.readouterr().out.splitlines()
    assert lines[:3] == [f"::stop-commands::{token}", "::error::not a command", f"::{token}::"]
    assert token != other
    assert len(token) > 6


def test_echo_is_switched(capfd: pytest.CaptureFixture[str]) -> None:
    commands.set_command_echo(True)
    commands.set_command_echo(False)
    assert capfd.readouterr().out == "::echo::on\n::echo::off\n"


def test_bytes_that_are_no_text_come_out_as_they_were(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    commands.info(b"caf\xe9 \xf0\x9f\x9a\x80".decode("utf-8", "surrogateescape"))
    commands.info("\ud800 alone")
    assert capfdbinary.readouterr().out == b"caf\xe9 \xf0\x9f\x9a\x80\n? alone\n"


def test_text_printed_before_stays_before(capfd: pytest.CaptureFixture[str]) -> None:
    print("first", end=" ")
    commands.info("second")
    assert capfd.readouterr().out == "first second\n"


def test_a_stdout_without_bytes_below_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    commands.info("caf\udce9")
    assert out.getvalue() == "caf\ufffd\n"
