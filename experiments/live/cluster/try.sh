#!/usr/bin/env bash
# Builds the image with buildah, runs it with the scenario of the manifests, and decodes the manifests strictly. It needs
# buildah, which it installs as root on Debian, and no registry of images.
set -euo pipefail
cd "$(dirname "$0")"
work=$(mktemp -d)
server=
store=(--root "$work/images" --runroot "$work/run" --storage-driver vfs)
cleanup() {
  [ -z "$server" ] || kill "$server" 2> /dev/null || true
  [ -z "$server" ] || wait "$server" 2> /dev/null || true
  buildah "${store[@]}" umount --all > /dev/null 2>&1 || true
  rm -rf "$work"
}
trap cleanup EXIT

go -C ../../../.ci/kubernetes/manifests build -o "$work/check" .
"$work/check" manifests ./*.yaml

# A wrong field must not pass, neither in an object nor in a configuration inside one.
wrong() { # FILE OLD NEW
  sed "s/$2/$3/" "$1" > "$work/wrong.yaml"
  if "$work/check" manifests "$work/wrong.yaml" > /dev/null 2> "$work/stderr"; then
    echo "a wrong field passed: $3"
    exit 1
  fi
  grep -q "${3%:}" "$work/stderr"
}
wrong engines.yaml readinessProbe: readynessProbe:
wrong gateway.yaml endpointPickerRef: endpointPicker:
wrong gateway.yaml schedulingProfiles: schedulingProfile:
wrong hpa.yaml metricsQuery: metricQuery:

if ! command -v buildah > /dev/null; then
  [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null || { echo "cluster: there is no buildah here"; exit 1; }
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends buildah; } > /dev/null 2>&1
fi
mkdir "$work/context"
CGO_ENABLED=0 go -C ../../.. build -trimpath -ldflags=-w -o "$work/context/clifftop" ./cmd/clifftop
buildah "${store[@]}" bud --quiet --isolation chroot --tag clifftop --file Containerfile "$work/context" > /dev/null
container=$(buildah "${store[@]}" from clifftop)
echo "cluster: the image has $(du -sh "$(buildah "${store[@]}" mount "$container")" | cut -f1)"

# The scenario of the ConfigMap, and the image's own entry point and user.
sed -n '/^  scenario.yaml: |$/,/^---$/{/^    /s///p}' engines.yaml > "$work/scenario.yaml"
chmod 755 "$work" && chmod 644 "$work/scenario.yaml"
entry=$(buildah "${store[@]}" inspect --format '{{range .OCIv1.Config.Entrypoint}}{{.}} {{end}}' "$container")
[ "$entry" = "/clifftop serve " ] || { echo "the entry point is $entry"; exit 1; }
buildah "${store[@]}" run --isolation chroot --volume "$work/scenario.yaml:/scenario/scenario.yaml:ro" "$container" -- \
  $entry /scenario/scenario.yaml --listen 127.0.0.1:0 > "$work/address" &
server=$!
for _ in $(seq 200); do [ -s "$work/address" ] && break; sleep 0.1; done
url=$(cat "$work/address")
program=$server # and then its last descendant; a child belongs to the thread that made it
while child=$(cat "/proc/$program/task/"*/children) && [ -n "$child" ]; do program=${child%% *}; done
[ "$(awk '/^Uid:/ {print $2}' "/proc/$program/status")" = 65532 ] || { echo "the program runs as another user"; exit 1; }
for path in health ping; do
  [ "$(curl --silent --output /dev/null --write-out '%{http_code}' "$url/$path")" = 200 ]
done
curl --silent --fail "$url/metrics" > "$work/metrics"
grep -q '^vllm:num_requests_waiting{' "$work/metrics"
curl --silent --fail "$url/v1/completions" --header 'Content-Type: application/json' \
  --data '{"model": "llama-3.1-8b", "prompt": "Hello", "max_tokens": 5}' > "$work/completion"
grep -q '"text_completion"' "$work/completion"

# Kubernetes ends a pod with SIGTERM, and the program ends in order.
kill -TERM "$program"
wait "$server"
server=
echo "cluster: the container answered, and ended with status 0"
