"""A shell script cut into its top-level commands. What is not understood is not cut."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["Command", "NotCutError", "top_level"]

_BLANK = "\0"
_META = frozenset(" \t\n;&|<>()")
_OPENS = {"if": "fi", "while": "done", "until": "done", "{": "}", "for": "done", "select": "done", "case": "esac"}
_GOES_ON = frozenset({"if", "while", "until", "{", "then", "else", "elif", "do", "!", "time"})
"""Words after which a command comes."""
_HEREDOC = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<word>(?:\\.|'[^'\n]*'|\"[^\"\n]*\"|[^\s;&|<>()'\"\\])+)")
_ODD_WORDS = frozenset({"coproc"})


class NotCutError(Exception):
    """The script has something whose end cannot be told for sure."""


@dataclass(frozen=True, slots=True)
class Command:
    """Lines of a script that belong together.

    :param text: as they stand there, without the line end.
    :param live: the same, but what is in single quotes, comments and quoted here-documents is blank.
    :param bare: the same, but what is quoted, in a subshell or a substitution is blank too.
    :param comment: whether it is nothing but comments and empty lines.
    """

    text: str
    live: str
    bare: str

    @property
    def comment(self) -> bool:
        """Whether there is nothing to run in it."""
        return not self.live.replace(_BLANK, "").strip()


def top_level(text: str) -> list[Command]:
    """The commands of a script in order, each with its whole lines; comments are commands of their own.

    :raises NotCutError: it ends inside of something, or has what only a whole shell would understand.
    """
    reader = _Reader(text)
    reader.read()
    return reader.commands()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._live = list(text)
        self._bare = list(text)
        self._open: list[str] = []
        self._start = True  # a command may begin here
        self._goes_on = False  # the line's end does not end the command
        self._heredocs: list[tuple[str, bool, bool]] = []
        self._cuts: list[int] = []

    def commands(self) -> list[Command]:
        edges = [0, *self._cuts, len(self._text)]
        pieces = [slice(begin, end) for begin, end in pairwise(edges) if end > begin]
        live, bare = "".join(self._live), "".join(self._bare)
        return [Command(self._text[at].removesuffix("\n"), live[at], bare[at]) for at in pieces]

    def read(self) -> None:
        at = 0
        while at < len(self._text):
            at = self._next(at)
        if self._open or self._heredocs or self._goes_on:
            raise NotCutError("it ends in the middle of a command")

    def _hide(self, begin: int, end: int, *, live: bool) -> None:
        for at in range(begin, end):
            if self._text[at] != "\n":
                self._bare[at] = _BLANK
                if live:
                    self._live[at] = _BLANK

    def _next(self, at: int) -> int:
        char = self._text[at]
        if char in " \t":
            return at + 1
        if self._text.startswith("\\\n", at):
            return at + 2
        if char == "\n":
            return self._line_end(at)
        if char == "#":
            end = self._text.find("\n", at)
            end = len(self._text) if end < 0 else end
            self._live[at:end] = self._bare[at:end] = " " * (end - at)
            return end
        begin_open = len(self._open)
        if char in ";&|":
            end = self._operator(at)
        elif char in "<>":
            end = self._redirection(at)
        elif char in "()":
            end = self._parenthesis(at)
        else:
            end = self._word(at)
        if ")" in self._open[:begin_open]:
            self._hide(at, end, live=False)
        return end

    def _line_end(self, at: int) -> int:
        end = at + 1
        for word, dash, quoted in self._heredocs:
            end = self._heredoc(end, word, dash, quoted=quoted)
        self._heredocs.clear()
        if not self._open and not self._goes_on:
            self._cuts.append(end)
        self._start = True
        return end

    def _heredoc(self, begin: int, word: str, dash: bool, *, quoted: bool) -> int:
        at = begin
        while at < len(self._text):
            end = self._text.find("\n", at)
            end = len(self._text) if end < 0 else end
            line = self._text[at:end]
            if (line.lstrip("\t") if dash else line) == word:
                self._hide(begin, end, live=quoted)
                return min(end + 1, len(self._text))
            at = end + 1
        raise NotCutError("a here-document has no end")

    def _operator(self, at: int) -> int:
        two = self._text[at : at + 2]
        if two in ("&&", "||", "|&"):
            self._goes_on = self._start = True
            return at + 2
        self._start = True
        self._goes_on = self._text[at] == "|"
        if two in (";;", ";&"):
            return at + (3 if self._text[at : at + 3] == ";;&" else 2)
        if two == "&>":
            self._start = False
            return at + 2
        return at + 1

    def _redirection(self, at: int) -> int:
        if self._text.startswith("<<<", at):
            return at + 3
        if self._text.startswith("<<", at):
            match = _HEREDOC.match(self._text, at)
            if match is None or "$" in match["word"] or "`" in match["word"]:
                raise NotCutError("a here-document's word is not plain")
            word = match["word"]
            plain = re.sub(r"\\(.)|['\"]", r"\1", word)
            self._heredocs.append((plain, bool(match["dash"]), plain != word))
            self._goes_on = False
            return match.end()
        if self._text[at + 1 : at + 2] == "(":  # a process substitution
            return self._enclosed(at + 2)
        end = at + 1
        while self._text[end : end + 1] in ("<", ">", "&", "|") and self._text[end : end + 1]:
            end += 1
        return end

    def _parenthesis(self, at: int) -> int:
        if self._text[at] == ")":
            if self._open and self._open[-1] == ")":
                self._open.pop()
                self._start = False
            elif self._open and self._open[-1] == "esac":
                self._start = True  # the end of a pattern
            else:
                raise NotCutError("a ')' too many")
            return at + 1
        loop = bool(self._open) and self._open[-1] == "done"  # for ((...))
        if (self._start or loop) and self._text.startswith("((", at):
            self._start = self._goes_on = False
            return self._balanced(at)
        if not self._start:
            match = re.compile(r"\([ \t]*\)").match(self._text, at)
            if match is None:
                raise NotCutError("a '(' inside of a command")
            self._start = self._goes_on = True  # a function: its body follows
            return match.end()
        self._open.append(")")
        self._start, self._goes_on = True, False
        return at + 1

    def _word(self, at: int) -> int:
        end, plain = self._skip_word(at)
        word = self._text[at:end] if plain else ""
        start, self._start = self._start, False
        self._goes_on = False
        if not start:
            if word == "in" and self._open and self._open[-1] == "esac":
                self._start = True
            return end
        if word in _ODD_WORDS:
            raise NotCutError(f"'{word}'")
        if word == "function":
            match = re.compile(r"[ \t]+[^\s;&|<>()]+([ \t]*\([ \t]*\))?").match(self._text, end)
            if match is None:
                raise NotCutError("'function' without a name")
            self._start = self._goes_on = True
            return match.end()
        if word == "[[":
            return self._condition(end)
        if word in ("fi", "done", "esac", "}"):
            if not self._open or self._open.pop() != word:
                raise NotCutError(f"a '{word}' too many")
        elif word in _OPENS:
            self._open.append(_OPENS[word])
        self._start = word in _GOES_ON
        return end

    def _condition(self, at: int) -> int:
        while at < len(self._text):
            if self._text[at].isspace() or self._text[at] in "();&|<>":
                at += 1
                continue
            end, plain = self._skip_word(at)
            if plain and self._text[at:end] == "]]":
                return end
            at = end
        raise NotCutError("a '[[' without its ']]'")

    def _skip_word(self, at: int) -> tuple[int, bool]:
        """The end of a word, and whether nothing in it is quoted or put in."""
        plain, begin = True, at
        while at < len(self._text) and (char := self._text[at]) not in _META:
            if char in "\\'\"`" or (char == "$" and self._text[at + 1 : at + 2] in ("(", "{", "'", '"')):
                plain = False
                at = self._piece(at)
            else:
                at += 1
            if self._text[at : at + 1] == "(" and at > begin:
                before = self._text[at - 1]
                if before == "=" or before in "?*+@!":  # an array, or a pattern of bash
                    plain, at = False, self._balanced(at)
        return at, plain

    def _piece(self, at: int) -> int:
        """The end of what a backslash, quotation mark or ``$`` begins."""
        text, char = self._text, self._text[at]
        if char == "\\":
            return min(at + 2, len(text))
        if char == "'" or text.startswith("$'", at):
            end = self._single(at)
            self._hide(at, end, live=True)
            return end
        if char == '"' or text.startswith('$"', at):
            end = self._double(at + (1 if char == '"' else 2))
        elif char == "`":
            end = self._until_backtick(at + 1)
        elif text.startswith("$((", at):
            end = self._balanced(at + 1)
        elif text.startswith("$(", at):
            end = self._enclosed(at + 2)
        else:
            end = self._braces(at + 2)
        self._hide(at, end, live=False)
        return end

    def _single(self, at: int) -> int:
        escapes = self._text[at] == "$"
        at += 2 if escapes else 1
        while at < len(self._text):
            if self._text[at] == "'":
                return at + 1
            at += 2 if escapes and self._text[at] == "\\" else 1
        raise NotCutError('a "\'" without its end')

    def _double(self, at: int) -> int:
        while at < len(self._text):
            char = self._text[at]
            if char == '"':
                return at + 1
            inner = char in "\\`" or (char == "$" and self._text[at + 1 : at + 2] in ("(", "{"))
            at = self._piece(at) if inner else at + 1
        raise NotCutError("a '\"' without its end")

    def _until_backtick(self, at: int) -> int:
        while at < len(self._text):
            if self._text[at] == "`":
                return at + 1
            at += 2 if self._text[at] == "\\" else 1
        raise NotCutError("a '`' without its end")

    def _braces(self, at: int) -> int:
        while at < len(self._text):
            char = self._text[at]
            if char == "}":
                return at + 1
            inner = char in "\\'\"`" or (char == "$" and self._text[at + 1 : at + 2] in ("(", "{"))
            at = self._piece(at) if inner else at + 1
        raise NotCutError("a '${' without its end")

    def _balanced(self, at: int) -> int:
        """The end of what the parenthesis here encloses, where words and quotes are all there is."""
        depth = 0
        while at < len(self._text):
            char = self._text[at]
            depth += (char == "(") - (char == ")")
            inner = char in "\\'\"`" or (char == "$" and self._text[at + 1 : at + 2] in ("(", "{"))
            at = self._piece(at) if inner else at + 1
            if depth == 0:
                return at
        raise NotCutError("a '(' without its end")

    def _enclosed(self, at: int) -> int:
        """The end of commands up to their ``)``."""
        outer = (self._open, self._start, self._goes_on, self._heredocs)
        self._open, self._start, self._goes_on, self._heredocs = [")"], True, False, []
        while self._open:
            if at >= len(self._text):
                raise NotCutError("a '$(' without its end")
            at = self._next(at)
        if self._heredocs:
            raise NotCutError("a here-document ends in another line than its command")
        self._open, self._start, self._goes_on, self._heredocs = outer
        return at
