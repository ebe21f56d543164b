"""Which CI job an environment is of, in tables as the systems' own documentation gives their variables."""

from __future__ import annotations

import re

import pytest

from checkpoint_action.ci import recognise

ACTIONS = {
    "GITHUB_SERVER_URL": "https://git.example",
    "GITHUB_REPOSITORY": "acme/tool",
    "GITHUB_WORKFLOW_REF": "acme/tool/.github/workflows/ci.yml@refs/heads/main",
    "GITHUB_WORKFLOW": "CI",
    "GITHUB_JOB": "build",
    "GITHUB_RUN_ID": "816",
    "GITHUB_RUN_ATTEMPT": "1",
    "GITHUB_SHA": "c0ffee",
    "RUNNER_TEMP": "/runner/temp",
    "GITHUB_ACTIONS": "true",
    "CI": "true",
}
GITLAB = {
    "GITLAB_CI": "true",
    "CI_SERVER_HOST": "gitlab.example",
    "CI_PROJECT_PATH": "acme/tool",
    "CI_CONFIG_PATH": ".gitlab-ci.yml",
    "CI_PIPELINE_ID": "7001",
    "CI_JOB_ID": "90210",
    "CI_JOB_NAME": "build: [linux, debug]",
    "CI_JOB_URL": "https://gitlab.example/acme/tool/-/jobs/90210",
    "CI_COMMIT_SHA": "c0ffee",
    "CI_JOB_TOKEN": "glcbt-secret",
    "CI_REPOSITORY_URL": "https://gitlab-ci-token:glcbt-secret@gitlab.example/acme/tool.git",
}
BUILDKITE = {
    "BUILDKITE": "true",
    "BUILDKITE_ORGANIZATION_SLUG": "acme",
    "BUILDKITE_PIPELINE_SLUG": "tool",
    "BUILDKITE_BUILD_ID": "0195-b1",
    "BUILDKITE_BUILD_NUMBER": "88",
    "BUILDKITE_BUILD_URL": "https://buildkite.com/acme/tool/builds/88",
    "BUILDKITE_JOB_ID": "0195-j1",
    "BUILDKITE_STEP_ID": "0195-s1",
    "BUILDKITE_STEP_KEY": "build",
    "BUILDKITE_LABEL": ":hammer: build",
    "BUILDKITE_RETRY_COUNT": "0",
    "BUILDKITE_COMMIT": "c0ffee",
    "BUILDKITE_AGENT_ACCESS_TOKEN": "bk-secret",
}
CIRCLE = {
    "CIRCLECI": "true",
    "CIRCLE_PROJECT_ID": "p-1",
    "CIRCLE_PROJECT_USERNAME": "acme",
    "CIRCLE_PROJECT_REPONAME": "tool",
    "CIRCLE_WORKFLOW_ID": "11112222-3333-4444-5555-666677778888",
    "CIRCLE_WORKFLOW_WORKSPACE_ID": "11112222-3333-4444-5555-666677778888",
    "CIRCLE_JOB": "build",
    "CIRCLE_NODE_INDEX": "0",
    "CIRCLE_BUILD_NUM": "412",
    "CIRCLE_BUILD_URL": "https://circleci.com/gh/acme/tool/412",
    "CIRCLE_SHA1": "c0ffee",
    "CIRCLE_OIDC_TOKEN": "circle-secret",
}
AZURE = {
    "TF_BUILD": "True",
    "SYSTEM_COLLECTIONURI": "https://dev.azure.com/acme/",
    "SYSTEM_TEAMPROJECTID": "tp-1",
    "SYSTEM_DEFINITIONID": "12",
    "SYSTEM_STAGENAME": "Build",
    "SYSTEM_PHASENAME": "Compile",
    "SYSTEM_JOBNAME": "linux_debug",
    "SYSTEM_JOBPOSITIONINPHASE": "1",
    "SYSTEM_JOBATTEMPT": "1",
    "SYSTEM_STAGEATTEMPT": "1",
    "BUILD_BUILDID": "5150",
    "BUILD_SOURCEVERSION": "c0ffee",
    "AGENT_TEMPDIRECTORY": "/agent/_temp",
    "SYSTEM_ACCESSTOKEN": "azure-secret",
}
BITBUCKET = {
    "BITBUCKET_BUILD_NUMBER": "31",
    "BITBUCKET_REPO_UUID": "{r-1}",
    "BITBUCKET_REPO_FULL_NAME": "acme/tool",
    "BITBUCKET_STEP_UUID": "{s-1}",
    "BITBUCKET_STEP_RUN_NUMBER": "1",
    "BITBUCKET_GIT_HTTP_ORIGIN": "https://bitbucket.org/acme/tool",
    "BITBUCKET_COMMIT": "c0ffee",
    "BITBUCKET_STEP_OIDC_TOKEN": "bb-secret",
}
JENKINS = {
    "JENKINS_URL": "https://jenkins.example/",
    "JOB_NAME": "tool/main",
    "STAGE_NAME": "Build",
    "BUILD_NUMBER": "77",
    "BUILD_URL": "https://jenkins.example/job/tool/job/main/77/",
    "WORKSPACE_TMP": "/ws@tmp",
    "GIT_COMMIT": "c0ffee",
}
TEAMCITY = {
    "TEAMCITY_VERSION": "2026.1",
    "TEAMCITY_PROJECT_NAME": "Tool",
    "TEAMCITY_BUILDCONF_NAME": "Build",
    "BUILD_NUMBER": "1.4-77",
    "BUILD_VCS_NUMBER": "c0ffee",
    "BUILD_URL": "https://teamcity.example/build/77",
}
WOODPECKER = {
    "CI": "woodpecker",
    "CI_SYSTEM_HOST": "ci.example",
    "CI_REPO": "acme/tool",
    "CI_PIPELINE_NUMBER": "8",
    "CI_PIPELINE_URL": "https://ci.example/repos/7/pipeline/8",
    "CI_WORKFLOW_NAME": "build",
    "CI_WORKFLOW_NUMBER": "1",
    "CI_STEP_NAME": "compile",
    "CI_COMMIT_SHA": "c0ffee",
    "DRONE": "true",
    "DRONE_BUILD_NUMBER": "8",
}
DRONE = {
    "CI": "true",
    "DRONE": "true",
    "DRONE_SYSTEM_HOST": "drone.example",
    "DRONE_REPO": "acme/tool",
    "DRONE_BUILD_NUMBER": "6",
    "DRONE_BUILD_LINK": "https://drone.example/acme/tool/6",
    "DRONE_STAGE_NAME": "build",
    "DRONE_STEP_NAME": "compile",
    "DRONE_COMMIT_SHA": "c0ffee",
}
TRAVIS = {
    "TRAVIS": "true",
    "TRAVIS_REPO_SLUG": "acme/tool",
    "TRAVIS_BUILD_ID": "4242",
    "TRAVIS_JOB_NUMBER": "17.2",
    "TRAVIS_JOB_WEB_URL": "https://travis-ci.com/acme/tool/jobs/9",
    "TRAVIS_COMMIT": "c0ffee",
}
APPVEYOR = {
    "APPVEYOR": "True",
    "APPVEYOR_URL": "https://ci.appveyor.com",
    "APPVEYOR_ACCOUNT_NAME": "acme",
    "APPVEYOR_PROJECT_SLUG": "tool",
    "APPVEYOR_BUILD_ID": "333",
    "APPVEYOR_JOB_ID": "abcd",
    "APPVEYOR_JOB_NAME": "Environment: PY=3.12",
    "APPVEYOR_REPO_COMMIT": "c0ffee",
}
ALL = {
    "github": ACTIONS,
    "gitea": {**ACTIONS, "GITEA_ACTIONS": "true"},
    "forgejo": {**ACTIONS, "GITEA_ACTIONS": "true", "FORGEJO_ACTIONS": "true"},
    "gitlab": GITLAB,
    "buildkite": BUILDKITE,
    "circleci": CIRCLE,
    "azure": AZURE,
    "bitbucket": BITBUCKET,
    "jenkins": JENKINS,
    "teamcity": TEAMCITY,
    "woodpecker": WOODPECKER,
    "drone": DRONE,
    "travis": TRAVIS,
    "appveyor": APPVEYOR,
}

RETRIES = {
    "github": {"GITHUB_RUN_ATTEMPT": "2"},
    "gitea": {"GITHUB_RUN_ATTEMPT": "2"},
    "forgejo": {"GITHUB_RUN_ATTEMPT": "2"},
    "gitlab": {"CI_JOB_ID": "90333", "CI_JOB_URL": "https://gitlab.example/acme/tool/-/jobs/90333"},
    "buildkite": {"BUILDKITE_JOB_ID": "0195-j2", "BUILDKITE_RETRY_COUNT": "1"},
    "circleci": {"CIRCLE_WORKFLOW_ID": "99990000-1111-2222-3333-444455556666", "CIRCLE_BUILD_NUM": "420"},
    "azure": {"SYSTEM_JOBATTEMPT": "2", "SYSTEM_STAGEATTEMPT": "2"},
    "bitbucket": {"BITBUCKET_STEP_RUN_NUMBER": "2"},
}
"""What a retry of the same job changes, in the systems that count tries or number jobs."""

NEXT_RUNS = {
    "github": {"GITHUB_RUN_ID": "900"},
    "gitlab": {"CI_PIPELINE_ID": "7100", "CI_JOB_ID": "91000"},
    "buildkite": {
        "BUILDKITE_BUILD_ID": "0196-b2", "BUILDKITE_BUILD_NUMBER": "89", "BUILDKITE_JOB_ID": "0196-j9",
        "BUILDKITE_STEP_ID": "0196-s9",
    },
    "circleci": {
        "CIRCLE_WORKFLOW_ID": "aaaa0000-1111-2222-3333-444455556666",
        "CIRCLE_WORKFLOW_WORKSPACE_ID": "aaaa0000-1111-2222-3333-444455556666", "CIRCLE_BUILD_NUM": "500",
    },
    "azure": {"BUILD_BUILDID": "5200"},
    "bitbucket": {"BITBUCKET_BUILD_NUMBER": "32", "BITBUCKET_STEP_UUID": "{s-2}"},
    "jenkins": {"BUILD_NUMBER": "78", "BUILD_URL": "https://jenkins.example/job/tool/job/main/78/"},
    "teamcity": {"BUILD_NUMBER": "1.4-78"},
    "woodpecker": {"CI_PIPELINE_NUMBER": "9"},
    "drone": {"DRONE_BUILD_NUMBER": "7"},
    "travis": {"TRAVIS_BUILD_ID": "4300", "TRAVIS_JOB_NUMBER": "18.2"},
    "appveyor": {"APPVEYOR_BUILD_ID": "334", "APPVEYOR_JOB_ID": "efgh"},
}  # fmt: skip

OTHER_JOBS = {
    "another job of actions": (ACTIONS, {"GITHUB_JOB": "test"}),
    "another workflow file": (ACTIONS, {"GITHUB_WORKFLOW_REF": "acme/tool/.github/workflows/b.yml@refs/heads/main"}),
    "another repository": (GITLAB, {"CI_PROJECT_PATH": "acme/other"}),
    "another leg of a matrix in gitlab": (GITLAB, {"CI_JOB_NAME": "build: [linux, release]"}),
    "another slice in gitlab": ({**GITLAB, "CI_NODE_INDEX": "1"}, {"CI_NODE_INDEX": "2"}),
    "another pipeline file in gitlab": (GITLAB, {"CI_CONFIG_PATH": "nightly.yml"}),
    "another step in buildkite": (BUILDKITE, {"BUILDKITE_STEP_KEY": "test"}),
    "another slice in buildkite": ({**BUILDKITE, "BUILDKITE_PARALLEL_JOB": "0"}, {"BUILDKITE_PARALLEL_JOB": "1"}),
    "another leg in buildkite": (BUILDKITE, {"BUILDKITE_LABEL": ":hammer: build on arm"}),
    "another nameless step in buildkite": (
        {**BUILDKITE, "BUILDKITE_STEP_KEY": "", "BUILDKITE_LABEL": ""},
        {"BUILDKITE_STEP_ID": "0195-s2"},
    ),
    "another slice in circleci": (CIRCLE, {"CIRCLE_NODE_INDEX": "1"}),
    "another leg in azure": (AZURE, {"SYSTEM_JOBNAME": "linux_release"}),
    "another slice in azure": (AZURE, {"SYSTEM_JOBPOSITIONINPHASE": "2"}),
    "another slice in bitbucket": ({**BITBUCKET, "BITBUCKET_PARALLEL_STEP": "0"}, {"BITBUCKET_PARALLEL_STEP": "1"}),
    "another stage in jenkins": (JENKINS, {"STAGE_NAME": "Test"}),
    "another place in a travis build": (TRAVIS, {"TRAVIS_JOB_NUMBER": "17.3"}),
    "another leg in appveyor": (APPVEYOR, {"APPVEYOR_JOB_NAME": "Environment: PY=3.13"}),
}


@pytest.mark.parametrize("name", ALL)
def test_each_system_is_recognised_with_its_run_commit_and_job(name: str) -> None:
    found = recognise(ALL[name], machine="linux-x86_64")
    assert found is not None
    assert found.system == name
    assert re.fullmatch(r"[a-z0-9._]+", found.run)
    assert found.attempt.isdigit()
    assert found.commit == "c0ffee"
    assert found.parts[0] == name
    assert found.parts[-1] == "linux-x86_64"


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("github", "816"),
        ("gitlab", "7001"),
        ("buildkite", "88"),
        ("circleci", "11112222_3333_4444_5555_666677778888"),
        ("azure", "5150"),
        ("bitbucket", "31"),
        ("jenkins", "77"),
        ("teamcity", "1.4_77"),
        ("woodpecker", "8"),
        ("drone", "6"),
        ("travis", "4242"),
        ("appveyor", "333"),
    ],
)
def test_a_run_is_named_by_its_number_where_it_has_one(name: str, run: str) -> None:
    found = recognise(ALL[name])
    assert found is not None
    assert found.run == run


@pytest.mark.parametrize("name", RETRIES)
def test_a_retried_job_is_the_same_job_in_the_same_run_with_a_higher_attempt(name: str) -> None:
    first, again = recognise(ALL[name]), recognise({**ALL[name], **RETRIES[name]})
    assert first is not None
    assert again is not None
    assert (again.run, again.parts) == (first.run, first.parts)
    assert int(again.attempt) > int(first.attempt)


def test_gitlab_counts_tries_where_it_tells_them() -> None:
    found = [recognise({**GITLAB, "CI_JOB_RETRY_COUNT": count}) for count in ("0", "1")]
    assert [run.attempt for run in found if run] == ["1", "2"]


@pytest.mark.parametrize("name", NEXT_RUNS)
def test_the_next_run_has_another_name_and_the_same_job(name: str) -> None:
    first, later = recognise(ALL[name]), recognise({**ALL[name], **NEXT_RUNS[name]})
    assert first is not None
    assert later is not None
    assert later.run != first.run
    assert later.parts == first.parts


@pytest.mark.parametrize("what", OTHER_JOBS)
def test_another_job_has_other_parts(what: str) -> None:
    env, change = OTHER_JOBS[what]
    one, other = recognise(env), recognise({**env, **change})
    assert one is not None
    assert other is not None
    assert one.parts != other.parts


def test_two_kinds_of_machine_never_meet() -> None:
    one, other = recognise(GITLAB, machine="linux-x86_64"), recognise(GITLAB, machine="linux-aarch64")
    assert one is not None
    assert other is not None
    assert one.parts != other.parts


@pytest.mark.parametrize("name", ALL)
def test_no_secret_is_in_what_is_told(name: str) -> None:
    assert "secret" not in repr(recognise(ALL[name]))


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("github", "https://git.example/acme/tool/actions/runs/816"),
        ("buildkite", "https://buildkite.com/acme/tool/builds/88#0195-j1"),
        ("azure", "https://dev.azure.com/acme/tp-1/_build/results?buildId=5150"),
        ("bitbucket", "https://bitbucket.org/acme/tool/pipelines/results/31"),
        ("appveyor", "https://ci.appveyor.com/project/acme/tool/builds/333"),
    ],
)
def test_a_page_is_put_together_from_what_is_known(name: str, url: str) -> None:
    found = recognise(ALL[name])
    assert found is not None
    assert found.url == url


def test_a_page_of_which_a_part_is_not_known_is_left_out() -> None:
    found = recognise({name: value for name, value in BITBUCKET.items() if name != "BITBUCKET_GIT_HTTP_ORIGIN"})
    assert found is not None
    assert found.url == ""


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"CI": "true"},
        {"GITHUB_ACTIONS": "true"},
        {"GITHUB_ACTIONS": "false", "GITHUB_RUN_ID": "1"},
        {"JENKINS_URL": "https://jenkins.example/"},
        {"CIRCLECI": "true", "CIRCLE_WORKFLOW_ID": "-"},
    ],
)
def test_a_laptop_and_a_job_without_a_run_are_none(env: dict[str, str]) -> None:
    assert recognise(env) is None


@pytest.mark.parametrize("attempt", ["", "x", "-1", "٣", "1" * 30])
def test_an_attempt_that_is_no_number_is_the_first(attempt: str) -> None:
    found = recognise({**ACTIONS, "GITHUB_RUN_ATTEMPT": attempt})
    assert found is not None
    assert found.attempt == "1"
