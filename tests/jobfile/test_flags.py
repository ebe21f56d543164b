"""Steps from flags, and flags laid over any job."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from checkpoint_action.errors import UsageError
from checkpoint_action.jobfile.flags import Overrides, apply_overrides, split_flag, steps_from_flags
from checkpoint_action.model import SYSTEM_SHELL, Job, Retry, Step
from checkpoint_action.runner.globs import matcher
from checkpoint_action.runner.patterns import expand

ROOT = Path(os.path.abspath("/work-root"))
JOB = Job("j", ROOT, (Step("build", "make", "sh", ROOT), Step("test", "make test", "sh", ROOT)))


def steps(*words: str, shell: str = SYSTEM_SHELL, chain: bool = False) -> list[Step]:
    return steps_from_flags(words, cwd=ROOT, shell=shell, chain=chain)


def fault(*words: str, shell: str = SYSTEM_SHELL) -> str:
    with pytest.raises(UsageError) as caught:
        steps(*words, shell=shell)
    return str(caught.value)


def changed(overrides: Overrides, job: Job = JOB) -> dict[str, Step]:
    return {step.id: step for step in apply_overrides(job, overrides).steps}


def refused(overrides: Overrides, job: Job = JOB) -> str:
    with pytest.raises(UsageError) as caught:
        apply_overrides(job, overrides)
    return str(caught.value)


# ---------------------------------------------------------------------------------------------- steps


def test_a_word_is_cut_at_its_first_colon() -> None:
    assert split_flag("--step", "a:echo b:c", "COMMAND") == ("a", "echo b:c")
    assert split_flag("--step", "a: echo ", "COMMAND") == ("a", " echo ")


@pytest.mark.parametrize("word", ["", "a", ":", ":make", "a:", "a:  ", "a:\n"])
def test_a_word_without_id_or_rest_is_refused_with_the_form(word: str) -> None:
    assert fault(word) == f"--step '{word}': write --step ID:COMMAND"


def test_steps_run_the_command_as_written_in_the_system_shell_and_stand_alone() -> None:
    assert steps("a:echo 'x'  \n", "b:make") == [
        Step("a", "echo 'x'  \n", SYSTEM_SHELL, ROOT, outputs_assumed=True),
        Step("b", "make", SYSTEM_SHELL, ROOT, outputs_assumed=True),
    ]


def test_a_chain_makes_each_step_need_the_one_before() -> None:
    assert [step.needs for step in steps("a:x", "b:x", "c:x", chain=True)] == [(), ("a",), ("b",)]


def test_an_id_that_is_no_name_is_refused() -> None:
    assert fault("a b:make").startswith("--step 'a b': the id is not valid; use letters,")
    assert fault("../up:make").startswith("--step '../up': the id is not valid")


def test_a_second_step_of_one_id_is_refused_also_when_only_case_differs() -> None:
    assert fault("a:x", "b:x", "a:y") == "--step 'a' is there twice; rename one"
    assert fault("Build:x", "build:y") == (
        "--step 'build' is there twice (as 'Build'; upper and lower case count as one); rename one"
    )


def test_a_nul_in_a_command_is_refused() -> None:
    assert fault("a:x\0y") == "--step 'a': the command holds a NUL character"


@pytest.mark.parametrize("shell", ["bash", "sh", "pwsh", "python", "zsh -x {0}"])
def test_a_known_shell_or_a_command_with_a_place_for_the_script_is_taken(shell: str) -> None:
    assert steps("a:x", shell=shell)[0].shell == shell


def test_a_shell_that_would_never_see_the_command_is_refused() -> None:
    assert fault("a:x", shell="cat").startswith("--shell: unknown shell 'cat' (valid are bash, sh, pwsh, python or")
    assert fault("a:x", shell="bahs").startswith("--shell: unknown shell 'bahs'; did you mean 'bash'?")
    assert fault("a:x", shell="a' {0}") == "--shell: the shell 'a' {0}' has a quotation mark too few or too many"


# ---------------------------------------------------------------------------------------------- laid over a job


def test_without_flags_a_job_stays_as_it_is() -> None:
    full = replace(
        JOB,
        steps=(replace(JOB.steps[0], outputs="auto", timeout=5.0, retry=Retry(2), log=ROOT / "l"),),
        continue_on_error=True,
        max_failures=2,
    )
    assert apply_overrides(full, Overrides(base=ROOT)) == full


def test_a_general_timeout_holds_where_a_step_has_none_of_its_own_flag() -> None:
    job = replace(JOB, steps=(replace(JOB.steps[0], timeout=99.0), JOB.steps[1]))
    result = changed(Overrides(timeout=5.0, step_timeouts=("test:1m",)), job)
    assert {name: step.timeout for name, step in result.items()} == {"build": 5.0, "test": 60.0}


def test_retry_flags_replace_what_they_name_and_nothing_else() -> None:
    job = replace(JOB, steps=(replace(JOB.steps[0], retry=Retry(1, (75,), 2.0, 9.0)),))
    assert changed(Overrides(retries=4), job)["build"].retry == Retry(4, (75,), 2.0, 9.0)
    assert changed(Overrides(backoff=0.0), job)["build"].retry == Retry(1, (75,), 0.0, 9.0)
    assert changed(Overrides(backoff_max=3.0), job)["build"].retry == Retry(1, (75,), 2.0, 3.0)
    assert changed(Overrides(retries=0), job)["build"].retry.max == 0


def test_failure_flags_replace_the_jobs_words() -> None:
    result = apply_overrides(JOB, Overrides(continue_on_error=True, max_failures=3))
    assert (result.continue_on_error, result.max_failures) == (True, 3)


def test_artifacts_add_to_what_a_step_declares() -> None:
    job = replace(JOB, steps=(replace(JOB.steps[0], outputs=("dist/",)), replace(JOB.steps[1], outputs="auto")))
    result = changed(Overrides(step_artifacts=("build:a.txt", "build:b:c.txt", "test:t.txt")), job)
    assert result["build"].outputs == ("dist/", "a.txt", "b:c.txt")
    assert result["test"].outputs == ("t.txt",)


@pytest.mark.parametrize("name", ["out[1].txt", "a*b", "what?", "[!a]", "!bang", "![x]*", "plain", "a b", "[", "]"])
def test_an_artifact_is_one_path_never_a_pattern(tmp_path: Path, name: str) -> None:
    for other in (name, "out1.txt", "aXb", "whatX", "b", "bang", "x", "other"):
        (tmp_path / other).write_text("")
    pattern = changed(Overrides(step_artifacts=(f"build:{name}",)))["build"].outputs[0]
    assert expand((pattern,), tmp_path) == ([str(tmp_path / name)], [])


@pytest.mark.parametrize("name", ["sub/out[1].txt", "su*b/x"])
def test_an_artifact_in_a_folder_is_one_path_too(tmp_path: Path, name: str) -> None:
    pattern = changed(Overrides(step_artifacts=(f"build:{name}",)))["build"].outputs[0]
    assert matcher(pattern).match(name)
    assert not matcher(pattern).match(name.replace("[1]", "1").replace("*", "X"))
    assert expand((pattern,), tmp_path) == ([], [pattern])


def test_a_log_of_its_own_wins_over_the_logs_folder() -> None:
    result = changed(Overrides(logs_dir=Path("logs"), step_logs=("test:special.txt",), base=ROOT))
    assert result["build"].log == ROOT / "logs" / "build.log"
    assert result["test"].log == ROOT / "special.txt"


def test_two_steps_never_write_one_log() -> None:
    said = refused(Overrides(step_logs=("build:x.log", "test:x.log"), base=ROOT))
    assert said == f"steps 'build' and 'test' would write the same log {ROOT / 'x.log'}; rename one"
    assert "would write the same log" in refused(Overrides(step_logs=("build:x.log", "test:sub/../x.log"), base=ROOT))
    clash = Overrides(logs_dir=Path("logs"), step_logs=("test:logs/build.log",), base=ROOT)
    assert "steps 'build' and 'test' would write the same log" in refused(clash)


@pytest.mark.parametrize(
    ("overrides", "flag"),
    [
        (Overrides(step_timeouts=("biuld:5",)), "--step-timeout"),
        (Overrides(step_artifacts=("biuld:5",)), "--step-artifact"),
        (Overrides(step_logs=("biuld:5",)), "--step-log"),
    ],
)
def test_a_flag_for_an_unknown_step_names_the_nearest(overrides: Overrides, flag: str) -> None:
    assert refused(overrides) == f"{flag} 'biuld': no step has this id; did you mean 'build'?"


@pytest.mark.parametrize(
    ("overrides", "form"),
    [
        (Overrides(step_timeouts=("5",)), "--step-timeout '5': write --step-timeout ID:SECONDS"),
        (Overrides(step_artifacts=("x",)), "--step-artifact 'x': write --step-artifact ID:PATH"),
        (Overrides(step_logs=("build:",)), "--step-log 'build:': write --step-log ID:PATH"),
    ],
)
def test_a_flag_for_a_step_is_refused_without_id_or_value(overrides: Overrides, form: str) -> None:
    assert refused(overrides) == form


def test_a_step_timeout_that_is_no_duration_is_refused() -> None:
    assert refused(Overrides(step_timeouts=("build:soon",))) == (
        "--step-timeout 'build': 'soon' is not a duration; write 90, 90s, 10m or 1h30m"
    )


def test_the_last_word_for_a_step_counts() -> None:
    result = changed(Overrides(step_timeouts=("build:1", "build:2"), step_logs=("build:a", "build:b"), base=ROOT))
    assert (result["build"].timeout, result["build"].log) == (2.0, ROOT / "b")
