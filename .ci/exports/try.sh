#!/bin/bash
# Opens every export with the program that it is for: a Prometheus server, the parser of its tools, the trace viewer of
# Chromium, DuckDB, and a reader of vLLM's benchmark results.
#
#   .ci/exports/try.sh
#
# Debian's packages and npm's are installed where they are missing; what may not be installed is left out, and it says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
here=$PWD/.ci/exports
work=$(mktemp -d)
server=
stop() {
  [ -z "$server" ] || { kill "$server" && wait "$server" || true; } 2>/dev/null
  rm -rf "$work"
}
trap stop EXIT

fail() { echo "FAILED: $1" >&2; exit 1; }
left_out() { echo "left out: $1"; }
installed() { # PROGRAM PACKAGE: reports whether there is a program, after an attempt to install it
  command -v "$1" >/dev/null && return
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$2"; } >/dev/null 2>&1 && command -v "$1" >/dev/null
}

out=$work/results
go build -o "$work" ./cmd/clifftop ./cmd/clifftop-parquet
"$work/clifftop" run --requests 1500 --rate 14 --quiet --out "$out" --save requests,timeseries,iterations,trace,metrics,bench >"$work/table"

fleet=$work/fleet
"$work/clifftop" run experiments/examples/failures.yaml --quiet --out "$fleet" --save metrics >"$work/table"

echo "-- the parser of Prometheus' tools"
for results in "$out" "$fleet"; do
  go -C "$here" run . "$results/metrics.prom"
  go -C "$here" run . -queries "$results/dashboard.json" >"$results/queries"
done

echo "-- a Prometheus server"
serve() { # RESULTS STEP METRICS...: starts a server on metrics, asks what the dashboard asks, and compares the last values of some
  local results=$1 step=$2 port= url from to query rows name asked=0
  # vLLM's names have a colon, which the linter keeps for rules, and one of its gauges ends like a counter; it may find nothing else.
  promtool check metrics <"$results/metrics.prom" >"$work/lint" 2>&1 || true
  if grep -v -e "metric names should not contain ':'" -e 'vllm:healthy_pods_total non-counter metrics should not have' "$work/lint"; then
    fail "promtool finds fault with metrics.prom"
  fi
  promtool tsdb create-blocks-from openmetrics "$results/metrics.openmetrics" "$results/tsdb" | tail -n 1
  : >"$work/prometheus.log" # it is read before the server may have opened it
  # Port 0 is one that is free; the log says which.
  prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$results/tsdb" --storage.tsdb.retention.time=100y \
    --web.listen-address=127.0.0.1:0 >"$work/prometheus.log" 2>&1 &
  server=$!
  for _ in $(seq 60); do
    port=$(sed -n 's/.*Listening on.*address=127.0.0.1:\([0-9]*\).*/\1/p' "$work/prometheus.log" | head -n 1)
    if [ -n "$port" ] && promtool query instant "http://127.0.0.1:$port" 'vector(1)' >/dev/null 2>&1; then break; fi
    sleep 0.5
  done
  [ -n "$port" ] || { cat "$work/prometheus.log" >&2; fail "the server did not start"; }
  url=http://127.0.0.1:$port
  from=$(sed -n 's/.*"from": "\(.*\)".*/\1/p' "$results/dashboard.json")
  to=$(sed -n 's/.*"to": "\(.*\)".*/\1/p' "$results/dashboard.json")
  while read -r query; do
    rows=$(promtool query range --start="$from" --end="$to" --step="$step" "$url" "$query" | grep -c '@\[')
    [ "$rows" -ge 5 ] || fail "$rows values for $query"
    asked=$((asked + 1))
  done <"$results/queries"
  for name in "${@:3}"; do
    promtool query instant --time="$to" "$url" "$name" | sed -n 's/.* => \(.*\) @.*/\1/p' | sort >"$work/shown"
    sed -n "s/^$name{.*} \(.*\)$/\1/p" "$results/metrics.prom" | sort >"$work/written"
    [ -s "$work/written" ] && cmp -s "$work/shown" "$work/written" || fail "$name on the server is not what it is in the file"
  done
  kill "$server" && wait "$server" || true
  server=
  echo "all $asked queries of the dashboard have answers, and the last values are those of metrics.prom"
}
if installed promtool prometheus && command -v prometheus >/dev/null; then
  prometheus --version 2>&1 | head -n 1
  echo 'global: {scrape_interval: 1h}' >"$work/prometheus.yml"
  serve "$out" 10s vllm:generation_tokens_total vllm:time_to_first_token_seconds_count
  serve "$fleet" 60s vllm:generation_tokens_total kube_deployment_status_replicas_ready clifftop_replicas clifftop_gpu_seconds_total
else
  left_out "Prometheus is not installed and may not be (apt-get install prometheus)"
fi

echo "-- the trace viewer, in Chromium"
viewer=$(go env GOROOT)/src/internal/trace/traceviewer/static
view() { # RESULTS WANTED...: opens a timeline and looks for what it has to hold
  local results=$1 want
  cp "$results/trace.json" "$work/viewer"
  timeout 300 chromium --headless $root --disable-gpu --disable-quic --no-first-run --disable-background-networking \
    --disable-component-update --disable-sync --allow-file-access-from-files --user-data-dir="$work/profile" \
    --virtual-time-budget=60000 --dump-dom "file://$work/viewer/viewer.html" 2>"$work/chromium.log" |
    sed -n 's/.*<pre id="out">\(.*\)<\/pre>.*/\1/p' >"$work/viewed"
  cat "$work/viewed"
  for want in warnings=0 "iterations=$(($(wc -l <"$results/iterations.csv") - 1))" "${@:2}"; do
    grep -qw -- "$want" "$work/viewed" || { tail -n 5 "$work/chromium.log" >&2; fail "the viewer does not find $want"; }
  done
}
if [ -s "$viewer/trace_viewer_full.html" ] && installed chromium chromium; then
  root=$([ "$(id -u)" = 0 ] && echo --no-sandbox || true)
  mkdir "$work/viewer"
  cp "$viewer"/*.html "$viewer"/*.js "$here/viewer.html" "$work/viewer"
  view "$out" replicas=1 requests=1500
  pipeline=$work/pipeline
  "$work/clifftop" run --requests 300 --rate 14 --set deployment.pipeline_parallel_size=3 --quiet --out "$pipeline" --save iterations,trace >"$work/table"
  view "$pipeline" replicas=1 requests=300 stages=3 "passages=$((3 * ($(wc -l <"$pipeline/iterations.csv") - 1)))"
  # Four replicas serve; one of them crashes, and all are drained: each time they start and serve again.
  lives=$work/lives
  "$work/clifftop" run experiments/examples/failures.yaml --rate 20 --set run.duration=60s --quiet --out "$lives" --save iterations,trace \
    --set 'lifecycle={cold_start: 3s, grace: 2s, probe: 1s, failures: [{kind: crash, at: 10s, replica: 2, for: 5s}, {kind: rolling-restart, at: 25s}]}' >"$work/table"
  view "$lives" replicas=4 states=19
else
  left_out "Chromium is not installed and may not be (apt-get install chromium), or this Go has no trace viewer"
fi

echo "-- vLLM's rules for a benchmark's result"
if command -v python3 >/dev/null; then python3 "$here/bench.py" "$out/bench.json"; else left_out "there is no python3"; fi

echo "-- DuckDB"
"$work/clifftop-parquet" "$out/requests.csv" "$out/iterations.csv" "$out/timeseries.csv" 2>/dev/null
cp "$here/parquet.mjs" "$work"
if command -v npm >/dev/null && npm install --prefix "$work" --no-audit --no-fund --silent @duckdb/node-api@1.5.6-r.1 >/dev/null 2>&1; then
  node "$work/parquet.mjs" "$out"
else
  left_out "npm cannot install @duckdb/node-api here"
fi
