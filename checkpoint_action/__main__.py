"""The console script, which is also ``python -m checkpoint_action``."""

from __future__ import annotations

import sys

__all__ = ["entry"]


def entry() -> None:
    """Run the command line. From here on Ctrl-C never ends in a traceback."""
    try:
        import signal  # noqa: PLC0415  # a Ctrl-C may come while these are read

        from checkpoint_action.cli import main, open_standard_streams  # noqa: PLC0415

        open_standard_streams()
        code = main(sys.argv[1:])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    entry()
