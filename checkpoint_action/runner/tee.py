"""A step's output on its way to who shows it and to its log."""

from __future__ import annotations

import errno
import os
import stat
import sys
from typing import TYPE_CHECKING

from checkpoint_action.runner.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Tee", "open_to_write"]

_OUTPUT = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class Tee:
    """Hands output on and writes it to a log; a log that fails is given up, the step is not.

    :param open_log: gives the log's descriptor, closed with the tee; none where there is no log.
    :param secrets: values that do not show in the log.
    :param mask_output: whether they do not show in what is handed on either.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        open_log: Callable[[], int | None],
        lost: Callable[[OSError], None],
        secrets: tuple[bytes, ...],
        *,
        mask_output: bool,
    ) -> None:
        self._open_log = open_log
        self._log: int | None = None
        self._is_open = False
        self._lost = lost
        self._whole = True
        self._redactors: list[Redactor] = []
        self._hand_on = self._masked(write, secrets) if secrets and mask_output else write
        self._keep = self._masked(self._append, secrets) if secrets else self._append

    def _masked(self, write: Callable[[bytes], None], secrets: tuple[bytes, ...]) -> Callable[[bytes], None]:
        redactor = Redactor(secrets, write)
        self._redactors.append(redactor)
        return redactor.write

    def open(self) -> None:
        """Open the log: making a file takes about as long as a short step."""
        self._is_open = True
        self._log = self._open_log()

    def write(self, data: bytes) -> None:
        """Hand on a piece."""
        self._hand_on(data)
        if self._log is not None:
            self._keep(data)

    def close(self) -> None:
        """Hand on what was held back and close the log, which is empty where nothing has run."""
        if not self._is_open:
            self.open()
        for redactor in self._redactors:
            redactor.close()
        if self._log is not None:
            os.close(self._log)

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view and self._whole and self._log is not None:
                view = view[os.write(self._log, view) :]
        except OSError as error:
            self._whole = False
            self._lost(error)


def open_to_write(path: str) -> int:
    """Open a file that takes output without ever waiting for a reader.

    :raises OSError: it cannot be opened, or is nothing that keeps what is written: a pipe, a socket.
    """
    found = os.open(path, _OUTPUT, 0o666)
    mode = os.fstat(found).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISCHR(mode):
        os.close(found)
        raise OSError(errno.EINVAL, "it is no regular file")
    if sys.platform != "win32":
        os.set_blocking(found, True)
    return found
