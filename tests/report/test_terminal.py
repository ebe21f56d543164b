"""What a person sees of a run on a terminal."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals there", allow_module_level=True)
pytest.importorskip("pyte")

from tests.console import PROGRAM, environment
from tests.report.terminals import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STATUS = re.compile(r"^\[\d+/\d+\] \S+  .*\d:\d\d")
HOLD = "while ! test -e go; do sleep 0.02; done"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """Starts the program on a terminal, in the folder of the test."""
    all_of_them = []

    def run(*words: str, **more: object) -> Terminal:
        one = Terminal(tmp_path, *words, **more)  # type: ignore[arg-type]
        all_of_them.append(one)
        return one

    yield run
    for one in all_of_them:
        one.close()


def go(tmp_path: Path) -> None:
    (tmp_path / "go").touch()


def has_status(lines: list[str]) -> bool:
    return any(STATUS.match(line) for line in lines)


def test_the_last_line_tells_what_runs_and_is_gone_at_the_end(start: Callable[..., Terminal], tmp_path: Path) -> None:
    seen = start("--job", "j", "--step", f"a:echo one; {HOLD}; echo two", "--step", "b:echo three")
    first = seen.until(lambda lines: bool(re.fullmatch(r"\[1/2\] a  0:\d\d · 1 left", lines[-1])))[-1]
    seen.until(lambda lines: lines[-1] != first)  # it is drawn again in its place
    assert sum(map(bool, map(STATUS.match, seen.lines()))) == 1
    go(tmp_path)
    assert seen.wait() == 0
    lines = seen.lines()
    assert not has_status(lines)
    at = lines.index("one")
    assert lines[at : at + 2] == ["one", "two"]
    assert "three" in lines
    assert lines[-3].split() == ["step", "result", "time", "why"]
    assert [line.split()[:2] for line in lines[-2:]] == [["a", "done"], ["b", "done"]]


@pytest.mark.slow
def test_the_next_run_knows_how_long_a_step_takes(start: Callable[..., Terminal], tmp_path: Path) -> None:
    words = ("--job", "j", "--step", f"a:test -e again && {HOLD} || sleep 5", "--step", "b:true")
    assert start(*words).wait() == 0
    (tmp_path / "again").touch()
    seen = start(*words, "--force", "a")
    seen.until(lambda lines: bool(re.fullmatch(r"\[1/2\] a  0:0\d of ~0:\d\d · 1 left, ~0:0\d to go", lines[-1])))
    go(tmp_path)
    assert seen.wait() == 0


def test_it_stands_below_an_unfinished_line_and_a_progress_bar(start: Callable[..., Terminal], tmp_path: Path) -> None:
    bar = "printf 'loading: '; while ! test -e go; do i=$((i+1)); printf '\\rloading: %d' $i; sleep 0.02; done; echo"
    seen = start("--job", "j", "--step", f"a:{bar}; echo end")
    lines = seen.until(lambda lines: len(lines) > 1 and "loading: 2" in lines[-2] and has_status(lines[-1:]))
    assert lines[-2].startswith("loading: ")
    go(tmp_path)
    assert seen.wait() == 0
    lines = seen.lines()
    assert not has_status(lines)
    assert len([line for line in lines if "loading" in line]) == 1
    assert lines[lines.index("end") - 1].startswith("loading: ")


@pytest.mark.parametrize("size", [(20, 10), (14, 8)])
def test_a_narrow_terminal(start: Callable[..., Terminal], tmp_path: Path, size: tuple[int, int]) -> None:
    seen = start("--job", "j", "--step", f"compile-all:{HOLD}", "--step", "b:true", size=size)
    lines = seen.until(lambda lines: bool(lines) and bool(re.search(r"^compil.*  0:\d\d( · 1 left)?$", lines[-1])))
    assert len(lines[-1]) < size[0]
    go(tmp_path)
    assert seen.wait() == 0
    assert not any(re.search(r"  0:\d\d", line) for line in seen.lines())


def test_a_terminal_that_becomes_narrower_and_wider(start: Callable[..., Terminal], tmp_path: Path) -> None:
    seen = start("--job", "j", "--step", f"compile-all:echo one; {HOLD}", "--step", "b:true")
    seen.until_last("[1/2] compile-all  0:0")
    seen.resize(22, 24)
    seen.until(lambda lines: bool(re.fullmatch(r"compile-all  0:\d\d", lines[-1])))
    seen.resize(60, 24)
    seen.until(lambda lines: bool(re.fullmatch(r"\[1/2\] compile-all  0:\d\d · 1 left", lines[-1])))
    assert sum("compile-all  0:" in line for line in seen.lines()) == 1
    go(tmp_path)
    assert seen.wait() == 0
    assert not has_status(seen.lines())


def test_a_step_learns_that_its_terminal_has_another_size(start: Callable[..., Terminal], tmp_path: Path) -> None:
    (tmp_path / "step.py").write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print('now', *os.get_terminal_size(1), flush=True))\n"
        "print('at first', *os.get_terminal_size(1), flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.02)\n"
    )
    seen = start("--job", "j", "--step", f"a:exec {sys.executable} step.py")
    seen.until(lambda lines: "at first 80 24" in lines)
    seen.resize(70, 24)
    seen.until(lambda lines: "now 70 24" in lines)
    go(tmp_path)
    assert seen.wait() == 0


def test_ctrl_c_says_that_it_stops_and_leaves_a_clean_screen(start: Callable[..., Terminal], tmp_path: Path) -> None:
    seen = start("--job", "j", "--step", f"a:trap '{HOLD}; exit 9' INT; while :; do sleep 0.02; done")
    seen.until_last("[1/1] a  0:")
    seen.type("\x03")
    seen.until_last("stopping, waiting for a to end, ^C again to hurry")
    go(tmp_path)
    assert seen.wait() == 130
    lines = seen.lines()
    assert not has_status(lines)
    assert not any(line.startswith("stopping") for line in lines)
    assert "what is done is saved; to go on, run:" in lines
    assert f"  {shell_line(seen)}" in seen.raw.decode()
    assert (seen.screen.cursor.x, seen.screen.cursor.attrs.fg) == (0, "default")


def shell_line(seen: Terminal) -> str:
    args = seen.process.args
    assert isinstance(args, list)
    return shlex.join(["checkpoint-run", *map(str, args[1:])])


def test_a_signal_leaves_a_clean_screen_too(start: Callable[..., Terminal]) -> None:
    seen = start("--job", "j", "--step", f"a:{HOLD}")
    seen.until_last("[1/1] a  0:")
    seen.process.send_signal(signal.SIGTERM)
    assert seen.wait() == 143
    assert not has_status(seen.lines())


@pytest.mark.parametrize(
    ("words", "env"),
    [((), {"TERM": "dumb"}), ((), {"CI": "true"}), (("--quiet",), {}), (("--no-live", "--color", "never"), {})],
)
def test_plain_lines(start: Callable[..., Terminal], words: tuple[str, ...], env: dict[str, str]) -> None:
    seen = start("--job", "j", "--step", "a:sleep 0.4; echo out", "--step", "b:sleep 0.4; exit 3", *words, env=env)
    assert seen.wait() == 1
    assert b"\x1b" not in seen.raw
    assert not has_status(seen.lines())
    if not words:
        assert "what is done is saved, run the same command again to go on" in seen.text().replace("\n", " ")


def colors(seen: Terminal) -> list[bytes]:
    return re.findall(rb"\x1b\[[0-9;]*m", bytes(seen.raw))


@pytest.mark.parametrize(
    ("words", "env", "colored"),
    [
        ((), {}, True),
        ((), {"NO_COLOR": "1"}, False),
        ((), {"NO_COLOR": ""}, True),
        (("--color", "always"), {"NO_COLOR": "1"}, True),
        (("--color", "never"), {}, False),
    ],
)
def test_colours(
    start: Callable[..., Terminal], tmp_path: Path, words: tuple[str, ...], env: dict[str, str], *, colored: bool
) -> None:
    seen = start("--job", "j", "--step", f"a:echo out; {HOLD}", *words, env=env)
    seen.until_last("[1/1] a  0:")
    go(tmp_path)
    assert seen.wait() == 0
    assert bool(colors(seen)) == colored


def test_a_colour_that_a_step_leaves_on_is_off_in_our_lines(start: Callable[..., Terminal]) -> None:
    seen = start("--job", "j", "--step", "a:printf '\\033[35mviolet\\n'", "--step", "b:echo plain", "--color", "never")
    assert seen.wait() == 0
    rows = {"".join(row[x].data for x in range(20)).strip(): row[0].fg for row in seen.screen.buffer.values()}
    assert rows["violet"] == "magenta"
    assert rows["plain"] == "default"


def test_a_terminal_without_utf8_gets_ascii(start: Callable[..., Terminal], tmp_path: Path) -> None:
    env = {"PYTHONIOENCODING": "ascii"}
    seen = start("--job", "j", "--step", f"a:{HOLD}", "--step", "b:true", env=env)
    seen.until_last(" | 1 left")
    go(tmp_path)
    assert seen.wait() == 0
    assert seen.raw.isascii()


def test_a_step_with_the_alternate_screen_has_it_for_itself(start: Callable[..., Terminal], tmp_path: Path) -> None:
    full = f"printf '\\033[?1049h\\033[2J\\033[5;5Hfull'; {HOLD}; printf '\\033[?1049l'"
    seen = start("--job", "j", "--step", f"a:{full}", "--step", "b:while ! test -e more; do sleep 0.02; done")
    seen.until(lambda lines: "    full" in lines)
    time.sleep(0.5)  # in which it would be drawn
    assert not has_status(seen.lines())
    go(tmp_path)
    seen.until_last("[2/2] b  0:")
    (tmp_path / "more").touch()
    assert seen.wait() == 0
    assert not has_status(seen.lines())


def test_an_interactive_step_has_the_terminal_for_itself(start: Callable[..., Terminal], tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text(
        "job: j\nsteps:\n- {id: a, interactive: true, run: 'printf \"name? \"; read x; echo hello $x'}\n"
        f"- {{id: b, run: '{HOLD}'}}\n"
    )
    seen = start()
    seen.until_last("name?")
    time.sleep(0.5)
    assert seen.lines()[-1] == "name?"
    seen.type("Ada\n")
    seen.until_last("[2/2] b  0:")
    assert "hello Ada" in seen.lines()
    go(tmp_path)
    assert seen.wait() == 0


@pytest.mark.slow
def test_a_retry_is_counted_down(start: Callable[..., Terminal], tmp_path: Path) -> None:
    step = f"a:test -e tried && {HOLD} || {{ touch tried; exit 1; }}"
    seen = start("--job", "j", "--step", step, "--retry", "1", "--backoff", "5")
    seen.until_last("[1/1] a  try 2 in 0:")
    seen.until_last("[1/1] a  try 2, 0:")
    go(tmp_path)
    assert seen.wait() == 0


def test_steps_that_run_at_once_have_a_line_each(start: Callable[..., Terminal], tmp_path: Path) -> None:
    steps = [word for name in "abc" for word in ("--step", f"{name}:echo from {name}; {HOLD}")]
    seen = start("--job", "j", "-j", "2", *steps)
    lines = seen.until(lambda lines: len(lines) > 2 and lines[-1] == "1 left" and has_status(lines[-2:]))
    assert [line[:10] for line in lines[-3:-1]] == ["[1/3] a  0", "[2/3] b  0"]
    go(tmp_path)
    assert seen.wait() == 0
    assert not has_status(seen.lines())
    assert all(f"from {name}" in seen.lines() for name in "abc")


def test_what_a_store_gives_back_is_told(start: Callable[..., Terminal], tmp_path: Path) -> None:
    (tmp_path / "checkpoint.yml").write_text(
        "job: j\nsteps:\n- {id: a, outputs: [big], run: head -c 3000000 /dev/urandom >big}\n"
        f"- {{id: b, outputs: [small], run: '{HOLD}; echo x >small'}}\n"
    )
    words = ("--store", f"file://{tmp_path / 'store'}", "--run-id", "r", "--state-dir")
    seen = start(*words, "one")
    seen.until_last("[2/2] b  0:")
    go(tmp_path)
    assert seen.wait() == 0
    for name in ("big", "small"):
        (tmp_path / name).unlink()
    again = start(*words, "two")
    assert again.wait() == 0
    assert not has_status(again.lines())
    assert [line.split()[:2] for line in again.lines()[-2:]] == [["a", "restored"], ["b", "restored"]]


def test_output_in_a_file_is_exact_and_the_view_is_on_the_terminal(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    with (tmp_path / "out").open("wb") as file:
        seen = start("--job", "j", "--step", f"a:printf 'x\\033[5A\\ry'; {HOLD}; echo z", stdout=file.fileno())
        seen.until_last("[1/1] a  0:")
        go(tmp_path)
        assert seen.wait() == 0
    assert (tmp_path / "out").read_bytes() == b"x\x1b[5A\ryz\n"


def test_nothing_is_drawn_where_output_may_come_to_the_terminal_past_us(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    seen = start("-c", f"'{PROGRAM}' --job j --step 'a:echo one; sleep 0.5; echo two' | cat", program="bash")
    assert seen.wait() == 0
    assert not has_status(seen.lines())
    assert b"\x1b[J" not in seen.raw
    assert {"one", "two"} <= set(seen.lines())


def test_in_the_background_nothing_is_drawn_and_a_stop_leaves_a_clean_screen(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    seen = start("--norc", "-i", program=shutil.which("bash"), env={"PS1": "prompt> ", "HISTFILE": ""})
    seen.until_last("prompt>")
    seen.type(f"'{PROGRAM}' --job j --step 'a:{HOLD}'\n")
    seen.until_last("[1/1] a  0:")
    seen.type("\x1a")
    lines = seen.until_last("prompt>")
    assert not has_status(lines)
    assert any("Stopped" in line for line in lines)
    seen.type("bg\n")
    seen.until(lambda lines: lines[-1] == "prompt>" and any(line.endswith("&") for line in lines))
    time.sleep(0.5)
    assert not has_status(seen.lines())
    seen.type("fg\n")
    seen.until_last("[1/1] a  0:")
    go(tmp_path)
    lines = seen.until_last("prompt>")
    assert not has_status(lines)


@pytest.mark.slow
def test_a_hundred_megabytes_come_through_byte_for_byte(start: Callable[..., Terminal], tmp_path: Path) -> None:
    step = "a:yes '0123456789 abcdefghijklmnopqrstuvwxyz 0123456789 abcdefghijklmnopq' | head -c 100000000"
    seen = start("--job", "j", "--step", step, "--color", "never", watched=False)
    assert seen.wait(280) == 0
    raw = bytes(seen.raw).replace(b"\r\n", b"\n")  # what the terminal makes of an end of line
    raw = re.sub(rb"\x1bD\x1b\[1A\x1b7\r\n\x1b\[J[^\x1b]*\x1b8|\x1b7\r\n\x1b\[J\x1b8", b"", raw)
    raw = re.sub(rb"\r\x1b\[J(?:[^\r\n\x1b]*  0:\d\d[^\r\n\x1b]*\r|looking[^\r\n\x1b]*\r)?", b"", raw)
    log = (tmp_path / ".checkpoint-run-j.logs/a.log").read_bytes()
    assert len(log) == 100_000_000
    at = raw.find(log[:1000])
    assert hashlib.sha256(raw[at : at + len(log)]).digest() == hashlib.sha256(log).digest()
    assert raw[at + len(log) :].lstrip(b"\n").startswith(b"checkpoint-run: [1/1] a: done")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux")
def test_in_tmux_too_it_leaves_no_trace(tmp_path: Path) -> None:
    tmux = ["tmux", "-S", str(tmp_path / "socket"), "-f", os.devnull]
    env = {name: value for name, value in environment().items() if name not in ("CI", "TMUX", "NO_COLOR")}

    def call(*words: str) -> str:
        return subprocess.run([*tmux, *words], env=env, capture_output=True, text=True, check=True, timeout=60).stdout

    def until(seen: Callable[[list[str]], bool]) -> list[str]:
        end = time.monotonic() + 60
        while True:
            lines = call("capture-pane", "-p", "-S", "-").rstrip().splitlines()
            if seen(lines):
                return lines
            assert time.monotonic() < end, lines
            time.sleep(0.1)

    step = f"printf 'line %d\\n' 1 2 3 4 5 6 7 8 9; printf '50%%'; {HOLD}; echo; echo end"
    (tmp_path / "checkpoint.yml").write_text(
        f"job: j\nsteps:\n- id: a\n  run: |\n    {step}\n- {{id: b, run: 'true'}}\n"
    )
    call("new-session", "-d", "-x", "60", "-y", "10", "-c", str(tmp_path), "env", "PS1=prompt> ", "bash", "--norc")
    try:
        until(lambda lines: lines[-1:] == ["prompt>"])
        call("send-keys", f"'{PROGRAM}'; exec cat", "Enter")
        until(lambda lines: len(lines) > 1 and lines[-2] == "50%" and bool(re.match(r"\[1/2\] a  0:", lines[-1])))
        call("resize-window", "-x", "40", "-y", "9")
        until(lambda lines: len(lines) > 1 and lines[-2] == "50%" and bool(re.match(r"\[1/2\] a  0:", lines[-1])))
        go(tmp_path)
        lines = until(lambda lines: lines[-1].split()[:2] == ["b", "done"])
        at = lines.index("line 1")
        assert lines[at : at + 11] == [*(f"line {n}" for n in range(1, 10)), "50%", "end"]
        assert not has_status(lines)
    finally:
        call("kill-server")


def test_an_interactive_step_that_is_ended_leaves_the_terminal_as_it_was(
    start: Callable[..., Terminal], tmp_path: Path
) -> None:
    (tmp_path / "checkpoint.yml").write_text(
        "job: j\nsteps:\n"
        "- {id: a, interactive: true, timeout: 1s, run: 'stty raw -echo; sleep 100'}\n"
        "- {id: b, needs: [], always: true, interactive: true, run: 'stty -a'}\n"
    )
    terminal = start("--continue-on-error")
    assert terminal.wait() == 1
    shown = terminal.text().split()
    assert {"icanon", "echo", "opost"} <= {word.rstrip(";") for word in shown}
