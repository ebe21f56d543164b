"""The schema for editors: the parser's own keys and words, published as it is, and of one mind with the parser."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from checkpoint_action.errors import JobFileError
from checkpoint_action.jobfile.fields import LEFTOVERS, ON_CRASH, RETRY_KEYS
from checkpoint_action.jobfile.resolve import DEFAULTS_KEYS, JOB_KEYS, STEP_KEYS, JobDefaults, load_job
from checkpoint_action.jobfile.schema import job_schema, schema_text
from checkpoint_action.jobfile.values import SHELLS
from tests.console import Console

REPOSITORY = Path(__file__).parents[2]
PUBLISHED = REPOSITORY / "docs" / "checkpoint.schema.json"
CHECKER = Path(sys.executable).with_name("check-jsonschema")
STEP = "steps:\n- id: a\n  run: x\n"

GOOD = {
    "scalars of all kinds": (
        "job: 2024\nsteps:\n- {id: 1.10, run: true}\n- {id: b, run: 5, env: {A: 1, B: true, C: , D: 1.5, E: ''}}\n"
    ),
    "durations": (
        f"budget: 1h30m\n{STEP}  timeout: 90\n  idle-timeout: '1.5'\n  retry: {{backoff: 0, backoff-max: 1m30s}}\n"
    ),
    "odd durations": (
        f"budget: .5\n{STEP}  timeout: 1e3\n  idle-timeout: ' 5m '\n  retry: {{backoff: '+1', backoff-max: 2.5s}}\n"
    ),
    "one or many": (
        f"pass-env: A\nsecrets: [B, ProgramFiles(x86)]\n{STEP}  needs: []\n"
        f"  inputs: src\n  partial: [x, '!y']\n  outputs: []\n"
    ),
    "auto": f"{STEP}  outputs: auto\n",
    "retry": (
        f"{STEP}  retry: 3\n- {{id: b, run: x, retry: {{max: '2', on: error, jitter: false}}}}\n"
        f"- {{id: c, run: x, retry: {{on: [timeout, 75, '3']}}}}\n"
    ),
    "shells": f"shell: zsh -e {{0}}\n{STEP}  shell: pwsh\n  wait-online: '[::1]:443'\n  working-directory: a/b\n",
    "all else": (
        f"continue-on-error: true\nmax-failures: 3\ndefaults: {{wait-online: a.b:1}}\n"
        f"{STEP}  interactive: true\n  leftovers: kill\n  always: false\n  on-crash: stop\n"
    ),
}

BAD = {
    "no steps": "job: a\n",
    "empty list of steps": "steps: []\n",
    "steps that are nothing": "steps:\n",
    "steps that are a mapping": "steps: {id: a, run: x}\n",
    "a list": "- id: a\n",
    "unknown key": f"jobs: a\n{STEP}",
    "unknown key of a step": f"{STEP}  timeuot: 3\n",
    "unknown key of retry": f"{STEP}  retry: {{max: 1, wait: 3}}\n",
    "unknown default": f"defaults: {{outputs: [x]}}\n{STEP}",
    "no id": "steps:\n- run: x\n",
    "no run": "steps:\n- id: a\n",
    "empty run": "steps:\n- {id: a, run: ' '}\n",
    "run is nothing": "steps:\n- {id: a, run: }\n",
    "run is a list": "steps:\n- {id: a, run: [x]}\n",
    "bad id": "steps:\n- {id: a b, run: x}\n",
    "id that begins with a dot": "steps:\n- {id: .a, run: x}\n",
    "long id": f"steps:\n- {{id: {'a' * 101}, run: x}}\n",
    "bad job name": f"job: a/b\n{STEP}",
    "unknown shell": f"shell: fish\n{STEP}",
    "shell without a place for the script": f"{STEP}  shell: bash -x\n",
    "env as a list": f"env: [A=1]\n{STEP}",
    "env with a list in it": f"env: {{A: [1]}}\n{STEP}",
    "bad variable": f"env: {{A=B: 1}}\n{STEP}",
    "bad variable name": f"pass-env: ['A*']\n{STEP}",
    "timeout of nothing": f"{STEP}  timeout: 0\n",
    "timeout of zero seconds": f"{STEP}  timeout: 0s\n",
    "timeout in words": f"{STEP}  timeout: one hour\n",
    "timeout in days": f"{STEP}  timeout: 2d\n",
    "empty timeout": f"{STEP}  timeout: ''\n",
    "negative timeout": f"{STEP}  timeout: -5\n",
    "negative backoff": f"{STEP}  retry: {{backoff: -1}}\n",
    "too long": f"budget: 315360001\n{STEP}",
    "retry in words": f"{STEP}  retry: often\n",
    "retry half": f"{STEP}  retry: 1.5\n",
    "negative retry": f"{STEP}  retry: -1\n",
    "retry cause": f"{STEP}  retry: {{on: [errors]}}\n",
    "retry on zero": f"{STEP}  retry: {{on: [0]}}\n",
    "no failures": f"max-failures: 0\n{STEP}",
    "yes is no truth": f"{STEP}  always: yes\n",
    "always in quotes is a word": f"{STEP}  always: 'on'\n",
    "on-crash": f"{STEP}  on-crash: ask\n",
    "leftovers": f"{STEP}  leftovers: keep\n",
    "endpoint without a port": f"{STEP}  wait-online: example.com\n",
    "endpoint with a great port": f"{STEP}  wait-online: a:65536\n",
    "endpoint with port nothing": f"{STEP}  wait-online: a:0\n",
    "empty pattern": f"{STEP}  inputs: ['']\n",
    "only taken away": f"{STEP}  inputs: ['!a', '!b']\n",
    "one pattern that takes away": f"{STEP}  outputs: '!a'\n",
    "needs a mapping": f"{STEP}  needs: {{a: 1}}\n",
    "outputs a mapping": f"{STEP}  outputs: {{a: 1}}\n",
    "inputs nothing": f"{STEP}  inputs:\n",
}


def check(schema: Path, files: list[Path]) -> dict[str, list[str]]:
    """What is wrong with each file, by its stem."""
    done = subprocess.run(
        [CHECKER, "--schemafile", schema, "--output-format", "json", *files],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report.get("parse_errors", []) == []
    found: dict[str, list[str]] = {file.stem: [] for file in files}
    for error in report.get("errors", []):
        found[Path(error["filename"]).stem].append(f"{error['path']}: {error['message']}")
    return found


def written(folder: Path, texts: dict[str, str]) -> list[Path]:
    for name, text in texts.items():
        (folder / f"{name}.yml").write_text(text)
    return [folder / f"{name}.yml" for name in texts]


def parse(text: str) -> None:
    load_job(text, "checkpoint.yml", JobDefaults("demo", Path("/r"), Path("/r")))


def test_keys_and_words_are_those_that_the_parser_knows() -> None:
    schema = job_schema()
    step, retry = schema["definitions"]["step"], schema["definitions"]["retry"]["anyOf"][1]
    assert tuple(schema["properties"]) == JOB_KEYS
    assert tuple(step["properties"]) == STEP_KEYS
    assert tuple(schema["definitions"]["defaults"]["properties"]) == DEFAULTS_KEYS
    assert tuple(retry["properties"]) == RETRY_KEYS
    assert step["properties"]["leftovers"]["enum"] == list(LEFTOVERS)
    assert step["properties"]["on-crash"]["enum"] == list(ON_CRASH)
    assert schema["definitions"]["shell"]["anyOf"][0]["enum"] == list(SHELLS)


def test_every_key_is_explained_and_every_mapping_closed() -> None:
    def look(node: object) -> None:
        if isinstance(node, list):
            for item in node:
                look(item)
        if isinstance(node, dict):
            if isinstance(node.get("properties"), dict):
                assert node["additionalProperties"] is False
                for key, about in node["properties"].items():
                    assert about["description"].endswith("."), key
            for item in node.values():
                look(item)

    look(job_schema())


def test_the_published_file_is_what_the_program_prints(tmp_path: Path) -> None:
    printed = Console(tmp_path).run("schema")
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout == schema_text() == PUBLISHED.read_text("utf-8"), (
        "run: checkpoint-run schema >docs/checkpoint.schema.json"
    )


def test_it_is_a_valid_schema() -> None:
    done = subprocess.run([CHECKER, "--check-metaschema", PUBLISHED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_what_is_right_is_right_for_both(tmp_path: Path) -> None:
    for text in GOOD.values():
        parse(text)
    assert check(PUBLISHED, written(tmp_path, GOOD)) == {name: [] for name in GOOD}


def test_what_is_wrong_is_wrong_for_both(tmp_path: Path) -> None:
    for name, text in BAD.items():
        with pytest.raises(JobFileError) as raised:
            parse(text)
        assert raised.value.source == "checkpoint.yml", name
    found = check(PUBLISHED, written(tmp_path, BAD))
    assert [name for name, errors in found.items() if not errors] == []


def test_all_job_files_of_the_repository_and_its_documents_are_valid(tmp_path: Path) -> None:
    texts = {path.parent.name: path.read_text("utf-8") for path in REPOSITORY.glob("examples/**/checkpoint.y*ml")}
    for document in (REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")):
        blocks = re.findall(r"^```yaml\n(.*?)^```", document.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        for number, block in enumerate(blocks):
            # Other systems' files have steps too, without ids.
            if re.search(r"^steps:\n(?: *#.*\n)* *- *\{?(?:id|run):", block, re.MULTILINE):
                texts[f"{document.stem}-{number}"] = block
    assert any(name.startswith("README") for name in texts)
    assert "stdlib-search" in texts
    for text in texts.values():
        parse(text)
    assert check(PUBLISHED, written(tmp_path, texts)) == {name: [] for name in texts}
