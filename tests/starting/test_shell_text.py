"""Cutting a script at its top-level commands: in front of nothing that belongs to the command before."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkpoint_action.starting.shell_text import NotCutError, top_level

WHOLE = [
    "echo one",
    "echo 'a\nb' \"c\nd\"",
    "echo one \\\n  two",
    "true &&\n  false",
    "true |\n # why\n cat",
    "if true; then\n  echo a\nelif x; then\n b\nelse\n c\nfi",
    "for f in a b; do\n  echo $f\ndone | sort",
    "for ((i = 0; i < 3; i++)); do\n echo $i\ndone",
    'while read -r line; do\n  echo "$line"\ndone < <(ls\n)',
    "until false; do\n break\ndone",
    "case $1 in\n  a|b) echo x ;;\n  (c) echo y ;;\n  *) echo z\nesac",
    "f() {\n  echo '}'\n}",
    "function g\n{\n  echo\n}",
    "h()\n(\n  echo\n)",
    "{ echo a\n echo b\n} >out",
    "(\n  cd x\n  make\n)",
    "cat <<EOF\nif ' \" ( { $(\nEOF",
    "cat <<'EOF' | sort\nfi\n $x `\nEOF",
    "cat <<-END\n\tx\n\tEND",
    "cat <<A <<B\n1\nA\n2\nB",
    "x=$(\n  ls # it's\n)",
    "x=$(cat <<E\n)\nE\n)",
    "echo $((1 +\n 2)) ${x:-'}\n'} `echo\n`",
    "a=(\n 1\n 2\n)",
    "[[ $x =~ ^(a|b)$ &&\n $y < z ]]",
    "(( x > 1 )) && echo a; echo b",
    "echo a#b '#' \\# # it's a comment",
    "echo done if fi then { }",
    "time { sleep 0\n}",
    "! grep x y || {\n echo no\n}",
    "echo $'it\\'s\n'",
    "diff <(sort a) >(sort b) 2>&1 &>x >>y",
    'cat <<<"$x" >|y',
]


@pytest.mark.parametrize("command", WHOLE)
def test_a_command_stays_whole_between_others(command: str) -> None:
    texts = [part.text for part in top_level(f"first\n{command}\nlast\n") if part.text.strip()]
    assert texts == ["first", command, "last"]


@pytest.mark.parametrize(
    "text",
    [
        "if x; then\n",
        "echo 'a\n",
        "x=$(ls\n",
        "cat <<E\nx\n",
        "f() {\n",
        "fi\n",
        "a |\n",
        ")\n",
        "a (b)\n",
        "coproc x\n",
        "cat <<$x\nx\n",
    ],
)
def test_what_is_not_understood_is_not_cut(text: str) -> None:
    with pytest.raises(NotCutError):
        top_level(text)


def test_comments_are_commands_of_their_own_without_anything_to_run() -> None:
    parts = top_level("# one\n\necho a # two\n  # three\n")
    assert [part.comment for part in parts] == [True, True, False, True]


def test_quoted_and_inner_text_is_blank_where_it_does_not_count() -> None:
    (command,) = top_level("a='x y' \"b $c\" $(d 'e') # f\n")
    assert "x" not in command.live
    assert "$c" in command.live
    assert "d" in command.live
    assert "f" not in command.live
    assert command.bare.replace("\0", "").split() == ["a="]
    assert len(command.live) == len(command.bare) == len(command.text) + 1


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@given(st.lists(st.sampled_from(WHOLE), min_size=2, max_size=5))
@settings(max_examples=25, deadline=None)
def test_bash_takes_each_piece_by_itself(commands: list[str]) -> None:
    """What is cut off is a whole command for bash too, and nothing is lost."""
    text = "\n".join(commands) + "\n"
    parts = top_level(text)
    assert "".join(part.text + "\n" for part in parts) == text
    for part in {part.text for part in parts}:
        checked = subprocess.run(["bash", "-n", "-c", part], capture_output=True, text=True, check=False)
        assert (checked.returncode, checked.stderr) == (0, ""), part
