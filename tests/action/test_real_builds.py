"""The proof: a real build that is interrupted in its middle goes on elsewhere, and compiles nothing a second time."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.action.machine import Workflow
    from tests.action.running import Ended, Running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc"),
]

UNITS = 24
MAIN = "\n".join(f'#include "unit_{number}.h"' for number in range(UNITS))
MAIN += '\n#include <stdio.h>\nint main(void) { printf("%d\\n", '
MAIN += " + ".join(f"unit_{number}()" for number in range(UNITS)) + "); return 0; }\n"

MAKEFILE = """\
SOURCES := $(wildcard src/*.c)
OBJECTS := $(SOURCES:src/%.c=build/%.o)
build/app: $(OBJECTS)
	$(CC) $^ -o $@
build/%.o: src/%.c | build
	$(CC) -MMD -MP -c $< -o $@
build:
	mkdir -p $@
-include $(OBJECTS:.o=.d)
"""

NINJA = """\
builddir = build
rule compile
  command = $$KEEP/cc -MMD -MF $out.d -c $in -o $out
  depfile = $out.d
  deps = gcc
rule link
  command = $$KEEP/cc $in -o $out
"""

# Notes what it compiles. From the compilation of the number in $KEEP/limit on it leaves half an object and hangs, as a
# compiler that is cut short does; the second one that hangs, which is all that runs then, says so.
COMPILER = r"""#!/bin/bash
set -e
case " $* " in *" -c "*) ;; *) echo linked >> "$KEEP/linked"; exec gcc "$@" ;; esac
while [ "$1" != -c ]; do flags+=("$1"); shift; done
source=$2 object=$4
number=1
until mkdir "$KEEP/numbers/$number" 2> /dev/null; do number=$((number + 1)); done
echo "$source" >> "$KEEP/started"
limit=$(cat "$KEEP/limit")
if [ "$number" -gt "$limit" ]; then
  if [ "$number" = $((limit + 2)) ]; then
    eval "$WHEN_STUCK"
    echo half > "${HALF:-$object}"
    echo "$number" > "$KEEP/stuck"
  else
    echo half > "${HALF:-$object}"
  fi
  exec sleep 1000
fi
gcc "${flags[@]}" -c "$source" -o "$object"
echo "$source" >> "$KEEP/finished"
"""


def prepare(workflow: Workflow, tool: str) -> str:
    """Write the sources and the compiler; the command that builds."""
    sources: dict[str, str | bytes] = {"src/main.c": MAIN, "src/common.h": "#define ONE 1\n"}
    for number in range(UNITS):
        sources[f"src/unit_{number}.h"] = f"int unit_{number}(void);\n"
        sources[f"src/unit_{number}.c"] = (
            f'#include "common.h"\n#include "unit_{number}.h"\nint unit_{number}(void) {{ return ONE; }}\n'
        )
    units = sorted(path.removeprefix("src/").removesuffix(".c") for path in sources if path.endswith(".c"))
    sources["Makefile"] = MAKEFILE
    rules = [f"build build/{unit}.o: compile src/{unit}.c" for unit in units]
    rules.append(f"build build/app: link {' '.join(f'build/{unit}.o' for unit in units)}")
    sources["build.ninja"] = NINJA + "\n".join(rules) + "\ndefault build/app\n"
    workflow.sources = sources
    (workflow.keep / "numbers").mkdir()
    compiler = workflow.keep / "cc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    workflow.fifo("stuck")
    return 'make -j2 CC="$KEEP/cc"' if tool == "make" else "ninja -j2"


def interrupt(workflow: Workflow, running: Running, how: str) -> Ended:
    """Interrupt a build as soon as it is stuck."""
    running.hear(workflow.keep / "stuck")
    return running.cancel() if how == "is cancelled" else running.die()


def check(workflow: Workflow, hung: int) -> None:
    """Every source was compiled once to its end, and begun once more only if it was cut short."""
    finished, started = workflow.kept("finished"), workflow.kept("started")
    expected = sorted(path for path in workflow.sources if path.endswith(".c"))
    assert sorted(finished) == expected, "an object that was finished was compiled again"
    assert len(started) == len(expected) + hung
    assert workflow.kept("linked") == ["linked"]


@pytest.mark.parametrize(
    ("tool", "how", "outputs"),
    [
        ("make", "is cancelled", "auto"),
        ("make", "dies", "[build/app]"),
        ("ninja", "is cancelled", "[build/app]"),
        ("ninja", "dies", "auto"),
    ],
)
def test_no_finished_object_is_compiled_again_on_the_next_machine(
    workflow: Workflow, tool: str, how: str, outputs: str
) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"needs {tool}")
    steps = f"""\
- id: build
  partial: [build/]
  outputs: {outputs}
  run: {prepare(workflow, tool)}
- {{id: run, run: build/app > "$KEEP/said", outputs: []}}
"""
    # A compiler that writes its object in place is safe where the build tool hears of the interruption, or where it
    # notes itself what is finished, as ninja does. make on a machine that dies needs one that does not.
    env = {
        "WHEN_STUCK": "checkpoint-run save" if how == "dies" else ":",
        "HALF": "/dev/null" if (tool, how) == ("make", "dies") else "",
    }
    begun = workflow.machine()
    for limit in (8, 18):
        (workflow.keep / "limit").write_text(str(limit))
        ended = interrupt(workflow, begun.start(steps, env=env), how)
        assert len(workflow.kept("finished")) == limit - 2 * (limit > 8)
        begun_objects = [path.stat().st_mtime_ns for path in (ended.workspace / "build").glob("*.o")]
        begun = workflow.machine()
        fresh = (begun.workspace / "src/common.h").stat().st_mtime_ns
        assert fresh > min(begun_objects), "the checkout has no new times: this proves nothing"
    (workflow.keep / "limit").write_text("1000")
    last = begun.run(steps, env=env)
    assert last.code == 0, last.log
    check(workflow, hung=4)
    assert workflow.kept("said") == [str(UNITS)]
    if (tool, outputs) == ("make", "auto"):
        after = workflow.machine()
        ended = after.run(steps + "- {id: again, always: true, run: 'make -q CC=\"$KEEP/cc\"'}\n", env=env)
        assert ended.code == 0, ended.log
        assert ended.outputs["restored"] == ["build"]
        check(workflow, hung=4)


def test_a_build_that_saves_in_the_background_loses_nothing_that_was_saved(workflow: Workflow) -> None:
    if shutil.which("ninja") is None:
        pytest.skip("needs ninja")
    steps = f"""\
- id: build
  partial: [build/]
  run: |
    while checkpoint-run save 2>> "$KEEP/saved"; do :; done &
    trap "kill $!" EXIT
    {prepare(workflow, "ninja")}
    build/app > "$KEEP/said"
"""
    (workflow.keep / "limit").write_text("12")
    running = workflow.start(steps, env={"WHEN_STUCK": ":", "HALF": ""})
    running.hear(workflow.keep / "stuck")
    enough = len(workflow.kept("saved")) + 2  # the last of them began after that
    running.wait_until(lambda: len(workflow.kept("saved")) >= enough, "nothing is saved any more")
    running.die()
    assert all("are in the store" in line for line in workflow.kept("saved")), workflow.kept("saved")
    (workflow.keep / "limit").write_text("1000")
    last = workflow.run(steps)
    assert last.code == 0, last.log
    check(workflow, hung=2)
    assert workflow.kept("said") == [str(UNITS)]
