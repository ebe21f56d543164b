"""What comes of a lack of memory or threads: one error that says so, whatever else came of it."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar

from checkpoint_action.errors import failure_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import ParamSpec

    _Given = ParamSpec("_Given")

__all__ = ["tells_of_lacks"]

_Result = TypeVar("_Result")


def tells_of_lacks(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Have a function raise :class:`ExhaustedError` where the machine has no more memory or threads for it.

    That error does not hold on to what the function was doing, so that the caller has the memory of it.
    """

    @wraps(function)
    def wrapped(*given: _Given.args, **named: _Given.kwargs) -> _Result:
        try:
            return function(*given, **named)
        except Exception as error:
            failure = failure_of(error)
            if failure is None or failure is error:
                raise
        raise failure

    return wrapped
