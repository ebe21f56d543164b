"""Every parser of ours given bytes that nobody meant: it takes them, or refuses them as documented, soon and in place.

The targets are in :mod:`tests.torture.fuzz_targets`, each of which runs in a process of its own with a limit on its
memory. Inputs are made by chance from those in good form, those kept in ``corpus`` and the target's words. With
``pip install atheris`` the long form is guided by coverage besides (libFuzzer), half of its inputs made by the same
mutations; the time then counts for each target.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.torture.fuzz_target import LONGEST_WAIT, MOST_MEMORY
from tests.torture.fuzz_targets import TARGETS
from tests.torture.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.torture.outcome import Scale

__all__ = ["torture"]

_GUIDED_FROM = 60.0  # seconds: what is shorter is over before it has learned anything
_GRACE = 120.0


def torture(folder: Path, scale: Scale, targets: Sequence[str] = tuple(TARGETS)) -> Outcome:
    """Fuzz each target with as many inputs, or for as long, as the scale says.

    :param targets: names of those that are fuzzed.
    """
    outcome = Outcome()
    for name in targets:
        _fuzz(name, folder / name, scale, outcome)
    return outcome


def _fuzz(name: str, folder: Path, scale: Scale, outcome: Outcome) -> None:
    folder.mkdir()
    guided = scale.seconds >= _GUIDED_FROM and importlib.util.find_spec("atheris") is not None
    words = [sys.executable, "-m", "tests.torture.fuzz_worker", name, str(folder)]
    words += ["--count", str(scale.count), "--seconds", str(scale.seconds), "--seed", str(scale.seed)]
    with (folder / "said").open("wb") as said:
        worker = subprocess.Popen(
            [*words, "--atheris"] if guided else words, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        try:
            code: int | None = worker.wait(scale.seconds + LONGEST_WAIT + _GRACE)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            worker.kill()
            worker.wait()
    result = folder / "result.json"
    found: dict[str, Any] = {"tried": 0, "taken": 0, "slowest": 0, "peak": 0, "faults": {}}
    if result.exists():
        found = json.loads(result.read_text())
    outcome.tried[f"{name}: inputs"] += found["tried"]
    outcome.tried[f"{name}: of these taken"] += found["taken"]
    outcome.tried[f"{name}: slowest, ms of work"] += round(1000 * found["slowest"])
    outcome.tried[f"{name}: memory at most, MiB"] += found["peak"] >> 20
    for text, path in found["faults"].values():
        outcome.faults.append(f"{name}: {text}; input {_shown(Path(path))}")
    if code != 0:
        last = (folder / "said").read_text(errors="replace")[-500:]
        how = "hangs" if code is None else f"ends with {code}"
        outcome.faults.append(f"{name}: the process {how}: {last!r}; input {_shown(folder / 'input')}")
    if found["peak"] > MOST_MEMORY:
        outcome.faults.append(f"{name}: {found['peak']} bytes of memory")


def _shown(path: Path) -> str:
    """An input as text, as far as there is room in a line."""
    data = path.read_bytes()
    return f"{data[:2000]!r}" + (f" (the first of {len(data)} bytes)" if len(data) > 2000 else "")
