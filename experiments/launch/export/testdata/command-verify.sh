#!/usr/bin/env bash
# The traffic of the scenario, to measure the deployment with.
set -euo pipefail
URL=${URL:-http://127.0.0.1:8000}
# Not in these commands: GuideLLM has no bursts: gaps with a coefficient of variation of 2

vllm bench serve --base-url "$URL" --model meta-llama/Llama-3.3-70B-Instruct --dataset-name random \
  --random-input-len 1024 --random-output-len 256 --ignore-eos --num-prompts 500 --request-rate 4 \
  --burstiness 0.25 --save-result --save-detailed --result-filename result.json

# or
# guidellm benchmark --target "$URL" --model meta-llama/Llama-3.3-70B-Instruct --data 'prompt_tokens=1024,output_tokens=256' \
#   --rate-type poisson --rate 4 --max-requests 500 --output-path guidellm.json

clifftop verify scenario.yaml --measured result.json
