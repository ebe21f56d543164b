"""The runner's values reach Python, and nobody else, with a stand-in for the action's own code."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.act.harness import RUNTIME_NAMES

if TYPE_CHECKING:
    from tests.act.harness import Act, ActRun
    from tests.act.proxy import Proxy

pytestmark = [pytest.mark.act, pytest.mark.slow]

STAND_IN = """
import json, os, subprocess, sys, urllib.request
import psutil, urllib3, yaml
from backports import zstd

def main(env, runtime):
    cache = None
    try:
        url = runtime.get("ACTIONS_CACHE_URL", "") + "_apis/artifactcache/cache?keys=nothing&version=1"
        cache = urllib.request.urlopen(url, timeout=5).status
    except (OSError, ValueError) as error:
        cache = type(error).__name__
    with open("/proc/self/environ") as file:
        started_with = [item.split("=")[0] for item in file.read().split("\\0")]
    seen = {
        "runtime": runtime,
        "environ": dict(os.environ),
        "env": env,
        "started_with": started_with,
        "stdin": sys.stdin.read(),
        "child": subprocess.run(["env"], stdout=subprocess.PIPE, text=True).stdout,
        "workspace": os.listdir(),
        "pid_is_entry": os.getsid(0) == os.getpid(),
        "output_files": open(os.environ["GITHUB_OUTPUT"]).read(),
        "packages": [module.__file__ for module in (psutil, urllib3, yaml, zstd)],
        "cache": cache,
    }
    with open(os.path.join(env["OUT"], "seen.json"), "w") as file:
        json.dump(seen, file)
    with open(env["GITHUB_OUTPUT"], "a") as file:
        file.write('result=success\\nran=["a"]\\n')
    print("said by the stand-in")
    return 0
"""

WORKFLOW = """
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    strategy:
      matrix: {leg: [one]}
    steps:
      - uses: actions/checkout@v4
      - id: job
        uses: agenticaotearoa/checkpoint-run@v1
        with:
          steps: |
            - id: a
              run: echo "it's ${HOME} and `tick`"
          exclude: |
            *.tmp
            $(touch pwned)
      - run: ls -A > "$OUT/after"
"""


def run(act: Act, **options: Any) -> tuple[ActRun, dict[str, Any]]:
    (act.action / "checkpoint_action" / "action.py").write_text(STAND_IN)
    result = act.run(WORKFLOW, **options)
    assert result.returncode == 0, result.log
    return result, json.loads((result.out / "seen.json").read_text())


@pytest.mark.parametrize("hide_runtime", [False, True])
def test_values_reach_python_and_nothing_else(act: Act, hide_runtime: bool) -> None:
    result, seen = run(act, artifact_server=True, hide_runtime=hide_runtime)
    assert set(seen["runtime"]) == {
        "ACTIONS_CACHE_URL",
        "ACTIONS_RESULTS_URL",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_RUNTIME_URL",
    }
    assert seen["cache"] == 204
    for place in ("environ", "env", "started_with"):
        assert not {*RUNTIME_NAMES, "CPR_RUNTIME"} & set(seen[place]), place
    token = seen["runtime"]["ACTIONS_RUNTIME_TOKEN"]
    for place in ("environ", "env", "child", "output_files"):
        assert token not in str(seen[place]), place
    assert token not in result.log
    assert seen["stdin"] == ""
    assert seen["pid_is_entry"]
    assert result.leftovers == []


def test_workspace_is_left_clean(act: Act) -> None:
    result, seen = run(act)
    assert sorted(seen["workspace"]) == [".git", ".github"]
    assert (result.out / "after").read_text().split() == [".git", ".github"]


def test_inputs_and_outputs(act: Act, tool_cache: object) -> None:
    result, seen = run(act)
    env = seen["env"]
    assert env["CPR_INPUT_STEPS"] == """- id: a\n  run: echo "it's ${HOME} and `tick`"\n"""
    assert env["CPR_INPUT_EXCLUDE"] == "*.tmp\n$(touch pwned)\n"
    assert (env["CPR_INPUT_SCOPE"], env["CPR_INPUT_STORE"], env["CPR_INPUT_USE"]) == ("run", "auto", "job")
    assert json.loads(env["CPR_INPUT_MATRIX"]) == {"leg": "one"}
    assert not [name for name in seen["environ"] if name.startswith("CPR_")]
    assert result.outputs["job"]["result"] == "success"
    assert result.outputs["job"]["ran"] == '["a"]'
    assert result.output_of("job") == "said by the stand-in\n"
    assert all(path.startswith(str(tool_cache)) or "/tool_cache/" in path for path in seen["packages"])


def test_a_planted_link_is_not_followed(act: Act) -> None:
    planted = WORKFLOW.replace(
        "      - id: job",
        '      - run: mkdir "$OUT/prey" && touch "$OUT/prey/kept" && ln -s "$OUT/prey" .checkpoint-run-runtime\n'
        "      - id: job",
    )
    (act.action / "checkpoint_action" / "action.py").write_text(STAND_IN)
    result = act.run(planted)
    assert result.returncode == 0, result.log
    assert [path.name for path in (result.out / "prey").iterdir()] == ["kept"]
    assert "ACTIONS_CACHE_URL" in json.loads((result.out / "seen.json").read_text())["runtime"]


def test_a_failed_handover_leaves_the_job_running(act: Act) -> None:
    (act.action / "runtime" / "handover" / "handover.cjs").write_text("process.exit(3)\n")
    result, seen = run(act)
    assert seen["runtime"] == {}
    assert result.outputs["job"]["result"] == "success"
    assert sorted(seen["workspace"]) == [".git", ".github"]


def test_a_folder_that_cannot_be_replaced_is_not_run(act: Act) -> None:
    manifest = act.action / "action.yml"
    hostile = 'mkdir -p "$folder" && echo "process.exit(9)" > "$folder/handover.cjs"; false'
    manifest.write_text(manifest.read_text().replace('rm -rf -- "$folder"', hostile))
    result, seen = run(act)
    assert result.results["job/place"] == "failure"
    assert "job/runtime" not in result.results or result.results["job/runtime"] == "skipped"
    assert seen["runtime"] == {}


def test_no_servers_at_all(act: Act) -> None:
    _, seen = run(act, cache_server=False)
    assert seen["runtime"] == {}


def test_own_cache_service(act: Act) -> None:
    given = {
        "ACTIONS_CACHE_URL": "http://127.0.0.1:1/x/",
        "ACTIONS_RESULTS_URL": "http://127.0.0.1:2/",
        "ACTIONS_RUNTIME_TOKEN": "a.b.c",
        "ACTIONS_CACHE_SERVICE_V2": "True",
    }
    result, seen = run(act, cache_server=False, env=given, hide_runtime=True)
    assert seen["runtime"] == given
    assert "a.b.c" not in seen["child"]
    assert "a.b.c" not in result.log


def test_cache_server_behind_the_proxy(act: Act, cache_proxy: Proxy) -> None:
    _, seen = run(act, proxy=cache_proxy)
    assert seen["cache"] == 204
    assert seen["runtime"]["ACTIONS_CACHE_URL"].startswith(cache_proxy.url)
    cache_proxy.die()
    _, seen = run(act, proxy=cache_proxy)
    assert seen["cache"] == "URLError"


def test_death_of_the_machine(act: Act) -> None:
    workflow = WORKFLOW.replace('ls -A > "$OUT/after"', "setsid sleep 301.5 & echo now; sleep 301.5")
    (act.action / "checkpoint_action" / "action.py").write_text(STAND_IN)
    running = act.start(workflow)
    while '"msg":"now' not in running.log_so_far():
        assert running.process.poll() is None, running.log_so_far()
        time.sleep(0.05)
    running.kill()
    assert running.wait(30).returncode == 137
    assert not [
        process.pid for process in psutil.process_iter(["cmdline"]) if "301.5" in (process.info["cmdline"] or ())
    ]


def test_ctrl_c(act: Act) -> None:
    workflow = WORKFLOW.replace('ls -A > "$OUT/after"', "echo now; sleep 300")
    workflow += '      - if: always()\n        run: touch "$OUT/last"\n'
    (act.action / "checkpoint_action" / "action.py").write_text(STAND_IN)
    running = act.start(workflow)
    while '"msg":"now' not in running.log_so_far():
        assert running.process.poll() is None, running.log_so_far()
        time.sleep(0.05)
    running.interrupt()
    result = running.wait(30)
    assert result.returncode != 0
    assert (result.out / "last").exists()
