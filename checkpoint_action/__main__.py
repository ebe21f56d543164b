"""The console script, which is also ``python -m checkpoint_action``."""

from __future__ import annotations

import sys

__all__ = ["entry"]


def entry() -> None:
    """Run the command line. From here on Ctrl-C never ends in a traceback."""
    try:
        if sys.argv[1:2] == ["plan"] and _recalled():
            sys.exit(0)
        import signal  # noqa: PLC0415  # a Ctrl-C may come while these are read

        from checkpoint_action.cli import main, open_standard_streams  # noqa: PLC0415

        open_standard_streams()
        code = main(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _recalled() -> bool:
    """Answer a plan that is known already: long before all that deciding needs is loaded."""
    import os  # noqa: PLC0415  # next to the only ones that this needs

    from checkpoint_action.runner.recall import recalled, write_answer  # noqa: PLC0415

    answer = recalled(sys.argv[1:], os.environ)
    return answer is not None and write_answer(answer)


if __name__ == "__main__":
    entry()
