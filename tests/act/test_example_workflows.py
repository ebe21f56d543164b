"""The example workflows, as they stand: lost in the middle, and gone on with on a fresh machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.act.harness import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.act.harness import Act, ActRun

pytestmark = [pytest.mark.act, pytest.mark.slow]

EXAMPLES = ROOT / "examples" / "workflows"
# `make` in three parts. The last object takes for ever, until $KEEP/fast is there.
MAKEFILE = """
all: build/first.o build/second.o
\tcat $^ > build/app
build/first.o:
\tmkdir -p build
\techo first > $@
\techo made >> $(KEEP)/first.ran
build/second.o: build/first.o
\ttest -e $(KEEP)/fast || { echo compiling; sleep 300; }
\techo second > $@
check:
\techo ran >> $(KEEP)/check.ran
\tcat build/app
\ttest -e $(KEEP)/allow
dist: build/app
\tmkdir dist
\tcp build/app dist/app-1.2.bin
"""
FETCH = '#!/bin/sh\necho fetched > source\necho ran >> "$KEEP/fetch.ran"\ntest -e "$KEEP/allow"\n'
DISPATCH = '#!/bin/sh\nprintf "%s\\n" "$*" >> "$KEEP/gh.log"\n'


def example(name: str) -> str:
    return (EXAMPLES / name).read_text("utf-8")


def test_all_examples_are_tested() -> None:
    tested = set(re.findall(r'example\("([a-z-]+\.yml)"', Path(__file__).read_text("utf-8")))
    assert tested == {path.name for path in EXAMPLES.glob("*.yml")}


@pytest.fixture
def keep(tmp_path: Path) -> Path:
    """A folder outside every machine, for markers; `$KEEP` in the scripts."""
    folder = tmp_path / "keep"
    folder.mkdir()
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A folder with a `gh` that only writes down what it is asked."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "gh").write_text(DISPATCH)
    (folder / "gh").chmod(0o755)
    return folder


def lines(keep: Path, name: str) -> int:
    path = keep / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def outputs(run: ActRun) -> dict[str, Any]:
    """The action's outputs; where several workflow jobs used it, those of the last."""
    found = run.outputs["job"]
    return {name: json.loads(value) if value[:1] in ("[", "{") else value for name, value in found.items()}


def executable(act: Act, files: Mapping[str, str]) -> None:
    """Commit files that can be started."""
    for name, content in files.items():
        path = act.repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o755)


def test_resumable_ci(act: Act, keep: Path) -> None:
    (keep / "fast").touch()
    options: dict[str, Any] = {"files": {"Makefile": MAKEFILE}, "env": {"KEEP": str(keep)}}
    first = act.run(example("resumable-ci.yml"), **options)
    assert first.returncode != 0, first.log
    assert outputs(first)["failed"] == ["test"]
    assert lines(keep, "check.ran") == 3, "the retries of the flaky step"
    assert "taken from a checkpoint" not in first.log

    (keep / "allow").touch()
    second = act.run(example("resumable-ci.yml"), **options, attempt=2)
    assert second.returncode == 0, second.log
    assert outputs(second)["restored"] == ["build"]
    assert outputs(second)["ran"] == ["test", "package"]
    assert outputs(second)["outputs"] == {"package": {"file": "app-1.2.bin"}}
    assert lines(keep, "first.ran") == 1
    assert 'ran: ["test","package"]; taken from a checkpoint: ["build"]' in second.log.replace(", ", ",")
    assert re.search(r"\b13\b.* dist/app-1\.2\.bin", second.log), "first and second, from the other machine's build"


STAGE_FILES = {"Makefile": MAKEFILE, "fetch-sources.sh": FETCH}


def staged(act: Act, keep: Path, *, budget: str = "5h15m", **options: Any) -> ActRun:
    executable(act, STAGE_FILES)
    stage = example("build-stage.yml").replace("budget: 5h15m", f"budget: {budget}")
    return act.run(
        example("staged-build.yml"),
        files={".github/workflows/build-stage.yml": stage},
        env={"KEEP": str(keep)},
        **options,
    )


def ended(run: ActRun) -> list[str]:
    """How the stages that ran have ended, as the last job says it in its output and in its summary.

    act puts those that did not run anywhere among them, and now and then loses what so short a step prints.
    """
    found = {tuple(sorted(line.split())) for line in re.findall(r"The stages ended with:(.*)$", run.log, re.MULTILINE)}
    assert len(found) == 1, run.log
    return list(found.pop())


def test_failed_stage_ends_the_chain_and_a_rerun_goes_on_in_its_place(act: Act, keep: Path) -> None:
    (keep / "fast").touch()
    first = staged(act, keep)
    assert first.returncode != 0, first.log
    assert outputs(first)["failed"] == ["fetch"]
    assert lines(keep, "fetch.ran") == 1, "no second stage has tried it"

    (keep / "allow").touch()
    second = staged(act, keep, attempt=2)
    assert second.returncode == 0, second.log
    assert outputs(second)["ran"] == ["fetch", "compile", "package"]
    assert lines(keep, "fetch.ran") == 2, "the first stage got to the end, so there is no second"
    assert ended(second) == ["success"]


def test_stage_out_of_time_hands_on_to_the_next(act: Act, keep: Path) -> None:
    (keep / "allow").touch()
    first = staged(act, keep, budget="15s", timeout=240)
    assert first.returncode != 0, "no stage got to the end"
    assert lines(keep, "fetch.ran") == 1, "stages two and three took it from a checkpoint"
    assert lines(keep, "first.ran") == 1, "and went on with the half-built folder"
    assert ended(first) == ["incomplete"] * 3

    (keep / "fast").touch()
    second = staged(act, keep, attempt=2)
    assert second.returncode == 0, second.log
    assert outputs(second)["restored"] == ["fetch"]
    assert outputs(second)["ran"] == ["compile", "package"]
    assert lines(keep, "first.ran") == 1
    assert ended(second) == ["success"]


def dispatched(act: Act, keep: Path, tools: Path, *, round_number: int, **options: Any) -> ActRun:
    executable(act, STAGE_FILES)
    workflow = example("self-dispatching-build.yml")
    budget = options.pop("budget", "5h15m")
    return act.run(
        workflow.replace("budget: 5h15m", f"budget: {budget}"),
        event="workflow_dispatch",
        env={"KEEP": str(keep), "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
        arguments=["--input", f"round={round_number}"],
        run_id=round_number,
        **options,
    )


def test_failed_round_starts_no_other_and_the_next_run_of_the_commit_goes_on(act: Act, keep: Path, tools: Path) -> None:
    (keep / "fast").touch()
    first = dispatched(act, keep, tools, round_number=1)
    assert first.returncode != 0, first.log
    assert outputs(first)["failed"] == ["fetch"]

    (keep / "allow").touch()
    second = dispatched(act, keep, tools, round_number=2)
    assert second.returncode == 0, second.log
    third = dispatched(act, keep, tools, round_number=3)
    assert third.returncode == 0, third.log
    assert outputs(third)["ran"] == [], "another run, and the same commit"
    assert lines(keep, "first.ran") == 1
    assert lines(keep, "gh.log") == 0, "nothing was left to do"

    act.commit({"another": "file"})
    fourth = dispatched(act, keep, tools, round_number=4)
    assert outputs(fourth)["ran"] == ["fetch", "compile", "package"], "a push begins anew"


def test_round_out_of_time_starts_the_next(act: Act, keep: Path, tools: Path) -> None:
    (keep / "allow").touch()
    first = dispatched(act, keep, tools, round_number=1, budget="20s")
    assert first.returncode == 0, first.log
    assert outputs(first)["incomplete"] == "true"
    asked = (keep / "gh.log").read_text().splitlines()
    assert asked == ["workflow run Self-dispatching build --repo octo/demo --ref main --raw-field round=2"]

    (keep / "fast").touch()
    second = dispatched(act, keep, tools, round_number=2, budget="20s")  # the same commit
    assert second.returncode == 0, second.log
    assert outputs(second)["restored"] == ["fetch"]
    assert lines(keep, "first.ran") == 1
    assert lines(keep, "gh.log") == 1


@pytest.mark.parametrize(("number", "started"), [("1", "round=2"), ("7", "round=8"), ("8", ""), ("x[$(id)]", "")])
def test_rounds_are_bounded(keep: Path, tools: Path, number: str, started: str) -> None:
    step = yaml.safe_load(example("self-dispatching-build.yml"))["jobs"]["next"]["steps"][0]
    env = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "KEEP": str(keep),
        "GITHUB_REPOSITORY": "octo/demo",
        "GITHUB_REF_NAME": "main",
        "WORKFLOW": "Self-dispatching build",
        "MOST": str(step["env"]["MOST"]),
        "ROUND": number,
    }
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    asked = (keep / "gh.log").read_text() if (keep / "gh.log").exists() else ""
    assert (done.returncode == 0) == bool(started), done.stderr
    assert asked.endswith(f"{started}\n" if started else "")
    assert ("::error::" in done.stdout) != bool(started)


FETCH_DATA = """#!/bin/sh
mkdir -p "$1"
if [ -e "$1/part" ]; then echo rest >> "$1/part"; else echo half > "$1/part"; exit 1; fi
"""
TRAIN = """#!/usr/bin/env python3
import os, pathlib, subprocess, sys, time
folder, epochs, out = sys.argv[2], int(sys.argv[4]), pathlib.Path(sys.argv[6])
keep, newest = pathlib.Path(os.environ["KEEP"]), pathlib.Path(folder, "newest")
done = int(newest.read_text()) if newest.exists() else 0
for epoch in range(done + 1, epochs + 1):
    if epoch == 4 and not (keep / "fast").exists():
        print("waiting for the end", flush=True)
        time.sleep(300)
    with (keep / "epochs").open("a") as file:
        file.write(f"{epoch}\\n")
    newest.write_text(str(epoch))
    if epoch == 3:
        subprocess.run(["checkpoint-run", "save"], check=True)
out.mkdir()
(out / "weights").write_text(f"after {epochs}")
"""
EVALUATE = '#!/bin/sh\ncat "$1/weights" data/part\n'


def test_training_on_a_machine_that_is_taken_away(act: Act, keep: Path) -> None:
    executable(act, {"fetch-data.sh": FETCH_DATA, "train.py": TRAIN, "evaluate.py": EVALUATE})
    workflow = example("spot-training.yml")
    options: dict[str, Any] = {
        "event": "workflow_dispatch",
        "env": {"KEEP": str(keep)},
        "arguments": ["-P", "self-hosted=-self-hosted"],
    }
    lost = act.start(workflow, **options)
    deadline = time.monotonic() + 120
    while "waiting for the end" not in lost.log_so_far():
        assert lost.process.poll() is None, lost.log_so_far()
        assert time.monotonic() < deadline, lost.log_so_far()
        time.sleep(0.1)
    lost.kill()
    lost.wait()
    (keep / "fast").touch()

    again = act.run(workflow, **options, attempt=2)
    assert again.returncode == 0, again.log
    assert outputs(again)["restored"] == ["data"]
    assert outputs(again)["ran"] == ["train", "evaluate"]
    assert (keep / "epochs").read_text().split() == [str(epoch) for epoch in range(1, 91)], "none twice"
    assert re.search(r"after 90\s*half\s*rest", again.log), again.log


BUILD = """#!/bin/sh
echo "$1" >> "$KEEP/built"
mkdir -p "$1/out" "$1/node_modules"
cat "$1/source" shared/source > "$1/out/app"
echo large > "$1/node_modules/package"
"""
TEST = """#!/bin/sh
cd "$(dirname "$0")"
pwd >> "$KEEP/tested"
cat out/app
test -e "$KEEP/allow" || test "${PWD##*/}" != cli
"""
PACKAGES = ("core", "cli", "web")


def legs(keep: Path, name: str) -> list[str]:
    path = keep / name
    found = [Path(line).name for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return sorted(found)


def test_monorepo(act: Act, keep: Path) -> None:
    executable(act, {"build.sh": BUILD, **{f"packages/{name}/test.sh": TEST for name in PACKAGES}})
    files = {".gitignore": "node_modules/\nout/\n", "shared/source": "shared\n"}
    files |= {f"packages/{name}/source": f"{name}\n" for name in PACKAGES}
    workflow, env = example("monorepo-matrix.yml"), {"KEEP": str(keep)}
    first = act.run(workflow, files=files, env=env, run_id=1)
    assert first.returncode != 0, first.log
    assert legs(keep, "built") == sorted(PACKAGES)
    assert legs(keep, "tested") == sorted(PACKAGES)

    (keep / "allow").touch()
    second = act.run(workflow, files={"packages/web/source": "web, new\n"}, env=env, run_id=2)
    assert second.returncode == 0, second.log
    assert legs(keep, "built") == ["web"], "a new commit in a new run, and one package changed"
    assert legs(keep, "tested") == ["cli", "web"], "cli had failed, core was done"
    assert "web, new" in second.log

    third = act.run(workflow, files={"shared/source": "shared, new\n"}, env=env, run_id=3)
    assert third.returncode == 0, third.log
    assert legs(keep, "built") == sorted(PACKAGES)
    assert legs(keep, "tested") == sorted(PACKAGES)


def test_gitea(act: Act, keep: Path) -> None:
    (keep / "fast").touch()
    options: dict[str, Any] = {"files": {"Makefile": MAKEFILE}, "env": {"KEEP": str(keep)}}
    first = act.run(example("gitea.yml"), **options, run_id=1)
    assert first.returncode != 0, first.log
    assert outputs(first)["failed"] == ["test"]

    (keep / "allow").touch()
    second = act.run(example("gitea.yml"), **options, run_id=2)
    assert second.returncode == 0, second.log
    assert outputs(second)["restored"] == ["build"]
    assert outputs(second)["ran"] == ["test"]
    assert lines(keep, "first.ran") == 1
