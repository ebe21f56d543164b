"""Where action.yml starts Python. Must also parse where Python is too old, so that it can say so in one line."""

import os
import sys

if sys.version_info < (3, 10):  # noqa: UP036  # whatever is on PATH runs this file
    sys.stdout.write(
        "::error::checkpoint-run needs Python 3.10 or newer, '{}' is {}; "
        "use the input python or actions/setup-python\n".format(
            os.environ.get("CPR_INPUT_PYTHON", "python3").replace("%", "%25").replace("\r", "").replace("\n", "%0A"),
            ".".join([str(part) for part in sys.version_info[:3]]),
        )
    )
    sys.exit(2)

# Ready to be written: where there is no memory to load what knows the error, there is none to put a line together.
NO_MEMORY = (
    b"::error title=checkpoint-run CPR306::there is too little memory, or a limit leaves too little of it; what is "
    b"recorded stays recorded: make room or raise the limit, then run again, and the next run goes on\n"
)
EXHAUSTED = 5


def entry() -> int:
    """Run the action; a lack of memory before it takes over is one line, too."""
    try:
        # Not pathlib: what it brings may find no memory, and our own modules have to be found then.
        sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))  # noqa: PTH120
        from runtime.start import main  # noqa: PLC0415  # may find no memory

        return main()
    except Exception as error:
        if not is_lack(error):
            raise
    os.write(1, NO_MEMORY)
    return EXHAUSTED


def is_lack(error: Exception) -> bool:
    """Whether an error comes of a lack of memory or threads."""
    if isinstance(error, MemoryError):
        return True
    try:
        from checkpoint_action.errors import lack_behind  # noqa: PLC0415
    except MemoryError:
        return True
    return lack_behind(error) is not None


if __name__ == "__main__":
    sys.exit(entry())
