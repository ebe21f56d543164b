#!/bin/sh
# Makes the samples beside this file by really running checkpoint-run (which must be on PATH).
# Usage: examples/sample-output/make.sh, from anywhere.
# shellcheck disable=SC2016  # the steps expand their variables, not this script
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# sample NAME RUN ARGUMENTS...: one run, its terminal output in run-N.txt
run() {
  number=$1
  shift
  code=0
  checkpoint-run "$@" > "run-$number.txt" 2>&1 || code=$?
  echo "exit code $code" >> "run-$number.txt"
}

begin() {
  rm -rf "${here:?}/$1"
  mkdir -p "$work/$1"
  cd "$work/$1"
}

# The state files begin with a dot; here they do not, so that they are seen.
keep() {
  mkdir -p "$here/$1"
  for file in .checkpoint-run-*.json .checkpoint-run-*.journal; do
    cp "$file" "$here/$1/${file#.}"
  done
  cp run-*.txt "$here/$1/"
  cp -R logs "$here/$1/logs"
}

# The third of four steps fails; the second run goes on with it.
begin resumed
for number in 1 2; do
  run "$number" --job report --logs-dir logs \
    --step numbers:'seq 1 1000 > numbers.txt; wc -l numbers.txt' --step-artifact numbers:numbers.txt \
    --step squares:'awk "{print \$1 * \$1}" numbers.txt > squares.txt; tail -n 1 squares.txt' --step-artifact squares:squares.txt \
    --step check:'test -e allowed || { echo "not allowed yet" >&2; exit 3; }; echo allowed' \
    --step sum:'awk "{s += \$1} END {print s}" squares.txt | tee sum.txt' --step-artifact sum:sum.txt
  : > allowed
done
keep resumed

# The first two tries fail.
begin retries
run 1 --job flaky --logs-dir logs --retry 3 --backoff 0.1 \
  --step fetch:'echo x >> tries; echo "try $CHECKPOINT_TRY"; test "$(wc -l < tries)" -ge 3 && echo data > data.txt' \
  --step-artifact fetch:data.txt \
  --step use:'cat data.txt'
keep retries

# Between the runs somebody edits what the first step left.
begin changed-artifact
for number in 1 2; do
  run "$number" --job pages --logs-dir logs \
    --step write:'echo hello > page.html' --step-artifact write:page.html \
    --step count:'wc -c < page.html'
  test "$number" -eq 2 || echo edited >> page.html
done
keep changed-artifact
