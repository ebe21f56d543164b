"""Completion for zsh."""

from __future__ import annotations

import re

from checkpoint_action.arguments import STEPS_OF_WORDS
from checkpoint_action.completion.options import FILE_VERBS, WORDS_OF, Option, filled, options_of
from checkpoint_action.grammar import ABOUT_STEPS, VERBS

__all__ = ["zsh_script"]

_ZSH = """\
#compdef checkpoint-run
# zsh completion for checkpoint-run. Load it with:  source <(checkpoint-run completion zsh)
_checkpoint_run_steps() {
  local -a ids
  ids=(${(f)"$(${words_of_run[1]} @CALL@ ${words_of_run[2,-1]} 2>/dev/null)"})
  compadd -a ids
}

_checkpoint_run() {
  local curcontext=$curcontext verb=run
  local -a words_of_run verbs
  words_of_run=("${words[@]}")
  verbs=(
@VERBS@
  )
  if (( CURRENT == 2 )) && [[ ${words[2]} != -* ]]; then
    _describe verb verbs
    return
  fi
  if (( ${+verbs[(r)${words[2]}:*]} )) && [[ -n ${verbs[(r)${words[2]}:*]} ]]; then
    verb=${words[2]}
    words=("${words[1]}" "${(@)words[3,-1]}")
    (( CURRENT-- ))
  fi
  case $verb in
@CASES@
  esac
}

if [ "${funcstack[1]}" = "_checkpoint-run" ]; then _checkpoint_run "$@"; else compdef _checkpoint_run checkpoint-run; fi
"""


def zsh_script() -> str:
    """The script."""
    words = dict.fromkeys((*ABOUT_STEPS, "run", "plan", "graph"), "'*:step:_checkpoint_run_steps'")
    words |= {"logs": "'1:step:_checkpoint_run_steps'", **dict.fromkeys(FILE_VERBS, "'1:file:_files'")}
    words |= {verb: f"'1:word:({' '.join(after)})'" for verb, after in WORDS_OF.items()}
    cases = []
    for verb in VERBS:
        specs = [f"      {_zsh_option(flag, option)}" for option in options_of(verb) for flag in option.flags]
        specs += [f"      {words[verb]}"] if verb in words else []
        cases.append(f"    {verb}) _arguments -S \\\n" + " \\\n".join(specs) + " ;;")
    cases.append(f"    help) _arguments -S {words['help']} ;;")
    shown = {**VERBS, "help": "all options of a verb"}
    verbs = "\n".join(f"    {_quoted(f'{verb}:{text}')}" for verb, text in shown.items())
    return filled(_ZSH, CALL=STEPS_OF_WORDS, VERBS=verbs, CASES="\n".join(cases))


def _zsh_option(flag: str, option: Option) -> str:
    said = re.sub(r"([\[\]:\\])", r"\\\1", option.help)
    if option.value == "none":
        return _quoted(f"*{flag}[{said}]")
    action = {
        "file": "_files",
        "folder": "_files -/",
        "step": "_checkpoint_run_steps",
        "choice": f"({' '.join(option.choices)})",
    }.get(option.value, "")
    way = "=" if flag.startswith("--") else "+"
    return _quoted(f"*{flag}{way}[{said}]{'::' if option.optional else ':'}value:{action}")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
