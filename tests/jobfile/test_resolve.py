"""A job file resolved: every key, every mistake with its place, and the order of steps."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkpoint_action.errors import JobFileError, UsageError
from checkpoint_action.jobfile.resolve import JobDefaults, load_job, load_steps, read_job_file
from checkpoint_action.model import Job, Retry, Step

ROOT = Path(os.path.abspath("/work-root"))
DEFAULTS = JobDefaults(name="folder", root=ROOT, base=ROOT)
STEP = "- {id: a, run: x}\n"


def job(text: str, defaults: JobDefaults = DEFAULTS) -> Job:
    return load_job(text, "f.yml", defaults)


def step(lines: str, defaults: JobDefaults = DEFAULTS) -> Step:
    """The one step of a job with these further lines."""
    return job(f"steps:\n- id: a\n  run: x\n{lines}", defaults).steps[0]


def fault(text: str) -> str:
    with pytest.raises(JobFileError) as caught:
        job(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def marked(text: str) -> tuple[str, str]:
    """The text without its one ``§``, and the place it stood at."""
    before, _, after = text.partition("§")
    return before + after, f"f.yml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


# ---------------------------------------------------------------------------------------------- every key


def test_the_smallest_job_has_the_documented_defaults() -> None:
    assert job(f"steps:\n{STEP}") == Job("folder", ROOT, (Step("a", "x", "bash", ROOT, outputs_assumed=True),))


def test_every_key_of_a_job_arrives() -> None:
    resolved = job(
        """
        job: release
        shell: sh
        env: {PROFILE: release}
        pass-env: [CI_COMMIT]
        secrets: [PUBLISH_TOKEN]
        working-directory: sub
        continue-on-error: true
        max-failures: 3
        defaults: {timeout: 1h, retry: {max: 2, on: [error, timeout, 75], backoff: 2s, backoff-max: 60s}}
        steps:
        - {id: a, run: x}
        """
    )
    retry = Retry(2, ("error", "timeout", 75), 2.0, 60.0)
    env = {"PROFILE": "release"}
    only = Step(
        "a",
        "x",
        "sh",
        ROOT / "sub",
        inherited_env=env,
        pass_env=("CI_COMMIT",),
        timeout=3600.0,
        retry=retry,
        outputs_assumed=True,
    )
    assert resolved == Job("release", ROOT, (only,), ("PUBLISH_TOKEN",), True, 3)


def test_every_key_of_a_step_arrives() -> None:
    resolved = job(
        """
        steps:
        - {id: first, run: y}
        - id: a
          run: |
            make
            make test
          shell: "zsh {0}"
          env: {A: "1"}
          pass-env: B
          working-directory: sub
          needs: [first]
          inputs: ["src/**", Makefile, "!src/gen"]
          outputs: [dist/, "*.log"]
          timeout: 45m
          retry: 3
          always: true
          partial: [build/]
          on-crash: stop
        """
    )
    assert resolved.steps[1] == Step(
        "a",
        "make\nmake test\n",
        "zsh {0}",
        ROOT / "sub",
        env={"A": "1"},
        pass_env=("B",),
        inputs=("src/**", "Makefile", "!src/gen"),
        outputs=("dist/", "*.log"),
        needs=("first",),
        timeout=2700.0,
        retry=Retry(3),
        always=True,
        partial=("build/",),
        on_crash="stop",
    )


def test_a_bare_list_of_steps_is_a_job_too() -> None:
    defaults = replace(DEFAULTS, shell="sh", outputs="auto", timeout=5.0, continue_on_error=True, max_failures=2)
    resolved = load_steps("- {id: a, run: x}\n- {id: b, run: y}\n", "steps", defaults)
    a = Step("a", "x", "sh", ROOT, outputs="auto", outputs_assumed=True, timeout=5.0)
    b = Step("b", "y", "sh", ROOT, outputs="auto", outputs_assumed=True, timeout=5.0, needs=("a",))
    assert resolved == Job("folder", ROOT, (a, b), continue_on_error=True, max_failures=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "steps:1:1: steps is empty"),
        ("[]", "steps:1:1: there are no steps; add at least one 'id' and 'run'"),
        ("steps: []", "steps:1:1: steps must be a list, not a mapping"),
        ("- make", "steps:1:3: step 1 must be a mapping, not a text; write 'key: value', one in a line"),
    ],
)
def test_a_bare_list_of_steps_is_as_strict(text: str, said: str) -> None:
    with pytest.raises(JobFileError) as caught:
        load_steps(text, "steps", DEFAULTS)
    assert str(caught.value) == said


# ---------------------------------------------------------------------------------------------- merging


def test_a_faces_defaults_lie_below_the_file() -> None:
    defaults = replace(
        DEFAULTS, shell="sh", timeout=5.0, retry=Retry(7, backoff=9.0), continue_on_error=True, max_failures=4
    )
    plain = job(f"steps:\n{STEP}", defaults)
    assert plain.steps[0] == Step("a", "x", "sh", ROOT, timeout=5.0, retry=Retry(7, backoff=9.0), outputs_assumed=True)
    assert (plain.continue_on_error, plain.max_failures) == (True, 4)
    given_ = job(
        "shell: bash\ncontinue-on-error: false\nmax-failures: 1\ndefaults: {timeout: 6, retry: {max: 1}}\n"
        f"steps:\n{STEP}",
        defaults,
    )
    assert given_.steps[0] == Step(
        "a", "x", "bash", ROOT, timeout=6.0, retry=Retry(1, backoff=9.0), outputs_assumed=True
    )
    assert (given_.continue_on_error, given_.max_failures) == (False, 1)


@pytest.mark.parametrize(("text", "assumed"), [("", True), (", outputs: []", False), (", outputs: auto", False)])
def test_what_a_step_says_of_its_outputs_is_told_from_what_a_face_assumes(text: str, assumed: bool) -> None:
    assert job(f"steps:\n- {{id: a, run: x{text}}}").steps[0].outputs_assumed is assumed


def test_a_steps_retry_changes_only_what_it_names() -> None:
    text = "defaults: {{retry: {{max: 2, on: [75], backoff: 3, backoff-max: 9}}}}\nsteps:\n- {{id: a, run: x{}}}\n"
    assert job(text.format("")).steps[0].retry == Retry(2, (75,), 3.0, 9.0)
    assert job(text.format(", retry: 5")).steps[0].retry == Retry(5, (75,), 3.0, 9.0)
    assert job(text.format(", retry: {backoff: 1m}")).steps[0].retry == Retry(2, (75,), 60.0, 9.0)
    assert job(text.format(", retry: {on: error}")).steps[0].retry == Retry(2, ("error",), 3.0, 9.0)
    assert job(text.format(", retry: {backoff-max: 1h}")).steps[0].retry == Retry(2, (75,), 3.0, 3600.0)


def test_a_default_retry_may_be_a_plain_number() -> None:
    assert job(f"defaults: {{retry: 4}}\nsteps:\n{STEP}").steps[0].retry == Retry(4)


def test_a_steps_timeout_replaces_the_default() -> None:
    assert job("defaults: {timeout: 1h}\nsteps:\n- {id: a, run: x, timeout: 5}").steps[0].timeout == 5.0


def test_a_steps_env_is_laid_over_the_jobs() -> None:
    step = job("env: {A: job, B: job}\nsteps:\n- {id: a, run: x, env: {B: step, C: step}}").steps[0]
    assert {**step.inherited_env, **step.env} == {"A": "job", "B": "step", "C": "step"}


def test_a_value_of_nothing_is_an_empty_variable() -> None:
    assert step('  env: {A: , B: ~, C: null, D: "", E: "null"}\n').env == {
        "A": "",
        "B": "",
        "C": "",
        "D": "",
        "E": "null",
    }


def test_values_of_variables_are_kept_as_written() -> None:
    env = step("  env: {A: on, B: 1.10, C: 010, D: 1:30, E: 1_000, F: true}\n").env
    assert env == {"A": "on", "B": "1.10", "C": "010", "D": "1:30", "E": "1_000", "F": "true"}


def test_outside_variables_of_job_and_step_add_up_once() -> None:
    resolved = job("pass-env: [A, B]\nsteps:\n- {id: a, run: x, pass-env: [B, C, C]}")
    assert resolved.steps[0].pass_env == ("A", "B", "C")


def test_a_steps_working_directory_replaces_the_jobs_as_on_github() -> None:
    text = "working-directory: one\nsteps:\n- {id: a, run: x}\n- {id: b, run: x, working-directory: two}\n"
    assert [item.cwd for item in job(text).steps] == [ROOT / "one", ROOT / "two"]


def test_a_working_directory_starts_from_the_base_and_may_be_absolute() -> None:
    defaults = replace(DEFAULTS, base=ROOT / "base")
    elsewhere = Path(os.path.abspath("/elsewhere")).as_posix()
    assert step("", defaults).cwd == ROOT / "base"
    assert step("  working-directory: sub/deep\n", defaults).cwd == ROOT / "base" / "sub" / "deep"
    assert step(f"  working-directory: {elsewhere}\n", defaults).cwd == Path(elsewhere)


def test_outputs_are_nothing_auto_or_patterns() -> None:
    assert step("").outputs == ()
    assert step("", replace(DEFAULTS, outputs="auto")).outputs == "auto"
    assert step("  outputs: auto\n").outputs == "auto"
    assert step("  outputs: [auto]\n").outputs == ("auto",)
    assert step("  outputs: []\n", replace(DEFAULTS, outputs="auto")).outputs == ()
    assert step("  outputs: dist/\n").outputs == ("dist/",)


def test_no_inputs_are_told_apart_from_an_empty_list() -> None:
    assert step("").inputs is None
    assert step("  inputs: []\n").inputs == ()


# ---------------------------------------------------------------------------------------------- needs


def needs(text: str) -> dict[str, tuple[str, ...]]:
    return {item.id: item.needs for item in job(f"steps:\n{text}").steps}


def test_a_step_needs_the_one_before_unless_it_says_otherwise() -> None:
    text = (
        "- {id: a, run: x}\n- {id: b, run: x}\n- {id: c, run: x, needs: []}\n"
        "- {id: d, run: x, needs: a}\n- {id: e, run: x, needs: [a, c]}\n- {id: f, run: x}\n"
    )
    assert needs(text) == {"a": (), "b": ("a",), "c": (), "d": ("a",), "e": ("a", "c"), "f": ("e",)}


def test_a_step_comes_after_what_it_needs_and_else_as_written() -> None:
    text = (
        "- {id: late, run: x, needs: [early]}\n- {id: free, run: x, needs: []}\n"
        "- {id: early, run: x, needs: []}\n- {id: last, run: x, needs: []}\n"
    )
    assert list(needs(text)) == ["free", "early", "late", "last"]


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_any_graph_without_a_circle_comes_in_an_order_that_holds(data: st.DataObject) -> None:
    ranks = data.draw(st.permutations(range(8)))
    links = {
        number: [other for other in range(8) if ranks[other] < ranks[number] and data.draw(st.booleans())]
        for number in range(8)
    }
    text = "".join(f"- {{id: s{n}, run: x, needs: [{', '.join(f's{o}' for o in links[n])}]}}\n" for n in range(8))
    order = list(needs(text))
    assert sorted(order) == [f"s{n}" for n in range(8)]
    assert all(order.index(f"s{other}") < order.index(f"s{n}") for n in range(8) for other in links[n])


def test_a_circle_is_named_at_a_need_that_was_written() -> None:
    text, place = marked("steps:\n- {id: a, run: x, needs: [§c]}\n- {id: b, run: x}\n- {id: c, run: x}\n")
    said = fault(text)
    assert said.startswith(f"{place}: steps need each other in a circle: ")
    assert said.endswith("; take one 'needs' out")
    circle = said.partition("circle: ")[2].partition(";")[0].split(" -> ")
    assert circle[0] == circle[-1]
    assert set(circle) == {"a", "b", "c"}


def test_a_step_that_needs_itself_is_a_circle() -> None:
    text, place = marked("steps:\n- id: a\n  run: x\n  needs: §a\n")
    assert fault(text) == f"{place}: steps need each other in a circle: a -> a; take one 'needs' out"


def test_a_job_of_thousands_of_steps_is_resolved() -> None:
    text = "steps:\n" + "".join(f"- {{id: s{n}, run: x}}\n" for n in range(3000))
    resolved = job(text)
    assert len(resolved.steps) == 3000
    assert resolved.steps[-1].needs == ("s2998",)


# ---------------------------------------------------------------------------------------------- mistakes

ID_RULE = "letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100 characters"
NO_SHELL = "(valid are bash, sh, pwsh, python or a command with {0} for the script)"

MISTAKES = [
    # keys
    ("§jbo: a\nsteps: []", "the job file: unknown key 'jbo'; did you mean 'job'?"),
    ("§step: []", "the job file: unknown key 'step'; did you mean 'steps'?"),
    ("job: a\n§job: b", "the job file: key 'job' is there twice (first in line 1); remove one"),
    ("steps:\n- id: a\n  §rum: x", "step 'a': unknown key 'rum'; did you mean 'run'?"),
    ("steps:\n- §name: Build\n  run: x", "step 1: unknown key 'name'; a step's name here is its 'id'"),
    ("steps:\n- §uses: a/b@v1", "step 1: unknown key 'uses'; steps here are commands ('run')"),
    ("steps:\n- id: a\n  run: x\n  §if: always()", "step 'a': unknown key 'if'; a step runs unless it is done"),
    ("steps:\n- id: a\n  run: x\n  §timeout-minutes: 3", "step 'a': unknown key 'timeout-minutes'; write timeout: 45m"),
    (
        "steps:\n- id: a\n  run: x\n  §continue-on-error: true",
        "step 'a': unknown key 'continue-on-error'; it is a key of the whole",
    ),
    ("steps:\n- id: a\n  run: x\n  §need: b", "step 'a': unknown key 'need'; did you mean 'needs'?"),
    ("steps:\n- id: a\n  run: x\n  §run: y", "step 'a': key 'run' is there twice (first in line 3); remove one"),
    (
        "defaults: {§timout: 1}\nsteps: []",
        "the job file: defaults: unknown key 'timout'; did you mean 'timeout'?",
    ),
    (
        "defaults: {retry: {§maximum: 1}}\nsteps: []",
        "the job file: defaults: retry: unknown key 'maximum'; did you mean 'max'?",
    ),
    (
        "steps:\n- {id: a, run: x, retry: {max: 1, §backof: 2}}",
        "step 'a': retry: unknown key 'backof'; did you mean 'backoff'?",
    ),
    ("steps:\n- {id: a, run: x, §secrets: [T]}", "step 'a': unknown key 'secrets'; it is a key of the whole job"),
    ("steps:\n- {id: a, §script: x}", "step 'a': unknown key 'script'; did you mean 'run'?"),
    ("steps:\n- {id: a, run: x, §depends_on: [b]}", "step 'a': unknown key 'depends_on'; did you mean 'needs'?"),
    ("§script: x\nsteps: []", "the job file: unknown key 'script'; valid are job, shell,"),
    # the whole
    ("§[]", "the job file must be a mapping, not a list"),
    ("§make", "the job file must be a mapping, not a text"),
    ("§job: a", "the job file has no steps; add 'steps:' with at least one 'id' and 'run'"),
    ("steps: §[]", "there are no steps; add at least one 'id' and 'run'"),
    ("steps:§", "steps is empty; add at least one '- id: NAME' with 'run: COMMAND' below it"),
    ("steps: §{a: b}", "the job file: steps must be a list, not a mapping"),
    # job keys
    ("job: §a b\nsteps: []", f"job name 'a b' is not valid; use {ID_RULE}"),
    ("job: §[a]\nsteps: []", "the job file: job must be a text, not a list"),
    ("job:§\nsteps: []", "the job file: job must be a text, not nothing"),
    ("shell: §bsh\nsteps: []", f"the job file: shell: unknown shell 'bsh'; did you mean 'bash'? {NO_SHELL}"),
    ("shell: §zsh\nsteps: []", f"the job file: shell: unknown shell 'zsh'; did you mean 'sh'? {NO_SHELL}"),
    (
        'shell: §"a\' {0}"\nsteps: []',
        "the job file: shell: the shell 'a' {0}' has a quotation mark too few or too many",
    ),
    ("env: §[A]\nsteps: []", "the job file: env must be a mapping, not a list; write 'key: value', one in a line"),
    ("env: {A: §[b]}\nsteps: []", "the job file: env: A must be a text, not a list"),
    ("env: {A: §{b: c}}\nsteps: []", "the job file: env: A must be a text, not a mapping"),
    ("env: {§A=B: c}\nsteps: []", "the job file: env: 'A=B' cannot be the name of a variable"),
    ('env: {§"": c}\nsteps: []', "the job file: env: '' cannot be the name of a variable"),
    ('env: {A: §"x\\0"}\nsteps: []', "the job file: env: A holds a NUL character"),
    (
        "env:\n  A: 1\n  §A: 2\nsteps: []",
        "the job file: env: key 'A' is there twice (first in line 2); remove one",
    ),
    ("pass-env: [A, §B=]\nsteps: []", "the job file: pass-env: 'B=' cannot be the name of a variable"),
    ('pass-env: §""\nsteps: []', "the job file: pass-env: '' cannot be the name of a variable"),
    ("pass-env: §{A: b}\nsteps: []", "the job file: pass-env must be a list, not a mapping"),
    (
        "secrets: [A, §[B]]\nsteps: [{id: a, run: x}]",
        "the job file: secrets must be a text, not a list",
    ),
    ("working-directory: §[a]\nsteps: []", "the job file: working-directory must be a text, not a list"),
    (
        "continue-on-error: §yes\nsteps: [{id: a, run: x}]",
        "the job file: continue-on-error must be true or false, not 'yes'",
    ),
    (
        "max-failures: §0\nsteps: [{id: a, run: x}]",
        "the job file: max-failures must be a whole number from 1, not '0'",
    ),
    ("defaults:§\nsteps: []", "the job file: defaults must be a mapping, not nothing"),
    ("defaults: {timeout: §never}\nsteps: []", "the job file: defaults: timeout: 'never' is not a duration;"),
    ("defaults: {retry: §many}\nsteps: []", "the job file: defaults: retry must be a whole number from 0,"),
    # steps
    ("steps:\n- §make", "step 1 must be a mapping, not a text"),
    ("steps:\n- {id: a, run: x}\n-§", "step 2 must be a mapping, not nothing"),
    ("steps:\n- §run: x", "step 1 has no 'id'"),
    ("steps:\n- {id: a, run: x}\n- §id: b", "step 'b' has no 'run'"),
    ("steps:\n- run: x\n  id: §a/b", f"step id 'a/b' is not valid; use {ID_RULE}"),
    ('steps:\n- run: x\n  id: §""', f"step id '' is not valid; use {ID_RULE}"),
    ("steps:\n- run: x\n  id: §[a]", "step 1: id must be a text, not a list"),
    ("steps:\n- run: x\n  id:§", "step 1: id must be a text, not nothing"),
    (
        "steps:\n- {id: a, run: x}\n- {run: x, id: §a}",
        "step id 'a' is there twice, first in line 2; rename one",
    ),
    (
        "steps:\n- {id: Build, run: x}\n- {run: x, id: §build}",
        "step id 'build' is there twice, first in line 2 (as 'Build'; upper and lower case count as one); rename one",
    ),
    ("steps:\n- id: a\n  run: §' '", "step 'a' has an empty command"),
    ("steps:\n- id: a\n  run:§", "step 'a': run must be a text, not nothing"),
    (
        "steps:\n- id: a\n  run: §[make]",
        "step 'a': run must be a text, not a list; write 'run: |' and a command in each",
    ),
    ("steps:\n- {id: a, run: x, shell: §fish}", "step 'a': shell: unknown shell 'fish'"),
    ("steps:\n- {id: a, run: x, env: §A}", "step 'a': env must be a mapping, not a text"),
    (
        "steps:\n- {id: build, run: x}\n- {id: b, run: x, needs: [§biuld]}",
        "step 'b' needs 'biuld', which is no step; did you mean 'build'?",
    ),
    ("steps:\n- {id: a, run: x, needs: §zzz}", "step 'a' needs 'zzz', which is no step"),
    ("steps:\n- id: a\n  run: x\n  needs:§", "step 'a': needs must be a list, not nothing"),
    ("steps:\n- {id: a, run: x, needs: §{b: c}}", "step 'a': needs must be a list, not a mapping"),
    ("steps:\n- {id: a, run: x, needs: [§[b]]}", "step 'a': needs must be a text, not a list"),
    ('steps:\n- {id: a, run: x, inputs: [b, §""]}', "step 'a': inputs: an empty path"),
    ('steps:\n- {id: a, run: x, outputs: [b, §"!"]}', "step 'a': outputs: an empty path"),
    ("steps:\n- {id: a, run: x, outputs: [§{b: c}]}", "step 'a': outputs must be a text, not a mapping"),
    ("steps:\n- id: a\n  run: x\n  outputs:§", "step 'a': outputs must be a list, not nothing"),
    ("steps:\n- {id: a, run: x, timeout: §1:30}", "step 'a': timeout: '1:30' is not a duration;"),
    ("steps:\n- {id: a, run: x, timeout: §-1}", "step 'a': timeout: '-1' is not a duration between"),
    ("steps:\n- {id: a, run: x, retry: §-1}", "step 'a': retry must be a whole number from 0, not '-1'"),
    ("steps:\n- {id: a, run: x, retry: §[1]}", "step 'a': retry must be a mapping, not a list"),
    (
        "steps:\n- {id: a, run: x, retry: {on: [error, §eror]}}",
        "step 'a': retry: on: 'eror' is neither error, timeout nor an exit code; did you mean 'error'?",
    ),
    ("steps:\n- {id: a, run: x, retry: {backoff: §x}}", "step 'a': retry: backoff: 'x' is not a duration;"),
    ("steps:\n- {id: a, run: x, always: §on}", "step 'a': always must be true or false, not 'on'"),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=lambda text: repr(text)[:60])
def test_a_mistake_is_one_line_with_its_place_and_the_nearest_right_word(text: str, said: str) -> None:
    plain, place = marked(text)
    assert fault(plain).startswith(f"{place}: {said}")


def test_an_error_knows_its_place_and_its_exit_code() -> None:
    with pytest.raises(JobFileError) as caught:
        job("steps:\n- id: a\n  rum: x\n")
    error = caught.value
    assert (error.source, error.line, error.column, error.exit_code) == ("f.yml", 3, 3, 2)


# ---------------------------------------------------------------------------------------------- YAML's traps


@pytest.mark.parametrize("name", ["on", "no", "1.10", "010", "1e3", "0x1F", "null1", "2001-01-01", "1_000"])
def test_an_id_is_kept_exactly_as_written(name: str) -> None:
    assert [item.id for item in job(f"steps:\n- id: {name}\n  run: x\n").steps] == [name]
    assert needs(f"- {{id: {name}, run: x}}\n- {{id: z, run: x, needs: [{name}]}}\n")["z"] == (name,)


@pytest.mark.parametrize("name", ["1:30", "~", "null", "_a"])
def test_an_id_that_cannot_be_kept_is_refused(name: str) -> None:
    assert fault(f"steps:\n- id: {name}\n  run: x\n").startswith("f.yml:2:7: ")


def test_ids_that_yaml_takes_for_one_number_stay_two() -> None:
    assert list(needs("- {id: 1.10, run: x}\n- {id: 1.1, run: x}\n- {id: 010, run: x}\n- {id: 8, run: x}\n")) == [
        "1.10",
        "1.1",
        "010",
        "8",
    ]


def test_anchors_may_be_used_and_a_repeated_step_is_still_a_duplicate() -> None:
    text = "steps:\n- &one\n  id: a\n  run: x\n  env: &env {A: b}\n- {id: b, run: y, env: *env}\n"
    assert job(text).steps[1].env == {"A": "b"}
    assert fault(f"{text}- *one\n") == "f.yml:3:7: step id 'a' is there twice, first in line 3; rename one"


def write(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "checkpoint.yml"
    path.write_bytes(data)
    return path


FULL = (
    "job: a\nenv: {A: \"x\n  y\"}\nsteps:\n- id: one\n  run: |\n    make\n\n    make test\n- {id: two, run: 'a\n  b'}\n"
)


def test_a_file_with_crlf_is_the_same_job(tmp_path: Path) -> None:
    unix = read_job_file(write(tmp_path, FULL.encode()), "f.yml")
    windows = read_job_file(write(tmp_path, FULL.replace("\n", "\r\n").encode()), "f.yml")
    assert windows == unix
    assert job(windows).steps[0].command == "make\n\nmake test\n"


def test_a_byte_order_mark_is_no_part_of_the_first_key(tmp_path: Path) -> None:
    assert job(read_job_file(write(tmp_path, b"\xef\xbb\xbf" + FULL.encode()), "f.yml")) == job(FULL)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b"\xff", "1:1"),
        (b"job: a\nsteps:\n- {id: a, run: \xe4}\n", "3:16"),
        ("job: äöü".encode() + b"\xff", "1:9"),
        (b"\xef\xbb\xbfjob: \xff", "1:6"),
        ("job: a".encode("utf-16"), "1:1"),
    ],
)
def test_a_file_that_is_not_utf8_is_named_at_the_place(tmp_path: Path, data: bytes, place: str) -> None:
    with pytest.raises(JobFileError) as caught:
        read_job_file(write(tmp_path, data), "f.yml")
    assert str(caught.value) == f"f.yml:{place}: the job file is not UTF-8; save it as UTF-8"


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        read_job_file(tmp_path / "none.yml", "none.yml")
    assert str(caught.value) == "there is no job file none.yml; check its name and folder"


def test_a_folder_is_no_job_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the job file"):
        read_job_file(tmp_path, "f.yml")


# ---------------------------------------------------------------------------------------------- any text

PIECES = st.sampled_from(
    [
        *("steps:", "job: a", "env: ", "defaults: ", "retry: ", "- id: a", "  run: x", "  needs: [b]", "needs", "id"),
        *("\n", "  ", "\t", "- ", ": ", "{", "}", "[", "]", ",", "&a ", "*a", "<<", "|", ">", "'", '"', "#", "!!str "),
        *("? ", "---\n", "...\n", "%YAML 1.1\n", "~", "null", "\\0", "\\ud800", "é", "\0", "\r\n", "\ufeff", "\x85"),
        *("\u2028", "1:30", "-1", "yes", "auto", "{0}", "bash"),
    ]
)
LINES = st.lists(
    st.sampled_from(
        [
            *("steps:", "- id: a", "- id: b", "- {id: c, run: x}", "  run: x", "  needs: [a]", "  needs: c", "job: a"),
            *("  retry: 3", "  retry: {max: 1, on: [error]}", "  env: {A: b}", "  outputs: auto", "  timeout: 1h"),
            *("  always: true", "  shell: sh", "env: &e {A: b}", "  env: *e", "defaults: {timeout: 1}", "  run: |", ""),
        ]
    ),
    max_size=14,
).map("\n".join)
ANY = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=())), st.lists(PIECES, max_size=25).map("".join), LINES
)


@pytest.mark.parametrize("parser", ["libyaml", "python"])
@settings(deadline=None)
@given(text=ANY)
@example(text="steps:\n- id: a\n  run: x")
@example(text='steps:\n- id: a\n  run: "\\ud800"')
def test_any_text_is_a_job_or_a_fault_with_a_place(parser: str, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if parser == "python":
            patch.delattr(yaml, "CSafeLoader", raising=False)
        for load in (load_job, load_steps):
            try:
                resolved = load(text, "f.yml", DEFAULTS)
            except JobFileError as error:
                assert error.line >= 1  # noqa: PT017  # one of two ends
                assert error.column >= 1  # noqa: PT017
            else:
                assert resolved.steps
