"""What the action costs before its first step: set up cold, with an empty tool cache, and warm.

::

    python -m benchmarks.setup                  five rounds cold, ten warm
    python -m benchmarks.setup --rounds 3
    python -m benchmarks.setup --profile        where the time of one warm start goes, by module

Starts ``runtime/run.py`` as ``action.yml`` does (``exec "$python" -I -S -X utf8 …`` in bash, the handover on
standard input), with a job of one step that does nothing and no store.

- Cold: nothing in the tool cache, as on a hosted runner. It alternates with a bare ``pip install --target`` of the same
  list with the same options from the same index. Where there is a uv, the action uses it; ``uv pip install`` is
  beside it. The installers' own caches are emptied before each run.
- Warm: the packages are in the tool cache, as on a machine of one's own, and the action was just downloaded, as the
  runner does for each job: its modules have to be compiled. It alternates with ``python3 -c "import yaml"``.
- Again: a second use of the action in the same job.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import yaml

from benchmarks.lines import Line, at_most, load_now, more_at_most
from benchmarks.measure import Spent, titled
from runtime import bootstrap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.lines import Goal

__all__ = ["Machine", "lines", "main"]

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "runtime" / "requirements.txt"
_BASH = ("bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c")
_YAML = '`python3 -c "import yaml"`'
_COLD = 1.3  # times a bare pip install
_WARM = 0.3  # seconds above importing yaml
_KEPT = ("PATH", "LANG", "PIP_", "UV_", "SSL_", "HTTP", "https_", "http_", "NO_PROXY", "no_proxy", "REQUESTS_")


class Machine:
    """A folder in the place of a runner.

    :param folder: its own.
    :param python: what ``python3`` is there.
    :param uv: the uv that the action finds there, if any.
    """

    def __init__(self, folder: Path, python: str, uv: str | None = None) -> None:
        self._folder = folder
        self._python = python
        for name in ("workspace", "temp", "home", "bin"):
            (folder / name).mkdir(parents=True)
        for name in ("checkpoint_action", "runtime"):
            shutil.copytree(ROOT / name, folder / "action" / name, ignore=shutil.ignore_patterns("__pycache__"))
        if uv is not None:
            (folder / "bin" / "uv").symlink_to(uv)
        caches = {"PIP_CACHE_DIR": str(folder / "pip"), "UV_CACHE_DIR": str(folder / "uv")}
        self._installed = [folder / "tools", folder / "target", *map(Path, caches.values())]
        path = [str(folder / "bin"), *(part for part in os.get_exec_path() if not Path(part, "uv").exists())]
        kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
        self._env = {**kept, **caches, "PATH": os.pathsep.join(path), "HOME": str(folder / "home")}
        self._script, defaults = _python_step()
        self._of_action = {
            **defaults,
            "CPR_RUNTIME": "{}",
            "CPR_INPUT_STEPS": "- id: nothing\n  run: ':'\n",
            "CPR_INPUT_STORE": "none",
            "CPR_INPUT_PYTHON": python,
            "GITHUB_ACTION_PATH": str(folder / "action"),
            "GITHUB_WORKSPACE": str(folder / "workspace"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "RUNNER_TEMP": str(folder / "temp"),
            "RUNNER_TOOL_CACHE": str(folder / "tools"),
        }

    def forget(self) -> None:
        """Nothing is installed any more, and nothing downloaded."""
        for folder in self._installed:
            shutil.rmtree(folder, ignore_errors=True)
        self.new_job()

    def new_job(self) -> None:
        """RUNNER_TEMP is empty again, and the action is as it was downloaded."""
        for folder in [*(self._folder / "action").rglob("__pycache__"), *(self._folder / "temp").iterdir()]:
            shutil.rmtree(folder)

    def next_use(self) -> None:
        """The same job goes on; the state that the last use left is another's."""
        for folder in (self._folder / "temp").iterdir():
            shutil.rmtree(folder)

    def action(self) -> None:
        """Run the action's Python step."""
        (self._folder / "output").write_text("")
        said = self._run([*_BASH, self._script], **self._of_action)
        if "\nsuccess\n" not in (self._folder / "output").read_text():
            raise SystemExit(f"the job did not succeed:\n{said}")

    def pip(self) -> None:
        """Install the same wheels with a bare pip."""
        self._run([self._python, "-m", "pip", "install", *self._options(), "--disable-pip-version-check"])

    def uv(self) -> None:
        """Install the same wheels with a bare uv."""
        uv = str(self._folder / "bin" / "uv")
        self._run([uv, "pip", "install", "--python", self._python, *self._options()])

    def yaml(self) -> None:
        """Start Python and import one package."""
        self._run([self._python, "-c", "import yaml"])

    def profile(self) -> str:
        """What the imports of one warm run cost, as ``python -X importtime`` says it."""
        script = self._script.replace(" -X utf8 ", " -X utf8 -X importtime ")
        return self._run([*_BASH, script], **self._of_action)

    def _options(self) -> list[str]:
        return ["--quiet", "--target", str(self._folder / "target"), *bootstrap.OPTIONS, "-r", str(REQUIREMENTS)]

    def _run(self, command: Sequence[str], **variables: str) -> str:
        done = subprocess.run(
            command,
            cwd=self._folder / "workspace",
            env={**self._env, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = done.stdout.decode(errors="replace")
        if done.returncode:
            raise SystemExit(f"{command[0]} ended with {done.returncode}:\n{said}")
        return said


def _python_step() -> tuple[str, dict[str, str]]:
    """The script of the action's Python step, and its variables where no input is given."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    [run] = [step for step in action["runs"]["steps"] if step.get("id") == "run"]
    defaults = {f"${{{{ inputs.{name} }}}}": str(given.get("default", "")) for name, given in action["inputs"].items()}
    variables = {name: defaults.get(value, "") for name, value in run["env"].items()}
    return run["run"], {name: "" if "${{" in value else value for name, value in variables.items()}


def _times(
    contestants: Mapping[str, Callable[[], None]], rounds: int, before: Callable[[], None]
) -> dict[str, list[Spent]]:
    """What each run of each took, all alternating.

    :param before: what happens, unmeasured, before each run.
    """
    found: dict[str, list[Spent]] = {name: [] for name in contestants}
    for number in range(rounds + 1):  # the first warms up
        names = list(contestants)
        for name in reversed(names) if number % 2 else names:
            before()
            used, begin = os.times(), time.perf_counter()
            contestants[name]()
            wall, now = time.perf_counter() - begin, os.times()
            processor = now.children_user + now.children_system - used.children_user - used.children_system
            if number:
                found[name].append(Spent(wall, processor))
        print(f"round {number} of {rounds}", file=sys.stderr)
    return found


def _row(what: str, ours: Sequence[Spent], bare: str, others: Sequence[Spent]) -> str:
    (mine, my_cpu), (yours, your_cpu) = _median(ours), _median(others)
    spread = f"{min(one.wall for one in ours):.2f} to {max(one.wall for one in ours):.2f} s"
    ratio = f"{mine / yours:.2f} ({my_cpu / max(your_cpu, 0.001):.2f})"
    return f"| {what} | {mine:.2f} s | {spread} | {bare} | {yours:.2f} s | {ratio} | {mine - yours:+.2f} s |"


def _median(many: Sequence[Spent]) -> Spent:
    return Spent(median(one.wall for one in many), median(one.processor for one in many))


def _slowest(said: str, most: int) -> str:
    """The modules that take longest to load, without what they load themselves, in milliseconds."""
    rows = []
    for line in said.splitlines():
        if line.startswith("import time:") and "|" in line:
            own, _, rest = line.removeprefix("import time:").partition("|")
            if own.strip().isdigit():
                rows.append((int(own) / 1000, rest.partition("|")[2].strip()))
    top = sorted(rows, reverse=True)[:most]
    total = f"{sum(own for own, _ in rows):8.1f} ms in {len(rows)} modules"
    return "\n".join([total, *(f"{own:8.1f} ms {name}" for own, name in top)])


def _uv() -> str | None:
    """The uv beside this Python, or on PATH."""
    return shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), *os.get_exec_path()]))


def lines(*, rounds: int | None = None, folder: Path | None = None, quick: bool = False) -> list[Line]:
    """What goes into the table of all benchmarks."""
    rounds = rounds or (1 if quick else 5)
    found = []
    with tempfile.TemporaryDirectory(prefix="setup-", dir=folder) as top:
        plain = Machine(Path(top, "plain"), sys.executable)

        def add(work: str, peer: str, goal: Goal | None, load: float | None, times: dict[str, list[Spent]]) -> None:
            ours, theirs = (_median(many).wall for many in times.values())
            found.append(Line(work=work, peer=peer, ours=ours, theirs=theirs, goal=goal, load=load))

        load = load_now()
        times = _times({"action": plain.action, "pip": plain.pip}, rounds, plain.forget)
        pip = titled("pip", sys.executable, "-m", "pip", "--version")
        add("action set-up, cold", f"{pip} install --target", at_most(_COLD), load, times)
        if (uv := _uv()) is not None:
            quick_one, load = Machine(Path(top, "quick"), sys.executable, uv), load_now()
            times = _times({"action": quick_one.action, "uv": quick_one.uv}, rounds, quick_one.forget)
            add(
                "action set-up, cold, with uv",
                f"{titled('uv', uv, '--version')} pip install --target",
                None,
                load,
                times,
            )
        plain.forget()
        plain.action()
        load = load_now()
        times = _times({"action": plain.action, "yaml": plain.yaml}, 2 * rounds, plain.new_job)
        add("action set-up, warm", _YAML, more_at_most(_WARM), load, times)
    return found


def main(argv: Sequence[str]) -> int:
    """Measure and print the table; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.setup", description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="cold runs of each (5); warm ones are twice as many")
    parser.add_argument("--python", default=sys.executable, help="the machine's Python, with pip and PyYAML (this one)")
    parser.add_argument("--profile", action="store_true", help="only say which modules take how long in a warm run")
    options = parser.parse_args(argv)
    uv = _uv()
    with tempfile.TemporaryDirectory(prefix="setup-") as top:
        plain = Machine(Path(top, "plain"), options.python)
        if options.profile:
            plain.action()
            print(_slowest(plain.profile(), 40))
            return 0
        cold = _times({"action": plain.action, "pip": plain.pip}, options.rounds, plain.forget)
        rows = [_row("cold, pip", cold["action"], "`pip install --target`", cold["pip"])]
        if uv is not None:
            quick = Machine(Path(top, "quick"), options.python, uv)
            times = _times({"action": quick.action, "uv": quick.uv}, options.rounds, quick.forget)
            rows.append(_row("cold, uv", times["action"], "`uv pip install --target`", times["uv"]))
        plain.forget()
        plain.action()
        warm = _times({"action": plain.action, "yaml": plain.yaml}, 2 * options.rounds, plain.new_job)
        rows.append(_row("warm", warm["action"], _YAML, warm["yaml"]))
        again = _times({"action": plain.action, "yaml": plain.yaml}, 2 * options.rounds, plain.next_use)
        rows.append(_row("again", again["action"], _YAML, again["yaml"]))
    print("| set-up | the action | | beside | takes | ratio | more |\n| --- | ---: | ---: | --- | ---: | ---: | ---: |")
    print("\n".join(rows))
    good = _median(cold["action"]).wall <= _COLD * _median(cold["pip"]).wall
    good = good and _median(warm["action"]).wall <= _median(warm["yaml"]).wall + _WARM
    goals = f"cold at most {_COLD:g} x pip, warm at most {_WARM:g} s more than importing yaml"
    print("\nMedians; from the fastest to the slowest run; in brackets the ratio of processor times.")
    print(f"Goals ({goals}): {'met' if good else 'missed'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
