#!/bin/sh
# Runs checkpoint-run with what another CI system's inputs say. All integrations end here.
#
# Read from the environment, each of them may be empty:
#   CPR_STEPS      the steps, as a list in YAML or JSON     CPR_FILE       or the job file's path
#   CPR_JOB        name of the job                          CPR_STORE      URL of the store
#   CPR_SCOPE      run, commit or content                   CPR_EXCLUDE    globs that are never kept, one a line
#   CPR_JOBS       steps that may run at once               CPR_BUDGET     time after which to stop with exit code 75
#   CPR_ARGUMENTS  further arguments, one a line            CPR_LOGS       folder for logs and the report
#   CPR_VERSION    version to use; else one that is there   CPR_TEMPORARY  folder for temporary files
#
# Kept to what every sh has, and without here-documents: it stands inside other systems' files, too.
set -eu

release=1.0.0.dev0

say() { printf 'checkpoint-run: %s\n' "$*" >&2; }

if [ -n "${CPR_STEPS:-}" ] && [ -n "${CPR_FILE:-}" ]; then
  say 'error: steps and file exclude each other; put the steps into the file'
  exit 2
fi

temporary=$(mktemp -d "${CPR_TEMPORARY:-${TMPDIR:-/tmp}}/checkpoint-run.XXXXXX")
mkdir "$temporary/job" "$temporary/bin"

# Steps without a name are named after the CI system's job, in the letters that a name may have.
if [ -n "${CPR_STEPS:-}" ] && [ -z "${CPR_JOB:-}" ]; then
  name=${CI_JOB_NAME:-${BUILDKITE_STEP_KEY:-${BUILDKITE_LABEL:-${CIRCLE_JOB:-${JOB_NAME:-job}-${STAGE_NAME:-}}}}}
  CPR_JOB=$(printf '%s' "$name" | LC_ALL=C tr -cs 'A-Za-z0-9._-' '-' | sed 's/^[^A-Za-z0-9]*//; s/-*$//' | cut -c 1-100)
  CPR_JOB=${CPR_JOB:-job}
fi

tool=$(command -v checkpoint-run || true)
if [ -n "$tool" ] && [ -n "${CPR_VERSION:-}" ] && [ "$("$tool" --version)" != "checkpoint-run $CPR_VERSION" ]; then
  tool=
fi
if [ -z "$tool" ]; then
  case ${CPR_STORE:-} in
    '' | file:*) extra= ;;
    *) extra='[cloud]' ;;
  esac
  wanted="checkpoint-run$extra==${CPR_VERSION:-$release}"
  # -I: modules come from Python alone, never from the checkout.
  if ! python3 -I -m venv "$temporary/venv" ||
    ! "$temporary/venv/bin/python" -I -m pip install --quiet --disable-pip-version-check "$wanted"; then
    say "error: $wanted could not be installed; Python 3.10 or newer with pip and venv is needed, or checkpoint-run itself"
    exit 2
  fi
  # The last folder in PATH has the tool alone, so that steps find it and see the same Python as before.
  ln -s "$temporary/venv/bin/checkpoint-run" "$temporary/bin/checkpoint-run"
  tool=$temporary/bin/checkpoint-run
  PATH=$PATH:$temporary/bin
fi

set -- run --state-dir "$temporary/state"
if [ -n "${CPR_STEPS:-}" ]; then
  # One step deeper than given, which changes no value in YAML: blocks are measured from their first line.
  { echo 'steps:' && printf '%s\n' "$CPR_STEPS" | sed 's/^/  /'; } >"$temporary/job/checkpoint.yml"
  set -- "$@" --file "$temporary/job/checkpoint.yml"
fi
if [ -n "${CPR_FILE:-}" ]; then set -- "$@" --file "$CPR_FILE"; fi
if [ -n "${CPR_JOB:-}" ]; then set -- "$@" --job "$CPR_JOB"; fi
if [ -n "${CPR_STORE:-}" ]; then set -- "$@" --store "$CPR_STORE"; fi
if [ -n "${CPR_SCOPE:-}" ]; then set -- "$@" --scope "$CPR_SCOPE"; fi
if [ -n "${CPR_JOBS:-}" ]; then set -- "$@" --jobs "$CPR_JOBS"; fi
if [ -n "${CPR_BUDGET:-}" ]; then set -- "$@" --budget "$CPR_BUDGET"; fi
if [ -n "${CPR_LOGS:-}" ]; then
  mkdir -p "$CPR_LOGS"
  set -- "$@" --logs-dir "$CPR_LOGS" --report "$CPR_LOGS/report.html" --exclude "$CPR_LOGS"
fi
case ${CPR_STORE:-} in "file://$PWD/"*) set -- "$@" --exclude "${CPR_STORE#"file://$PWD/"}" ;; esac
before=$IFS
IFS='
'
set -f
for line in ${CPR_EXCLUDE:-}; do set -- "$@" --exclude "$line"; done
for line in ${CPR_ARGUMENTS:-}; do set -- "$@" "$line"; done
set +f
IFS=$before

unset CPR_STEPS CPR_FILE CPR_JOB CPR_STORE CPR_SCOPE CPR_EXCLUDE CPR_JOBS CPR_BUDGET CPR_ARGUMENTS CPR_LOGS CPR_VERSION \
  CPR_TEMPORARY
exec "$tool" "$@"
