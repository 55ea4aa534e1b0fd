#!/bin/sh
# Makes a sweep in N shards on one machine, with GNU parallel where it is installed and else with the shell alone, and
# joins them. The other arguments are those of clifftop sweep; --out is among them.
#
#   experiments/scale-out/shell/sweep.sh 4 scenario.yaml --over rate=1..20:2000 --out results
#
# One process uses all cores by itself: this shows how shards are made where each may be on another machine.
# With hosts that share the directory, parallel --sshlogin spreads them.
set -eu
shards=$1
shift
last=$((shards - 1))
if command -v parallel >/dev/null; then
  seq 0 "$last" | parallel --will-cite --jobs "$shards" --halt soon,fail=1 \
    "${CLIFFTOP:-clifftop}" sweep "$@" --shard "{}/$shards" --resume --jobs 1 --progress off
else
  tasks=
  for shard in $(seq 0 "$last"); do
    "${CLIFFTOP:-clifftop}" sweep "$@" --shard "$shard/$shards" --resume --jobs 1 --progress off &
    tasks="$tasks $!"
  done
  for task in $tasks; do wait "$task"; done
fi
