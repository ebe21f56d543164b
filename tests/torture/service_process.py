"""The suite's Actions service in a process of its own, so that it can be killed, and slow, so that transfers last.

Prints what a job is told of it as one line of JSON, and ends when its standard input does.
"""

from __future__ import annotations

import json
import sys

from tests.actions_service.faults import Fault
from tests.actions_service.server import ActionsService

_TRANSFERS = ("PutBlob", "PutBlock", "PutBlockList", "GetBlob")
_SLOW = 0.15  # seconds a transfer


def main() -> None:
    """Serve."""
    with ActionsService.running() as service:
        for operation in _TRANSFERS:
            service.faults.next(operation, Fault.slow(_SLOW), times=10_000)
        print(json.dumps({"runtime": service.env(), "rest": service.rest.url}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
