"""The command line: one of the two faces. Only here are environment, terminal and exit codes."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext

from checkpoint_action import __version__
from checkpoint_action.arguments import STEPS_OF_WORDS, parse_arguments
from checkpoint_action.errors import Kind, UsageError, failure_of
from checkpoint_action.report.lines import say

TYPE_CHECKING = False  # `typing` itself takes longer to load than all of this
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from checkpoint_action.intent import Surroundings
    from checkpoint_action.model import Job, Record
    from checkpoint_action.run_end import Ending
    from checkpoint_action.runner.checkpoints import Checkpoints
    from checkpoint_action.runner.events import Listener
    from checkpoint_action.runner.hashing import ContentDigests
    from checkpoint_action.runner.journal import Journal, StatePaths
    from checkpoint_action.runner.selection import Selection
    from checkpoint_action.runner.stop import StopRequest
    from checkpoint_action.store_use import StoreUse

__all__ = ["main", "open_standard_streams"]

_BUG = 70
_INTERRUPTED = 130


def open_standard_streams() -> None:
    """Have descriptors 0 to 2 lead nowhere where they were closed, so that no file of ours gets one of the numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
            if number > 0:
                stream = os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
                setattr(sys, ("stdout", "stderr")[number - 1], stream)


def main(argv: Sequence[str]) -> int:
    """Run a command line.

    :returns: the documented exit code.
    """
    try:
        options = parse_arguments(argv)
        options.words = argv
        if options.directory:
            _go_to(options.directory)
        return _VERBS[options.verb](options)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        failure = failure_of(error)
        if failure is None:  # the third ending: a fault of ours, with all that is needed to report it
            return _report_bug(argv)
    # Out of the handlers what was going on is let go of, which may be what there is no memory for.
    say(sys.stderr, f"checkpoint-run: error {failure.code}: {failure}")
    return failure.exit_code


def _go_to(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise UsageError(f"-C {folder}: {error.strerror}", Kind.FOLDER) from None


def _report_bug(argv: Sequence[str]) -> int:
    import platform  # noqa: PLC0415  # only for a bug
    import tempfile  # noqa: PLC0415
    import traceback  # noqa: PLC0415

    trace = traceback.format_exc()
    text = f"checkpoint-run {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
    text += f"{len(argv)} arguments\n\n{trace}"
    rest = ""
    try:
        number, name = tempfile.mkstemp(prefix="checkpoint-run-bug-", suffix=".log")
        with os.fdopen(number, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
        where = f"please report it with the file {name}"
    except OSError:
        where, rest = "please report it with what follows", text
    say(sys.stderr, f"checkpoint-run: error {Kind.BUG.value}: this is a bug: {trace.splitlines()[-1]}; {where}")
    for line in rest.splitlines():
        say(sys.stderr, line)
    return _BUG


def _save(_options: argparse.Namespace) -> int:
    from checkpoint_action.runner.save_requests import VARIABLE, request_save  # noqa: PLC0415  # only what the verb needs

    prefix = os.environ.get(VARIABLE)
    if not prefix:
        raise UsageError("save is for a running step: call it from the step's command", Kind.NOT_IN_A_STEP)
    say(sys.stderr, f"checkpoint-run: {request_save(prefix)}")
    return 0


def _run(options: argparse.Namespace) -> int:
    from checkpoint_action.intent import lock_wait, marked_job_of, selection_of, state_paths  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.run_end import Ending, finish, remember  # noqa: PLC0415
    from checkpoint_action.runner.opening import opened  # noqa: PLC0415

    job, mark = marked_job_of(options)
    use = _store_use(options, job)
    if use is not None:
        job = use.prepared(job, os.environ)
    selection = selection_of(options, job)
    paths = state_paths(options, job.name)
    before: dict[str, Record] = {}
    if selection.everything:  # what a fresh start forgets still tells how long steps take
        from checkpoint_action.runner.journal import load  # noqa: PLC0415  # only what the verb needs

        before = load(paths).records
    ending = Ending(_BUG)
    try:
        with opened(
            job,
            paths,
            selection,
            os.environ,
            wait=lock_wait(options),
            logs=not options.no_logs,
            warn=_around().warn,
        ) as (ready, journal):
            ending.began = True
            journal.order = (mark, [step.id for step in job.steps]) if mark else None
            ending.code = _run_locked(
                options, ready, selection, journal, use, before=before or journal.records, ending=ending
            )
            if ending.code == 0 and use is None and not options.step:
                remember(options, job, mark, paths, journal.loaded)
            return ending.code
    except Exception as error:
        if (failure := failure_of(error)) is not None:
            ending.code = failure.exit_code
        raise
    finally:
        if options.on_finish and ending.began:
            finish(options, job, paths, ending)


def _run_locked(
    options: argparse.Namespace,
    job: Job,
    selection: Selection,
    journal: Journal,
    use: StoreUse | None,
    *,
    before: Mapping[str, Record],
    ending: Ending,
) -> int:
    from checkpoint_action.intent import SIGNING_KEY, state_paths  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.runner.descendants import adopt_orphans  # noqa: PLC0415
    from checkpoint_action.runner.engine import Engine  # noqa: PLC0415
    from checkpoint_action.runner.guardian import Guardian  # noqa: PLC0415
    from checkpoint_action.runner.run_options import RunOptions  # noqa: PLC0415
    from checkpoint_action.runner.signals import stop_on_signals  # noqa: PLC0415
    from checkpoint_action.runner.stop import StopRequest  # noqa: PLC0415
    from checkpoint_action.showing import Showing  # noqa: PLC0415

    stop = StopRequest()
    showing = Showing(options, job, _around(), stop=stop, selection=selection, records=before)
    adopt_orphans()
    guardian = Guardian()
    guardian.start()
    lost = None
    try:
        with (
            stop_on_signals(stop, ignore_hangup=options.on_hangup == "continue"),
            _digests(options, state_paths(options, job.name), stop) as digests,
            showing.open(),
            _checkpoints(
                showing.watched(use), options, job, journal, selection, listen=showing.listen, stop=stop
            ) as checkpoints,
        ):
            engine = Engine(
                job,
                journal,
                {name: value for name, value in os.environ.items() if name != SIGNING_KEY},
                listener=showing.listen,
                write=showing.write,
                stop=stop,
                options=RunOptions(
                    selection=selection,
                    jobs=options.jobs,
                    mask_output=not os.isatty(showing.target),
                    terminal=os.isatty(1) and not options.no_pty and not options.json and sys.platform != "win32",
                ),
                guardian=guardian,
                state=state_paths(options, job.name),
                digests=digests,
                checkpoints=checkpoints,
            )
            ended = ending.told = engine.run()
            journal.close()
    finally:
        guardian.stop()
        lost = showing.write_page()
    if ended.exit_code == 0:
        if lost is not None:
            raise lost
        showing.check()
    elif lost is not None:
        say(sys.stderr, f"checkpoint-run: warning: {lost.told}")
    return ended.exit_code


def _store_use(options: argparse.Namespace, job: Job) -> StoreUse | None:
    """What is asked of a store, where anything is."""
    from checkpoint_action.intent import asks_for_store  # noqa: PLC0415  # only what the verb needs

    if not asks_for_store(options, os.environ):
        return None
    from checkpoint_action.store_use import store_use_of  # noqa: PLC0415  # only where it is asked for

    return store_use_of(options, job, os.environ)


def _checkpoints(
    use: StoreUse | None,
    options: argparse.Namespace,
    job: Job,
    journal: Journal,
    selection: Selection,
    *,
    listen: Listener,
    stop: StopRequest,
) -> AbstractContextManager[Checkpoints | None]:
    if use is None:
        return nullcontext()
    from checkpoint_action.intent import state_paths  # noqa: PLC0415  # only what the verb needs
    from checkpoint_action.store_use import kept  # noqa: PLC0415

    paths = state_paths(options, job.name)
    return kept(use, job, paths, journal, os.environ, listen=listen, stop=stop, fresh=selection.everything)


def _digests(
    options: argparse.Namespace, paths: StatePaths, stop: StopRequest
) -> AbstractContextManager[ContentDigests | None]:
    """What is known of files from earlier runs, where that is to be trusted."""
    if options.verify == "full":
        return nullcontext()
    from checkpoint_action.runner.digest_index import kept_digests  # noqa: PLC0415  # only where it is asked for

    return kept_digests(paths.index, lambda: stop.signum is not None, lost=lambda text: _around().warn([text]))


def _view(options: argparse.Namespace) -> int:
    from checkpoint_action import views  # noqa: PLC0415  # only what the verb needs

    verb: Callable[[argparse.Namespace, Surroundings], int] = getattr(views, options.verb)
    return verb(options, _around())


def _amend(options: argparse.Namespace) -> int:
    from checkpoint_action import amend  # noqa: PLC0415  # only what the verb needs

    verb: Callable[[argparse.Namespace, Surroundings], int] = getattr(amend, options.verb)
    return verb(options, _around())


def _aid(options: argparse.Namespace) -> int:
    from checkpoint_action import aids  # noqa: PLC0415  # only what the verb needs

    verb: Callable[[argparse.Namespace, Surroundings], int]
    verb = aids.step_ids if options.verb == STEPS_OF_WORDS else getattr(aids, options.verb)
    return verb(options, _around())


def _share(options: argparse.Namespace) -> int:
    from checkpoint_action import sharing  # noqa: PLC0415  # only what the verb needs

    verb: Callable[[argparse.Namespace, Surroundings, Callable[[str], bool] | None], int]
    verb = getattr(sharing, options.verb)
    return verb(options, _around(), _ask if sys.stdin.isatty() and sys.stderr.isatty() else None)


def _ask(question: str) -> bool:
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _around() -> Surroundings:
    from checkpoint_action.intent import Surroundings  # noqa: PLC0415  # only what the verb needs

    return Surroundings(os.environ, sys.stdout, sys.stderr)


_VERBS = {
    "run": _run,
    "plan": _view,
    "graph": _view,
    "status": _view,
    "report": _view,
    "reset": _amend,
    "accept": _amend,
    "logs": _view,
    "save": _save,
    "pull": _share,
    "push": _share,
    "store": _share,
    "init": _aid,
    "schema": _aid,
    "completion": _aid,
    "doctor": _aid,
    STEPS_OF_WORDS: _aid,
}
