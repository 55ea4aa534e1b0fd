#!/usr/bin/env bash
# Tries clifftop serve with real clients and under load: see README.md. It needs Go, Node.js with npm, and Prometheus,
# which it installs as root on Debian. Go builds k6.
set -euo pipefail
cd "$(dirname "$0")"

missing() { echo "e2e: there is no $1 here (want it installed)"; exit 1; }

install() { # PROGRAM PACKAGE…
  command -v "$1" > /dev/null && return
  [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null || missing "$1"
  shift
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"; } > /dev/null 2>&1 ||
    missing "$*"
}
command -v node > /dev/null || install node nodejs npm
install prometheus prometheus
npm ci --no-audit --no-fund > /dev/null

work=$(mktemp -d)
server=
cleanup() {
  [ -z "$server" ] || kill "$server" 2> /dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

go -C ../../.. build -o "$work/clifftop" ./cmd/clifftop
go -C ../../../.ci build -o "$work/load" ./load
go test -c -o "$work/clients" .
GOBIN="$work" go install go.k6.io/k6@v1.8.1 2> "$work/log" || { cat "$work/log"; exit 1; }

export CLIFFTOP_API_KEY=secret
"$work/clifftop" serve scenario.yaml --listen 127.0.0.1:0 --journal "$work/journal.csv" > "$work/address" 2> "$work/log" &
server=$!
for _ in $(seq 200); do [ -s "$work/address" ] && break; sleep 0.1; done
[ -s "$work/address" ] || { cat "$work/log"; exit 1; }
export CLIFFTOP_SERVER=$(cat "$work/address")

"$work/clients" -test.v
node --test --test-concurrency=1 ./*.test.js
"$work/k6" run --quiet --no-usage-report load.k6.js

# It ends when it is interrupted, and what it served can be simulated.
kill -TERM "$server"
wait "$server"
server=
"$work/clifftop" run scenario.yaml --trace "$work/journal.csv" --check --quiet > "$work/replayed"
echo "e2e: $(($(wc -l < "$work/journal.csv") - 1)) requests were served and simulated again"
unset CLIFFTOP_API_KEY

# The limits leave room for other programs on the machine; BENCHMARKS.md has what a quiet one gives.
load() { # KIND SCENARIO FLAGS…
  local kind=$1 scenario=$2
  shift 2
  "$work/load" "$kind" --clifftop "$work/clifftop" --scenario "$scenario" --p50 20ms --p99 250ms "$@"
}
echo "e2e: 2,000 streams at 10 tokens/s for a minute"
load streams streams.yaml --streams 2000 --tokens 550 --over 5s --drift 50ms --growth 40
echo "e2e: 1,000 short requests per second"
load rate short.yaml --rate 1000 --for 10s --tokens 4
echo "e2e: a closed loop of 64 users"
load loop loop.yaml --users 64 --requests 5 --tokens 100 --prompt 200 --equal 0.1
echo "e2e: 200 requests per second, and the same through record"
"$work/load" record --clifftop "$work/clifftop" --scenario short.yaml --rate 200 --for 10s --tokens 40 --prompt 200 \
  --p99 250ms --equal 0.02
