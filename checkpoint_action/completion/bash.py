"""Completion for bash."""

from __future__ import annotations

from checkpoint_action.arguments import STEPS_OF_WORDS
from checkpoint_action.completion.options import (
    FILE_VERBS,
    FIRST,
    ID_VERBS,
    WORDS_OF,
    all_options,
    filled,
    flags,
    with_value,
)
from checkpoint_action.grammar import VERBS

__all__ = ["bash_script"]

_BASH = """\
# bash completion for checkpoint-run. Load it with:  source <(checkpoint-run completion bash)
_checkpoint_run() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} verb=@RUN@ flag= ids= i
  COMPREPLY=()
  case ${COMP_WORDS[1]} in @VERBS@) [ "$COMP_CWORD" -gt 1 ] && verb=${COMP_WORDS[1]} ;; esac
  # readline cuts --flag=value at the '='
  if [ "$cur" = "=" ]; then cur=; elif [ "$prev" = "=" ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
  case $prev in
    @STEP@) ids=1 ;;
    @FILE@) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
    @FOLDER@) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur"); return ;;
@CHOICES@
    @OTHER@) return ;;
  esac
  if [ -z "$ids" ] && [[ $cur != -* ]]; then
    for ((i = COMP_CWORD - 1; i > 0; i--)); do
      flag=${COMP_WORDS[i]}
      [[ $flag == -* ]] && break
      flag=
    done
    case $flag in @SEVERAL@) ids=1 ;; esac
    case $verb in
      @ID_VERBS@) ids=1 ;;
      @FILE_VERBS@) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
@WORDS@
    esac
  fi
  if [ -n "$ids" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" @CALL@ "${COMP_WORDS[@]:1}" 2>/dev/null)" -- "$cur")
    return
  fi
  if [ "$COMP_CWORD" -eq 1 ] && [[ $cur != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "@FIRST@" -- "$cur")
    return
  fi
  case $verb in
@OPTIONS@
  esac
}
complete -F _checkpoint_run checkpoint-run
"""


def bash_script() -> str:
    """The script."""
    several = "|".join(flag for flag, option in all_options().items() if option.several and option.value == "step")
    choices = [
        f'    {flag}) mapfile -t COMPREPLY < <(compgen -W "{" ".join(option.choices)}" -- "$cur"); return ;;'
        for flag, option in all_options().items()
        if option.value == "choice"
    ]
    options = [
        f'    {verb}) mapfile -t COMPREPLY < <(compgen -W "{" ".join(flags(verb))}" -- "$cur") ;;' for verb in VERBS
    ]
    words = [
        f'      {verb}) [ "$COMP_CWORD" -gt 2 ] || '
        f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(after)}" -- "$cur"); return ;;'
        for verb, after in WORDS_OF.items()
    ]
    other = "|".join(flag for flag, option in all_options().items() if option.value == "other" and not option.optional)
    return filled(
        _BASH,
        RUN="run",
        VERBS="|".join(FIRST),
        STEP=with_value("step"),
        FILE=with_value("file"),
        FOLDER=with_value("folder"),
        CHOICES="\n".join(choices),
        OTHER=other,
        SEVERAL=several,
        ID_VERBS="|".join(ID_VERBS),
        FILE_VERBS="|".join(FILE_VERBS),
        WORDS="\n".join(words),
        CALL=STEPS_OF_WORDS,
        FIRST=" ".join(FIRST),
        OPTIONS="\n".join(options),
    )
