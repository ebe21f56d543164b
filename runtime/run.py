"""Where action.yml starts Python. Must also parse where Python is too old, so that it can say so in one line."""

import os
import sys
from pathlib import Path

if sys.version_info < (3, 10):  # noqa: UP036  # whatever is on PATH runs this file
    sys.stdout.write(
        "::error::checkpoint-run needs Python 3.10 or newer, '{}' is {}; "
        "use the input python or actions/setup-python\n".format(
            os.environ.get("CPR_INPUT_PYTHON", "python3").replace("%", "%25").replace("\r", "").replace("\n", "%0A"),
            ".".join([str(part) for part in sys.version_info[:3]]),
        )
    )
    sys.exit(2)

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from runtime.start import main

if __name__ == "__main__":
    sys.exit(main())
