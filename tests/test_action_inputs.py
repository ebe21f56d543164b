"""The action's inputs, resolved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from checkpoint_action.action_inputs import read_inputs
from checkpoint_action.errors import UsageError
from checkpoint_action.runner.keys import job_slug

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "sub").mkdir()
    return {
        "GITHUB_WORKSPACE": str(tmp_path),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_REPOSITORY": "octo/demo",
        "GITHUB_WORKFLOW_REF": "octo/demo/.github/workflows/ci.yml@refs/heads/main",
        "GITHUB_JOB": "build",
        "GITHUB_RUN_ID": "7",
        "RUNNER_OS": "Linux",
        "RUNNER_ARCH": "X64",
        "CPR_INPUT_MATRIX": "null",
    }


def test_defaults_are_those_of_the_documentation(env: dict[str, str], tmp_path: Path) -> None:
    inputs = read_inputs(env)
    assert (inputs.scope, inputs.store, inputs.force, inputs.fail_on_store_error) == ("run", "auto", False, False)
    assert (inputs.base, inputs.defaults.name, inputs.defaults.shell) == (tmp_path.resolve(), "build", "bash")
    assert (inputs.retention_days, inputs.signing_key, inputs.max_size, inputs.trust_stat) == (None, None, None, False)
    assert (inputs.defaults.outputs, inputs.defaults.retry.max, inputs.defaults.timeout) == ("auto", 0, None)


def test_every_input_reaches_its_place(env: dict[str, str], tmp_path: Path) -> None:
    env |= {
        "CPR_INPUT_STEPS": "- {id: a, run: x}\n",
        "CPR_INPUT_JOB": "mine",
        "CPR_INPUT_SCOPE": "content",
        "CPR_INPUT_STORE": "none",
        "CPR_INPUT_WORKING_DIRECTORY": "sub",
        "CPR_INPUT_SHELL": "sh",
        "CPR_INPUT_TIMEOUT": "1h",
        "CPR_INPUT_RETRY": "2",
        "CPR_INPUT_BACKOFF": "5s",
        "CPR_INPUT_CONTINUE_ON_ERROR": "true",
        "CPR_INPUT_MAX_FAILURES": "3",
        "CPR_INPUT_WORKFLOW_COMMANDS": "block",
        "CPR_INPUT_FORCE": "True",
        "CPR_INPUT_EXCLUDE": "*.tmp\n\n  node_modules/ \n",
        "CPR_INPUT_FAIL_ON_STORE_ERROR": "true",
        "CPR_INPUT_RETENTION_DAYS": "30",
        "CPR_INPUT_SIGNING_KEY": "line 1\nline 2 é\n",
        "CPR_INPUT_MAX_SIZE": "2GiB",
        "CPR_INPUT_VERIFY": "stat",
        "CPR_INPUT_TOKEN": "ghs_token",
    }
    inputs = read_inputs(env)
    defaults = inputs.defaults
    assert (inputs.steps, inputs.scope, inputs.store, inputs.force) == ("- {id: a, run: x}\n", "content", "none", True)
    assert (inputs.base, inputs.exclude) == (tmp_path.resolve() / "sub", ("*.tmp", "node_modules/"))
    assert inputs.fail_on_store_error
    assert inputs.block_commands
    assert (inputs.retention_days, inputs.max_size, inputs.trust_stat) == (30, 2 << 30, True)
    assert (inputs.signing_key, inputs.token) == ("line 1\nline 2 é".encode(), "ghs_token")
    assert (defaults.name, defaults.shell, defaults.timeout) == ("mine", "sh", 3600.0)
    assert (defaults.retry.max, defaults.retry.backoff) == (2, 5.0)
    assert (defaults.continue_on_error, defaults.max_failures) == (True, 3)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SCOPE", "comit", "input scope: unknown value 'comit'; did you mean 'commit'?"),
        (
            "STORE",
            "artefact",
            "input store: unknown value 'artefact'; did you mean 'artifact'?; valid are auto, cache,",
        ),
        ("VERIFY", "stats", "input verify: unknown value 'stats'; did you mean 'stat'?"),
        ("RETENTION_DAYS", "0", "input retention-days: '0' is not a whole number from 1"),
        ("MAX_SIZE", "2 bananas", "input max-size: '2 bananas' is not a size; write 500MB, 2GiB or a number of bytes"),
        ("MAX_SIZE", "2Gi", "input max-size: '2Gi' is not a size; did you mean 'GiB'?"),
        ("SHELL", "bsh", "input shell: unknown shell 'bsh'; did you mean 'bash'?"),
        ("TIMEOUT", "soon", "input timeout: 'soon' is not a duration"),
        ("TIMEOUT", "0", "input timeout: '0' leaves no time at all"),
        ("RETRY", "many", "input retry: 'many' is not a whole number from 0"),
        ("MAX_FAILURES", "0", "input max-failures: '0' is not a whole number from 1"),
        ("FORCE", "yes", "input force: 'yes' is neither true nor false"),
        ("JOB", "a/b", "input job: 'a/b' is not valid"),
        ("WORKING_DIRECTORY", "nowhere", "input working-directory: there is no folder 'nowhere'"),
    ],
)
def test_a_wrong_input_is_named_with_the_nearest_word(env: dict[str, str], name: str, value: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_inputs({**env, f"CPR_INPUT_{name}": value})
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("scope", ["commit", "content"])
def test_artifacts_cannot_be_asked_for_beyond_the_run_that_holds_them(env: dict[str, str], scope: str) -> None:
    with pytest.raises(UsageError, match=f"cannot serve 'scope: {scope}'; use 'store: cache', or 'scope: run'"):
        read_inputs({**env, "CPR_INPUT_STORE": "artifact", "CPR_INPUT_SCOPE": scope})


def test_secrets_are_not_shown(env: dict[str, str]) -> None:
    shown = repr(read_inputs({**env, "CPR_INPUT_SIGNING_KEY": "hush-1", "CPR_INPUT_TOKEN": "hush-2"}))
    assert "hush" not in shown


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_JOB", "test"),
        ("GITHUB_REPOSITORY", "octo/other"),
        ("GITHUB_WORKFLOW_REF", "octo/demo/.github/workflows/other.yml@refs/heads/main"),
        ("CPR_INPUT_MATRIX", '{"python": "3.12"}'),
        ("CPR_INPUT_JOB", "mine"),
        ("CPR_INPUT_USE", "__agenticaotearoa_checkpoint-run_2"),
        ("RUNNER_OS", "Windows"),
        ("RUNNER_ARCH", "ARM64"),
    ],
)
def test_whatever_tells_two_jobs_apart_gives_them_other_keys(env: dict[str, str], name: str, value: str) -> None:
    ours, other = read_inputs(env), read_inputs({**env, name: value})
    assert job_slug("x", ours.identity) != job_slug("x", other.identity)


def test_branch_attempt_and_order_of_matrix_keys_do_not_matter(env: dict[str, str]) -> None:
    one = read_inputs({**env, "CPR_INPUT_MATRIX": '{"a": 1, "b": 2}'})
    other = read_inputs(
        {
            **env,
            "CPR_INPUT_MATRIX": '{"b": 2, "a": 1}',
            "GITHUB_RUN_ATTEMPT": "2",
            "GITHUB_WORKFLOW_REF": "octo/demo/.github/workflows/ci.yml@refs/pull/1/merge",
        }
    )
    assert job_slug("x", one.identity) == job_slug("x", other.identity)


@pytest.mark.parametrize("folder", ["/", "../.."])
def test_a_folder_outside_the_workspace_is_a_mistake(tmp_path: Path, folder: str) -> None:
    env = {"GITHUB_WORKSPACE": str(tmp_path), "CPR_INPUT_WORKING_DIRECTORY": folder}
    with pytest.raises(UsageError, match="is not in the workspace"):
        read_inputs(env)


def test_who_shares_is_known_by_the_name_alone(env: dict[str, str]) -> None:
    def identity(**other: str) -> tuple[Any, Any, str]:
        found = read_inputs(env | other)
        return found.store_identity, found.identity, found.defaults.name

    leg = {"GITHUB_JOB": "leg", "CPR_INPUT_MATRIX": '{"step":"a"}', "CPR_INPUT_USE": "x", "GITHUB_WORKFLOW_REF": "w@r"}
    shared = [identity(CPR_INPUT_SHARE="demo job", **job) for job in ({"GITHUB_JOB": "plan"}, leg)]
    assert shared[0][0] == shared[1][0]
    assert shared[0][1] != shared[1][1], "state on one machine is each one's own"
    assert shared[0][2] == shared[1][2] == "demo-job"
    for other in ({"CPR_INPUT_SHARE": "x"}, {"RUNNER_OS": "macOS"}, {"CPR_INPUT_JOB": "x"}, {"CPR_INPUT_SHARE": ""}):
        assert identity(**{"CPR_INPUT_SHARE": "demo job"} | other)[0] != shared[0][0]
