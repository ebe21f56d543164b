"""Completion for fish."""

from __future__ import annotations

from checkpoint_action.arguments import STEPS_OF_WORDS
from checkpoint_action.completion.options import (
    FILE_VERBS,
    FIRST,
    ID_VERBS,
    WORDS_OF,
    Option,
    all_options,
    filled,
    options_of,
)
from checkpoint_action.grammar import VERBS

__all__ = ["fish_script"]

_FISH = """\
# fish completion for checkpoint-run. Load it with:  checkpoint-run completion fish | source
function __checkpoint_run_verb
    set -l words (commandline -opc)
    set -l verb run
    if contains -- "$words[2]" @VERBS@
        set verb $words[2]
    end
    contains -- $verb $argv
end

function __checkpoint_run_steps
    set -l words (commandline -opc)
    command $words[1] @CALL@ $words[2..-1] 2>/dev/null
end

# Whether ids of steps may follow: after --only and --force there may be several.
function __checkpoint_run_listing
    for word in (commandline -opc)[-1..2]
        if string match -q -- '-*' $word
            contains -- $word @SEVERAL@
            return
        end
    end
    return 1
end

complete -c checkpoint-run -f
"""


def fish_script() -> str:
    """The script."""
    several = " ".join(flag for flag, option in all_options().items() if option.several and option.value == "step")
    lines = [filled(_FISH, VERBS=" ".join(FIRST), CALL=STEPS_OF_WORDS, SEVERAL=several)]
    first = "'test (count (commandline -opc)) -eq 1'"
    lines += [f"complete -c checkpoint-run -n {first} -a {verb} -d {_fish_text(text)}" for verb, text in VERBS.items()]
    lines.append(f"complete -c checkpoint-run -n {first} -a help -d 'all options of a verb'")
    steps = "'(__checkpoint_run_steps)'"
    lines.append(f"complete -c checkpoint-run -n '__checkpoint_run_verb {' '.join(ID_VERBS)}' -a {steps}")
    lines.append(f"complete -c checkpoint-run -n __checkpoint_run_listing -a {steps}")
    lines.append(f"complete -c checkpoint-run -n '__checkpoint_run_verb {' '.join(FILE_VERBS)}' -F")
    second = "test (count (commandline -opc)) -eq 2"
    for verb, words in WORDS_OF.items():
        lines.append(
            f"complete -c checkpoint-run -n '__checkpoint_run_verb {verb}; and {second}' -a '{' '.join(words)}'"
        )
    verbs_of: dict[Option, list[str]] = {}
    for verb in VERBS:
        for option in options_of(verb):
            verbs_of.setdefault(option, []).append(verb)
    for option, verbs in verbs_of.items():
        names = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        value = {
            "none": "",
            "file": " -r -F",
            "folder": " -x -a '(__fish_complete_directories)'",
            "step": f" -x -a {steps}",
            "choice": f" -x -a '{' '.join(option.choices)}'",
            "other": " -x",
        }[option.value]
        value = value.replace(" -x", " -f") if option.optional else value
        when = f"'__checkpoint_run_verb {' '.join(verbs)}'"
        lines.append(f"complete -c checkpoint-run -n {when} {names}{value} -d {_fish_text(option.help)}")
    return "\n".join(lines) + "\n"


def _fish_text(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
