"""The main job in a workflow: lose it in step three, run it again on a fresh machine."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.act.proxy import Proxy, free_port

if TYPE_CHECKING:
    from pathlib import Path

    from tests.act.harness import Act, ActRun

pytestmark = [pytest.mark.act, pytest.mark.slow]

LISTING = r"""
import hashlib, json, os, stat, sys
rows = {}
for folder, folders, files in os.walk("."):
    folders[:] = [name for name in folders if os.path.join(folder, name) != "./.git"]
    for name in folders + files:
        path = os.path.join(folder, name)
        info = os.lstat(path)
        if stat.S_ISLNK(info.st_mode):
            content = os.readlink(path)
        elif stat.S_ISDIR(info.st_mode):
            content = "folder"
        else:
            content = hashlib.sha256(open(path, "rb").read()).hexdigest()
        rows[os.fsencode(path).decode("latin-1")] = [stat.S_IMODE(info.st_mode), info.st_mtime_ns, content]
json.dump(rows, open(sys.argv[1], "w"))
"""

WORKFLOW = """
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - id: job
        continue-on-error: true
        uses: agenticaotearoa/checkpoint-run@v1
        with:
          steps: |
            - id: make
              run: |
                echo ran >> "$KEEP/make.ran"
                mkdir -p out/deep/empty out/.hidden
                head -c 300000 /dev/urandom > out/random.bin
                printf '#!/bin/sh\\necho tool\\n' > out/tool; chmod 755 out/tool
                echo secret > out/.hidden/private; chmod 600 out/.hidden/private
                echo locked > out/locked; chmod 444 out/locked
                ln -s random.bin out/link; ln -s nowhere out/dangling; ln -s deep out/folder-link
                printf odd > "out/ name with  spaces and : colon"
                printf raw > "$(printf 'out/not\\377utf8')"
                touch -d '2001-02-03 04:05:06.123456789' out/random.bin
                touch -h -d '2002-02-03 04:05:06.123456789' out/link
                rm doomed.txt
                echo changed >> kept.txt
            - id: refine
              run: |
                echo ran >> "$KEEP/refine.ran"
                echo more >> out/tool
                rm out/locked
                env > "$KEEP/refine.env"
            - id: ship
              run: |
                echo ran >> "$KEEP/ship.ran"
                python3 "$KEEP/listing.py" "$KEEP/listing-$(wc -l < "$KEEP/ship.ran" | tr -d ' ').json"
                cat out/.hidden/private
                test -e "$KEEP/allow"
      - if: always()
        run: exit "${{ steps.job.outcome == 'success' && '0' || '7' }}"
"""
FILES = {"kept.txt": "kept\n", "doomed.txt": "doomed\n", "src/a.c": "int main;\n"}


@pytest.fixture
def keep(tmp_path: Path) -> Path:
    """A folder outside every machine, for markers; `$KEEP` in the workflow."""
    folder = tmp_path / "keep"
    folder.mkdir()
    (folder / "listing.py").write_text(LISTING)
    return folder


def run(act: Act, keep: Path, **options: Any) -> ActRun:
    return act.run(WORKFLOW, files=FILES, env={"KEEP": str(keep)}, **options)


def times(out: Path, step: str) -> int:
    path = out / f"{step}.ran"
    return len(path.read_text().splitlines()) if path.exists() else 0


def warnings(run: ActRun) -> int:
    return sum(1 for event in run.events if event.get("command") == "warning")


_TEXTS = ("result", "state", "artifact")


def outputs(run: ActRun) -> dict[str, Any]:
    found = run.outputs["job"]
    return {name: value if name in _TEXTS else json.loads(value) for name, value in found.items()}


def steps(found: dict[str, Any]) -> dict[str, Any]:
    """The outputs that tell of the steps; the others hold times and places, or belong to a plan."""
    others = ("state", "artifact", "seconds-saved", "incomplete", "matrix", "pending", "levels")
    return {name: value for name, value in found.items() if name not in others}


@pytest.mark.parametrize("hide_runtime", [False, True], ids=["as-act-does", "as-github-does"])
def test_rerun_on_a_fresh_machine_skips_what_is_done_and_puts_its_files_back(
    act: Act, keep: Path, hide_runtime: bool
) -> None:
    first = run(act, keep, artifact_server=True, hide_runtime=hide_runtime)
    assert first.returncode != 0, first.log
    assert steps(outputs(first)) == {
        "result": "failure", "ran": ["make", "refine", "ship"], "skipped": [], "restored": [], "failed": ["ship"],
        "outputs": {},
    }  # fmt: skip

    (keep / "allow").touch()
    second = run(act, keep, artifact_server=True, hide_runtime=hide_runtime, attempt=2)
    assert second.returncode == 0, second.log
    assert steps(outputs(second)) == {
        "result": "success", "ran": ["ship"], "skipped": [], "restored": ["make", "refine"], "failed": [],
        "outputs": {},
    }  # fmt: skip
    assert [times(keep, step) for step in ("make", "refine", "ship")] == [1, 1, 2]

    before = json.loads((keep / "listing-1.json").read_text())
    after = json.loads((keep / "listing-2.json").read_text())
    made = {path for path in before if path.startswith("./out")}
    assert len(made) >= 11
    assert {path: after.get(path) for path in made} == {path: before[path] for path in made}
    assert "./doomed.txt" not in after
    assert set(after) == set(before)
    assert after["./kept.txt"] == before["./kept.txt"]


def test_third_run_has_nothing_left_to_do(act: Act, keep: Path) -> None:
    (keep / "allow").touch()
    assert run(act, keep).returncode == 0
    again = run(act, keep, attempt=2)
    assert again.returncode == 0, again.log
    assert outputs(again)["ran"] == []
    assert sorted(outputs(again)["skipped"] + outputs(again)["restored"]) == ["make", "refine", "ship"]
    assert [times(keep, step) for step in ("make", "refine", "ship")] == [1, 1, 1]


def test_another_run_id_starts_afresh(act: Act, keep: Path) -> None:
    (keep / "allow").touch()
    assert run(act, keep, run_id=1).returncode == 0
    assert run(act, keep, run_id=2).returncode == 0
    assert times(keep, "make") == 2


def test_no_step_command_sees_the_runtime_values(act: Act, keep: Path) -> None:
    (keep / "allow").touch()
    done = run(act, keep, artifact_server=True)
    assert done.returncode == 0, done.log
    environment = (keep / "refine.env").read_text()
    assert "CHECKPOINT_STEP=refine" in environment
    names = {line.partition("=")[0] for line in environment.splitlines()}
    assert not {
        name for name in names if name.startswith(("ACTIONS_RUNTIME", "ACTIONS_CACHE", "ACTIONS_RESULTS", "CPR_"))
    }


def test_cache_stopped_before_the_run_costs_one_warning(act: Act, keep: Path, cache_proxy: Proxy) -> None:
    (keep / "allow").touch()
    cache_proxy.die()
    done = run(act, keep, proxy=cache_proxy)
    assert done.returncode == 0, done.log
    assert outputs(done)["ran"] == ["make", "refine", "ship"]
    assert warnings(done) == 1, done.log


def test_cache_killed_during_the_run_costs_one_warning(act: Act, keep: Path) -> None:
    (keep / "allow").touch()
    dying = Proxy(free_port(), dies_after=2000)
    try:
        done = run(act, keep, proxy=dying)
    finally:
        dying.die()
    assert dying.connections > 0
    assert done.returncode == 0, done.log
    assert outputs(done)["ran"] == ["make", "refine", "ship"]
    assert warnings(done) == 1, done.log


def test_machine_that_dies_in_a_step_loses_only_that_step(act: Act, keep: Path) -> None:
    waiting = WORKFLOW.replace('test -e "$KEEP/allow"', 'test -e "$KEEP/allow" || sleep 300')
    started = act.start(waiting, files=FILES, env={"KEEP": str(keep)})
    deadline = time.monotonic() + 60
    while '"kept in the Actions cache: ' not in started.log_so_far() or " refine (" not in started.log_so_far():
        assert time.monotonic() < deadline, started.log_so_far()
        time.sleep(0.1)
    started.kill()
    started.wait()
    (keep / "allow").touch()
    again = act.run(waiting, files=FILES, env={"KEEP": str(keep)}, attempt=2)
    assert again.returncode == 0, again.log
    assert outputs(again)["restored"] == ["make", "refine"]
    assert [times(keep, step) for step in ("make", "refine", "ship")] == [1, 1, 2]


def test_scope_content_reuses_checkpoints_until_a_tracked_file_changes(act: Act, keep: Path) -> None:
    workflow = WORKFLOW.replace("        with:\n", "        with:\n          scope: content\n", 1)
    (keep / "allow").touch()
    env = {"KEEP": str(keep)}
    first = act.run(workflow, files=FILES, env=env, run_id=1)
    assert first.returncode == 0, first.log
    same = act.run(workflow, files=FILES, env=env, run_id=2)
    assert same.returncode == 0, same.log
    assert outputs(same)["ran"] == []
    changed = act.run(workflow, files={**FILES, "src/a.c": "int main();\n"}, env=env, run_id=3)
    assert changed.returncode == 0, changed.log
    assert outputs(changed)["ran"] == ["make", "refine", "ship"]


MAKE = """
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - id: job
        continue-on-error: true
        uses: agenticaotearoa/checkpoint-run@v1
        with:
          steps: |
            - id: build
              run: make app
            - id: test
              run: |
                make app
                test -e "$KEEP/allow"
      - if: always()
        run: exit "${{ steps.job.outcome == 'success' && '0' || '7' }}"
"""
MAKEFILE = "app: src/a.c src/b.h\n\techo built >> $(KEEP)/built\n\tcat src/a.c src/b.h > app\n"


def test_make_finds_what_was_restored_up_to_date(act: Act, keep: Path) -> None:
    files = {"Makefile": MAKEFILE, "src/a.c": "int a;\n", "src/b.h": "int b;\n"}
    env = {"KEEP": str(keep)}
    first = act.run(MAKE, files=files, env=env)
    assert first.returncode != 0, first.log
    (keep / "allow").touch()
    second = act.run(MAKE, files=files, env=env, attempt=2)
    assert second.returncode == 0, second.log
    assert outputs(second)["restored"] == ["build"]
    assert (keep / "built").read_text() == "built\n", "make built again though everything was restored"


PROGRESS = """
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - id: job
        continue-on-error: true
        uses: agenticaotearoa/checkpoint-run@v1
        with:
          steps: |
            - id: one
              run: |
                echo ran >> "$KEEP/one.ran"
                echo "NAME=value" >> "$GITHUB_ENV"
                echo "version=1.2" >> "$GITHUB_OUTPUT"
            - id: build
              partial: [build/]
              run: |
                mkdir -p build
                echo $NAME >> build/part
                echo "$STEPS_ONE_OUTPUTS_VERSION" >> "$CHECKPOINT_DIR/part"
                cat build/part "$CHECKPOINT_DIR/part" > "$KEEP/parts"
                test -e "$KEEP/allow"
      - run: echo "$NAME ${{ fromJSON(steps.job.outputs.outputs).one.version }}" >> "$KEEP/seen"
      - if: always()
        run: exit "${{ steps.job.outcome == 'success' && '0' || '7' }}"
"""


def test_progress_and_values_reach_the_next_machine_and_the_rest_of_the_workflow(act: Act, keep: Path) -> None:
    env = {"KEEP": str(keep)}
    first = act.run(PROGRESS, files=FILES, env=env)
    assert first.returncode != 0, first.log
    (keep / "allow").touch()
    second = act.run(PROGRESS, files=FILES, env=env, attempt=2)
    assert second.returncode == 0, second.log
    assert times(keep, "one") == 1
    assert (keep / "parts").read_text().split() == ["value", "value", "1.2", "1.2"]
    assert (keep / "seen").read_text() == "value 1.2\nvalue 1.2\n"
    assert outputs(second)["outputs"] == {"one": {"version": "1.2"}}
