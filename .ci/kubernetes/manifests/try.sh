#!/usr/bin/env bash
# Exports deployments and decodes them strictly into the types of Kubernetes, LeaderWorkerSet and KEDA. Values of Helm
# charts are rendered with Helm's engine. Scripts are checked by bash.
set -euo pipefail
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
go -C ../../.. build -o "$out/clifftop" ./cmd/clifftop
go build -o "$out/check" .

export_one() { # NAME FORMAT SCENARIO-SETTINGS…
  local name=$1 format=$2
  shift 2
  "$out/clifftop" export "$format" --quiet --out "$out/$name-$format" "$@"
}

plain=(--model llama-3.3-70b --gpu h200 --tp 4 --replicas 2 --router prefix --rate 2)
scaled=(--model llama-3.3-70b --gpu h200 --tp 4 --rate 2
  --set 'lifecycle={autoscale: {policy: hpa, min: 1, max: 4, metric: waiting, target: 5}}')
wide=(--model deepseek-v3 --gpu h100 --tp 16 --set engine.policy=sglang --rate 1)
options=(--model llama-3.3-70b --gpu h200 --tp 2 --set engine.policy=trtllm-max-utilization
  --set deployment.kv_cache_dtype=fp8 --rate 1)
found=(--model llama-3.1-8b --gpu h100 --slo 'ttft_p95<800ms')

export_one plain kubernetes "${plain[@]}"
export_one scaled kubernetes "${scaled[@]}"
export_one scaled keda "${scaled[@]}"
export_one wide kubernetes "${wide[@]}"
export_one options kubernetes "${options[@]}"
export_one found keda "${found[@]}"
for format in helm llm-d command compose dynamo; do
  export_one plain "$format" "${plain[@]}"
done

"$out/check" manifests "$out"/*-kubernetes/kubernetes.yaml "$out"/*-keda/keda.yaml
"$out/check" values "$out"/*-helm/values.yaml "$out"/*-llm-d/values.yaml
for script in "$out"/*/*.sh; do
  bash -n "$script"
done

# A wrong field must not pass.
sed 's/replicas:/replikas:/' "$out/plain-kubernetes/kubernetes.yaml" > "$out/wrong.yaml"
if "$out/check" manifests "$out/wrong.yaml" 2> "$out/stderr"; then
  echo "a wrong field passed"
  exit 1
fi
grep -q replikas "$out/stderr"
