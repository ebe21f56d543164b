"""Long jobs made resumable: named steps, each finished one kept, the next run does only what is left.

In Python: ``run(Job("release", [Step("build", "make")]))``; see :mod:`checkpoint_action.api`.
"""

TYPE_CHECKING = False  # as in typing, whose import would take longer than all the rest of a start
if TYPE_CHECKING:
    from checkpoint_action.api.definition import Job, Retry, Step
    from checkpoint_action.api.result import Result
    from checkpoint_action.api.running import load_job, plan, run, status
    from checkpoint_action.errors import CheckpointError
    from checkpoint_action.runner.stop import StopRequest

__all__ = [
    "CheckpointError",
    "Job",
    "Result",
    "Retry",
    "Step",
    "StopRequest",
    "load_job",
    "plan",
    "run",
    "status",
]

__version__ = "1.0.0.dev0"

_HOMES = {
    **dict.fromkeys(("Job", "Retry", "Step"), "api.definition"),
    **dict.fromkeys(("load_job", "plan", "run", "status"), "api.running"),
    "Result": "api.result",
    "CheckpointError": "errors",
    "StopRequest": "runner.stop",
}


if not TYPE_CHECKING:  # a type checker takes it for leave to ask for any name

    def __getattr__(name: str) -> object:
        """Load what is asked for, so that the command line starts without it."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415  # who asks for nothing needs it not

        value: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
