#!/bin/sh
# Runs a sweep in N shards on one machine and joins them. It uses GNU parallel if it is installed, and otherwise only the shell.
# The other arguments are those of clifftop sweep and must include --out.
#
#   experiments/scale-out/shell/sweep.sh 4 scenario.yaml --over rate=1..20:2000 --out results
#
# A single process already uses all cores. This script shows how to run shards that can be on different machines. If the hosts
# share the directory, parallel --sshlogin distributes the shards.
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
