"""The console script, which is also ``python -m checkpoint_action``."""

from __future__ import annotations

import os
import sys

__all__ = ["entry"]

# What a command line whose answer may be kept begins with.
_MAYBE_KNOWN = {
    "run",
    "plan",
    "-f",
    "--file",
    "--job",
    "--state-dir",
    "--verify",
    "--verify=full",
    "--verify=stat",
    "-q",
    "--quiet",
    "--no-logs",
}

# Ready to be written: where there is no memory to load what knows the error, there is none to put a line together.
_NO_MEMORY = (
    b"checkpoint-run: error CPR306: there is too little memory, or a limit leaves too little of it; what is recorded "
    b"stays recorded: make room or raise the limit, then run again, and the next run goes on\n"
)
_EXHAUSTED = 5


def entry() -> None:
    """Run the command line. From here on neither Ctrl-C nor a lack of memory ends in a traceback."""
    try:
        if _known(sys.argv[1:]):
            sys.exit(0)
        import signal  # noqa: PLC0415  # a Ctrl-C may come while these are read

        from checkpoint_action.cli import main, open_standard_streams  # noqa: PLC0415

        open_standard_streams()
        code = main(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        if not _is_lack(error):
            raise
        code = _EXHAUSTED
        _tell(_NO_MEMORY)
    sys.exit(code)


def _is_lack(error: Exception) -> bool:
    """Whether an error comes of a lack of memory or threads."""
    if isinstance(error, MemoryError):
        return True
    try:
        from checkpoint_action.errors import lack_behind  # noqa: PLC0415  # mostly it is loaded, and few need it
    except MemoryError:
        return True
    return lack_behind(error) is not None


def _tell(line: bytes) -> None:
    try:  # noqa: SIM105  # what else does it is loaded by few of the starts
        os.write(2, line)
    except OSError:  # nobody reads
        pass


def _known(words: list[str]) -> bool:
    """Answer what needs no thinking: long before all that thinking needs is loaded."""
    if words[:1] == ["status"]:
        from checkpoint_action.report.glance import glanced  # noqa: PLC0415  # only what the verb needs
        from checkpoint_action.runner.recall import Reply, write_reply  # noqa: PLC0415

        answer = glanced(words)
        return answer is not None and write_reply(Reply(answer, 1))
    if words and words[0] not in _MAYBE_KNOWN:
        return False
    from checkpoint_action.report.plain import duration  # noqa: PLC0415  # only what such words need
    from checkpoint_action.runner.recall import recalled, write_reply  # noqa: PLC0415

    reply = recalled(words, os.environ, duration)
    return reply is not None and write_reply(reply)


def _leave_out_current_folder() -> None:
    """``-m`` has modules looked for in the current folder first, which may be anybody's checkout with a ``yaml.py``."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120  # pathlib is slow to load
    try:
        here = os.getcwd()  # noqa: PTH109
    except OSError:  # it is gone, and holds no modules
        return
    if sys.path and sys.path[0] in ("", here) and here != own:
        del sys.path[0]


if __name__ == "__main__":
    _leave_out_current_folder()
    entry()
