#!/usr/bin/env bash
# Opens the playground and the reports in headless Chromium: see README.md. It needs Node.js, Chromium and the npm registry,
# gets what is missing where it may, and says so and skips where it may not.
set -euo pipefail
cd "$(dirname "$0")"

skip() { echo "e2e: skipped: $*"; exit 0; }

command -v node > /dev/null && command -v npm > /dev/null || skip "there is no Node.js here"
if [ -z "${CHROMIUM:-}" ] && ! command -v chromium > /dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null || skip "there is no Chromium here (want it installed, or CHROMIUM=its path)"
  echo "e2e: installing chromium"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } > /dev/null 2>&1 ||
    skip "chromium cannot be installed here"
fi
npm ci --no-audit --no-fund > /dev/null 2>&1 || skip "the npm registry cannot be reached"

work=$(mktemp -d)
export CLIFFTOP_ARTIFACTS=${CLIFFTOP_ARTIFACTS:-$work/screenshots}
export CLIFFTOP=$work/clifftop
server=
stop() { [ -z "$server" ] || kill "$server" 2> /dev/null || true; }
trap stop EXIT

go -C ../../.. build -o "$CLIFFTOP" ./cmd/clifftop
"$CLIFFTOP" play --source ../../.. --static "$work/page"
size=$(cat "$work"/page/* | gzip -9 | wc -c)
echo "e2e: the playground is $size bytes, compressed"
[ "$size" -le $((6 * 1024 * 1024)) ] || { echo "e2e: want 6 MiB or less"; exit 1; }
"$CLIFFTOP" play "$work/page" > "$work/address" &
server=$!
for _ in $(seq 100); do [ -s "$work/address" ] && break; sleep 0.1; done
export CLIFFTOP_PLAY=$(cat "$work/address")

node --test --test-concurrency=1 ./*.test.js

# It ends when it is interrupted, and says so with no error.
kill -TERM "$server"
wait "$server"
server=
echo "e2e: screenshots are in $CLIFFTOP_ARTIFACTS"
