#!/bin/bash
# Makes one sweep in five ways, whole, by GNU parallel, by the shell alone, as the pods of an Indexed Job would, and in 1, 4
# and 20 shards, and demands equal bytes. It prints what sharding costs: user time of all tasks against that of
# one process.
set -euo pipefail
cd "$(dirname "$0")/../../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/clifftop" ./cmd/clifftop
export CLIFFTOP=$work/clifftop
points=${1:-200}
sweep=(--over "rate=1..30:$points" --set run.requests=2000)

user() { # user time of a command, in seconds
  local TIMEFORMAT=%U
  { time "$@" >/dev/null 2>"$work/err"; } 2>&1 || { cat "$work/err" >&2; exit 1; }
}
same() {
  "$CLIFFTOP" merge "$work/$1" --quiet >"$work/$1.txt"
  cmp "$work/one.txt" "$work/$1.txt"
  for file in curve.json curve.csv sweep.svg; do cmp "$work/one/$file" "$work/$1/$file"; done
  echo "$1: equal bytes"
}

whole=$(user "$CLIFFTOP" sweep "${sweep[@]}" --out "$work/one" --quiet --jobs 1)
"$CLIFFTOP" sweep "${sweep[@]}" --out "$work/one" --quiet >"$work/one.txt"
echo "$points runs by one process: $whole s"
for n in 1 4 20; do
  sum=0
  for k in $(seq 0 $((n - 1))); do
    s=$(user "$CLIFFTOP" sweep "${sweep[@]}" --shard "$k/$n" --out "$work/shards$n" --quiet --jobs 1)
    sum=$(echo "$sum + $s" | bc -l)
  done
  same "shards$n"
  echo "$n shards: $sum s, $(echo "scale=1; 100*($sum-$whole)/$whole" | bc -l) % more"
done
if command -v parallel >/dev/null; then
  experiments/scale-out/shell/sweep.sh 4 "${sweep[@]}" --out "$work/parallel" --quiet
  same parallel
else
  echo "parallel: skipped, it is not installed"
fi
for k in 0 1 2; do
  JOB_COMPLETION_INDEX=$k CLIFFTOP_SHARDS=3 "$CLIFFTOP" sweep "${sweep[@]}" --shard auto --resume --out "$work/indexed" --quiet
done
same indexed
{ command -v parallel >/dev/null && bin=$(mktemp -d -p "$work") && for c in seq dirname; do ln -s "$(command -v $c)" "$bin/$c"; done; } || bin=$PATH
PATH=$bin /bin/sh experiments/scale-out/shell/sweep.sh 3 "${sweep[@]}" --out "$work/shell" --quiet
same shell
/usr/bin/env time -f '%M kB' true 2>/dev/null && /usr/bin/env time -f "merge of $points runs: %M kB at most" "$CLIFFTOP" merge "$work/shards4" --quiet --format csv >/dev/null || true
