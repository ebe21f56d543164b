"""The console script, which is also ``python -m checkpoint_action``."""

from __future__ import annotations

import sys

__all__ = ["entry"]


def entry() -> None:
    """Run the command line. From here on Ctrl-C never ends in a traceback."""
    try:
        if sys.argv[1:2] in (["plan"], ["status"]) and _known():
            sys.exit(0)
        import signal  # noqa: PLC0415  # a Ctrl-C may come while these are read

        from checkpoint_action.cli import main, open_standard_streams  # noqa: PLC0415

        open_standard_streams()
        code = main(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _known() -> bool:
    """Answer what needs no thinking: long before all that thinking needs is loaded."""
    import os  # noqa: PLC0415  # next to the only ones that this needs

    from checkpoint_action.runner.recall import recalled, write_answer  # noqa: PLC0415

    if sys.argv[1] == "plan":
        answer = recalled(sys.argv[1:], os.environ)
    else:
        from checkpoint_action.report.glance import glanced  # noqa: PLC0415  # only what the verb needs

        answer = glanced(sys.argv[1:])
    return answer is not None and write_answer(answer)


if __name__ == "__main__":
    entry()
