#!/usr/bin/env bash
# llama-3.3-70b bf16 on 4 × h200-sxm (TP 4), 2 replicas
# Not in this deployment: engine.order: vllm serve has no flag
set -euo pipefail

CUDA_VISIBLE_DEVICES=0,1,2,3 vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 4 --kv-cache-dtype fp8 \
  --max-num-seqs 512 --port 8001 &

CUDA_VISIBLE_DEVICES=4,5,6,7 vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 4 --kv-cache-dtype fp8 \
  --max-num-seqs 512 --port 8002 &

vllm-router --port 8000 --service-discovery static --static-backends http://127.0.0.1:8001,http://127.0.0.1:8002 \
  --static-models meta-llama/Llama-3.3-70B-Instruct,meta-llama/Llama-3.3-70B-Instruct --routing-logic prefixaware &

wait
