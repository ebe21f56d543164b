"""A Windows job object: all descendants of a step, ended together, and with us when we die."""

from __future__ import annotations

import ctypes
import sys
from ctypes import wintypes

__all__ = ["JobObject"]

_EXTENDED_LIMITS = 9  # JobObjectExtendedLimitInformation
_KILL_ON_CLOSE = 0x2000  # JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class JobObject:
    """Holds a step's processes, also those whose parent is gone.

    A process that the step starts before it is added stays outside; that is a moment at the very beginning, and the
    look at the shell's descendants finds it.

    :raises OSError: the system gives no job object.
    """

    def __init__(self) -> None:
        self._handle: int | None = None
        self._kernel: ctypes.CDLL
        if sys.platform != "win32":
            raise OSError("job objects are a thing of Windows")
        self._kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
        handle = self._kernel.CreateJobObjectW(None, None)
        if not handle:
            raise ctypes.WinError(ctypes.get_last_error())
        self._handle = handle
        self._limit(_KILL_ON_CLOSE)

    def _limit(self, flags: int) -> None:
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = flags
        size = ctypes.sizeof(limits)
        self._kernel.SetInformationJobObject(
            wintypes.HANDLE(self._handle), _EXTENDED_LIMITS, ctypes.byref(limits), wintypes.DWORD(size)
        )

    def add(self, process: int) -> bool:
        """Take a process in, with all that it starts from now on.

        :param process: its handle.
        :returns: whether the system agreed.
        """
        added = self._kernel.AssignProcessToJobObject(wintypes.HANDLE(self._handle), wintypes.HANDLE(process))
        return bool(added)

    def terminate(self) -> None:
        """End every process in it."""
        if self._handle is not None:
            self._kernel.TerminateJobObject(wintypes.HANDLE(self._handle), wintypes.UINT(1))

    def release(self) -> None:
        """Let what still runs go on, and give the object back."""
        if self._handle is not None:
            self._limit(0)
            self._kernel.CloseHandle(wintypes.HANDLE(self._handle))
            self._handle = None
