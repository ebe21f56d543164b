"""Completion for PowerShell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint_action.arguments import STEPS_OF_WORDS
from checkpoint_action.completion.options import ID_VERBS, WORDS_OF, all_options, filled, flags
from checkpoint_action.grammar import VERBS

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["powershell_script"]

_POWERSHELL = """\
# PowerShell completion for checkpoint-run. Load it with:
#   checkpoint-run completion powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName checkpoint-run -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $verbs = [ordered]@{
@VERBS@
    }
    $options = @{
@OPTIONS@
    }
    $choices = @{
@CHOICES@
    }
    $following = @{
@WORDS@
    }
    $words = @($commandAst.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursorPosition } |
        ForEach-Object { $_.ToString() })
    $verb = 'run'
    if ($words.Count -gt 1 -and $verbs.Contains($words[1])) { $verb = $words[1] }
    if ($words.Count -gt 1 -and $words[1] -eq 'help') { $verb = 'help' }
    $last = if ($words.Count) { $words[-1] } else { '' }
    $flag = @($words | Select-Object -Skip 1 | Where-Object { $_ -like '-*' })[-1]
    $found = @()
    if ($choices.ContainsKey($last)) {
        $found = $choices[$last]
    } elseif (@(@FILES@) -ccontains $last) {
        return
    } elseif ($wordToComplete -notlike '-*' -and (@(@STEP@) -ccontains $last -or @(@ID_VERBS@) -ccontains $verb -or
            @(@SEVERAL@) -ccontains $flag)) {
        $found = @(& $words[0] @CALL@ @($words | Select-Object -Skip 1) 2>$null)
    } elseif ($words.Count -eq 2 -and $following.ContainsKey($verb) -and $wordToComplete -notlike '-*') {
        $found = $following[$verb]
    } elseif ($words.Count -le 1 -and $wordToComplete -notlike '-*') {
        $found = @($verbs.Keys) + 'help'
    } elseif ($wordToComplete -like '-*') {
        $found = $options[$verb]
    }
    $found | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object {
        $tip = if ($verbs.Contains($_)) { $verbs[$_] } else { $_ }
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $tip)
    }
}
"""


def powershell_script() -> str:
    """The script."""

    def texts(words: Iterable[str]) -> str:
        return ", ".join("'" + word.replace("'", "''") + "'" for word in words)

    every = all_options()
    choices = {flag: option.choices for flag, option in every.items() if option.value == "choice"}
    return filled(
        _POWERSHELL,
        VERBS="\n".join(f"        {texts([verb])} = {texts([text])}" for verb, text in VERBS.items()),
        OPTIONS="\n".join(f"        {texts([verb])} = @({texts(flags(verb))})" for verb in VERBS),
        CHOICES="\n".join(f"        {texts([flag])} = @({texts(words)})" for flag, words in choices.items()),
        FILES=texts([flag for flag, option in every.items() if option.value in ("file", "folder")]),
        STEP=texts([flag for flag, option in every.items() if option.value == "step"]),
        SEVERAL=texts([flag for flag, option in every.items() if option.value == "step" and option.several]),
        ID_VERBS=texts(ID_VERBS),
        CALL=STEPS_OF_WORDS,
        WORDS="\n".join(f"        {texts([verb])} = @({texts(words)})" for verb, words in WORDS_OF.items()),
    )
