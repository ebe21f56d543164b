"""The CI system around us: one table of the variables by which each names a run, a try of it, and the job."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["CiRun", "recognise"]

_Env = Mapping[str, str]
_Source = str | Callable[[_Env], str]
"""Names of variables with ``|`` between, of which the first that is set counts; or what works a value out."""

_UNFIT = re.compile(r"[^a-z0-9._]+")
_LONGEST_NUMBER = 18


@dataclass(frozen=True, slots=True)
class CiRun:
    """A job of a CI system, in one of its runs.

    :param system: the system's name, in lower case, without spaces.
    :param run: names the pipeline or build. It is the same in all tries of it and has but ``a-z0-9._``.
    :param attempt: digits. A later try of this job in this run has a higher number; ``'1'`` always where the system
        counts none (Jenkins, TeamCity, Travis, AppVeyor, Drone, Woodpecker).
    :param commit: full hash of what is built; empty where the system does not say it.
    :param parts: all that tells this job from every other one, in every run: the system, the project, the pipeline,
        the job, its parallel index, the machine's kind. Nothing in it is a secret or changes from run to run.
    :param url: the job's page, or the run's; empty where it cannot be known.
    :param temporary: a folder of this job for temporary files; empty where the system names none.
    """

    system: str
    run: str
    attempt: str
    commit: str
    parts: tuple[str, ...]
    url: str
    temporary: str


@dataclass(frozen=True, slots=True)
class _System:
    """A row of the table. What is read from where; ``sign`` is a variable with the value it must have (any for ``''``).

    :param attempt: variables with a number that rises with each try of the job, and what to add so that it starts at 1;
        the first that is set counts.
    :param url: text with ``{VARIABLE}``; no URL where one of them is not set.
    """

    name: str
    sign: tuple[str, str]
    run: _Source
    commit: _Source
    parts: tuple[_Source, ...]
    url: str = ""
    attempt: tuple[tuple[str, int], ...] = ()
    temporary: _Source = ""


def _place_in_travis_build(env: _Env) -> str:
    """The 2 of job 17.2: a matrix job without a name has nothing else to be known by."""
    return env.get("TRAVIS_JOB_NUMBER", "").rpartition(".")[2]


_ACTIONS_PARTS: tuple[_Source, ...] = (
    "GITHUB_SERVER_URL",
    "GITHUB_REPOSITORY",
    lambda env: env.get("GITHUB_WORKFLOW_REF", "").partition("@")[0] or env.get("GITHUB_WORKFLOW", ""),
    "GITHUB_JOB",  # the same in all legs of a matrix, whose values no variable tells
)


def _actions(name: str, sign: str) -> _System:
    return _System(
        name,
        (sign, "true"),
        run="GITHUB_RUN_ID",
        attempt=(("GITHUB_RUN_ATTEMPT", 0),),
        commit="GITHUB_SHA",
        parts=_ACTIONS_PARTS,
        url="{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}",
        temporary="RUNNER_TEMP",
    )


_SYSTEMS = (
    # These two call themselves GitHub Actions too.
    _actions("forgejo", "FORGEJO_ACTIONS"),
    _actions("gitea", "GITEA_ACTIONS"),
    _actions("github", "GITHUB_ACTIONS"),
    _System(
        # A retried job keeps its pipeline and its name, which holds the values of parallel:matrix; its id is a new and
        # higher one.
        "gitlab",
        ("GITLAB_CI", "true"),
        run="CI_PIPELINE_ID",
        attempt=(("CI_JOB_RETRY_COUNT", 1), ("CI_JOB_ID", 0)),  # the count: from GitLab 19.3 on
        commit="CI_COMMIT_SHA",
        parts=("CI_SERVER_HOST", "CI_PROJECT_PATH", "CI_CONFIG_PATH", "CI_JOB_NAME", "CI_NODE_INDEX"),
        url="{CI_JOB_URL}",
    ),
    _System(
        # A retried job keeps its build and step, and is counted; a rebuild is a new build. The number orders builds and
        # is one pipeline's own. A step without key and label is known by its id, which no other build has.
        "buildkite",
        ("BUILDKITE", "true"),
        run="BUILDKITE_BUILD_NUMBER",
        attempt=(("BUILDKITE_RETRY_COUNT", 1),),
        commit="BUILDKITE_COMMIT",
        parts=(
            "BUILDKITE_ORGANIZATION_SLUG",
            "BUILDKITE_PIPELINE_SLUG",
            "BUILDKITE_STEP_KEY",
            "BUILDKITE_LABEL",
            "BUILDKITE_STEP_KEY|BUILDKITE_LABEL|BUILDKITE_STEP_ID",
            "BUILDKITE_PARALLEL_JOB",
        ),
        url="{BUILDKITE_BUILD_URL}#{BUILDKITE_JOB_ID}",
    ),
    _System(
        # "Rerun from failed" is a new workflow in the old one's workspace, and its jobs have higher numbers.
        # "Rerun from start" has a workspace of its own, so it starts from nothing.
        "circleci",
        ("CIRCLECI", "true"),
        run="CIRCLE_WORKFLOW_WORKSPACE_ID|CIRCLE_WORKFLOW_ID",
        attempt=(("CIRCLE_BUILD_NUM", 0),),
        commit="CIRCLE_SHA1",
        parts=(
            "CIRCLE_PROJECT_ID",
            "CIRCLE_PROJECT_USERNAME",
            "CIRCLE_PROJECT_REPONAME",
            "CIRCLE_JOB",
            "CIRCLE_NODE_INDEX",
        ),
        url="{CIRCLE_BUILD_URL}",
    ),
    _System(
        # "Rerun failed jobs" keeps the build and counts the job's tries. A matrix leg is the job's name in its phase.
        "azure",
        ("TF_BUILD", "True"),
        run="BUILD_BUILDID",
        attempt=(("SYSTEM_JOBATTEMPT", 0), ("SYSTEM_STAGEATTEMPT", 0)),
        commit="BUILD_SOURCEVERSION",
        parts=(
            "SYSTEM_COLLECTIONURI",
            "SYSTEM_TEAMPROJECTID",
            "SYSTEM_DEFINITIONID",
            "SYSTEM_STAGENAME",
            "SYSTEM_PHASENAME",
            "SYSTEM_JOBNAME",
            "SYSTEM_JOBPOSITIONINPHASE",
        ),
        url="{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECTID}/_build/results?buildId={BUILD_BUILDID}",
        temporary="AGENT_TEMPDIRECTORY",
    ),
    _System(
        # "Rerun failed steps" keeps the build's number and counts. No variable has the step's name, and its UUID is
        # another one in each build: two steps are told apart by the names of what they run.
        "bitbucket",
        ("BITBUCKET_BUILD_NUMBER", ""),
        run="BITBUCKET_BUILD_NUMBER",
        attempt=(("BITBUCKET_STEP_RUN_NUMBER", 0),),
        commit="BITBUCKET_COMMIT",
        parts=("BITBUCKET_REPO_UUID|BITBUCKET_REPO_FULL_NAME", "BITBUCKET_PARALLEL_STEP"),
        url="{BITBUCKET_GIT_HTTP_ORIGIN}/pipelines/results/{BITBUCKET_BUILD_NUMBER}",
    ),
    _System(
        # The step retry{} stays in its build. Rebuild, Replay and "Restart from Stage" are builds of their own.
        "jenkins",
        ("JENKINS_URL", ""),
        run="BUILD_NUMBER",
        commit="GIT_COMMIT",
        parts=("JENKINS_URL", "JOB_NAME", "STAGE_NAME"),
        url="{BUILD_URL}",
        temporary="WORKSPACE_TMP",
    ),
    _System(
        # Each re-run, also an automatic one, is a new build.
        "teamcity",
        ("TEAMCITY_VERSION", ""),
        run="BUILD_NUMBER",
        commit="BUILD_VCS_NUMBER",
        parts=("TEAMCITY_PROJECT_NAME", "TEAMCITY_BUILDCONF_NAME"),
        url="{BUILD_URL}",
    ),
    _System(
        # A restart is a new pipeline. Older servers call themselves Drone too.
        "woodpecker",
        ("CI", "woodpecker"),
        run="CI_PIPELINE_NUMBER",
        commit="CI_COMMIT_SHA",
        parts=("CI_SYSTEM_HOST", "CI_REPO", "CI_WORKFLOW_NAME", "CI_WORKFLOW_NUMBER", "CI_STEP_NAME"),
        url="{CI_PIPELINE_URL}",
    ),
    _System(
        # A restart is a new build.
        "drone",
        ("DRONE", "true"),
        run="DRONE_BUILD_NUMBER",
        commit="DRONE_COMMIT_SHA|DRONE_COMMIT",
        parts=("DRONE_SYSTEM_HOST", "DRONE_REPO", "DRONE_STAGE_NAME", "DRONE_STEP_NAME"),
        url="{DRONE_BUILD_LINK}",
    ),
    _System(
        # A restarted job keeps all its names.
        "travis",
        ("TRAVIS", "true"),
        run="TRAVIS_BUILD_ID",
        commit="TRAVIS_COMMIT",
        parts=("TRAVIS_REPO_SLUG", "TRAVIS_BUILD_STAGE_NAME", "TRAVIS_JOB_NAME", _place_in_travis_build),
        url="{TRAVIS_JOB_WEB_URL}",
        temporary="TRAVIS_TMPDIR",
    ),
    _System(
        # "Re-run incomplete" stays in its build. A job's name holds its values of the matrix.
        "appveyor",
        ("APPVEYOR", "true"),
        run="APPVEYOR_BUILD_ID",
        commit="APPVEYOR_REPO_COMMIT",
        parts=(
            "APPVEYOR_ACCOUNT_NAME",
            "APPVEYOR_PROJECT_SLUG",
            "APPVEYOR_JOB_NAME",
            "APPVEYOR_BUILD_WORKER_IMAGE",
            "PLATFORM",
            "CONFIGURATION",
        ),
        url="{APPVEYOR_URL}/project/{APPVEYOR_ACCOUNT_NAME}/{APPVEYOR_PROJECT_SLUG}/builds/{APPVEYOR_BUILD_ID}",
    ),
)


def recognise(env: Mapping[str, str], *, machine: str | None = None) -> CiRun | None:
    """The CI job that this environment is of, or ``None``: no system that is known here, or one that names no run.

    :param machine: operating system and processor, which are part of the job; this machine's if not given.
    """
    for system in _SYSTEMS:
        variable, value = system.sign
        said = env.get(variable, "")
        if not said or (value and said.lower() != value.lower()):
            continue
        run = _UNFIT.sub("_", _read(system.run, env).lower()).strip("_")
        if not run:
            continue
        return CiRun(
            system=system.name,
            run=run,
            attempt=_attempt(system, env),
            commit=_read(system.commit, env),
            parts=(system.name, *(_read(part, env) for part in system.parts), machine or _machine()),
            url=_filled(system.url, env),
            temporary=_read(system.temporary, env),
        )
    return None


def _read(source: _Source, env: _Env) -> str:
    if callable(source):
        return source(env)
    return next((env[name] for name in source.split("|") if env.get(name)), "")


def _attempt(system: _System, env: _Env) -> str:
    for name, offset in system.attempt:
        said = env.get(name, "")
        if said.isascii() and said.isdigit() and len(said) <= _LONGEST_NUMBER:
            return str(int(said) + offset)
    return "1"


def _filled(text: str, env: _Env) -> str:
    """The text with its variables' values; empty where one has none."""
    names = re.findall(r"{(\w+)}", text)
    if not all(env.get(name) for name in names):
        return ""
    return re.sub(r"{(\w+)}", lambda match: env[match[1]], text)


def _machine() -> str:
    import platform  # noqa: PLC0415  # only in CI

    return f"{sys.platform}-{platform.machine().lower()}"
