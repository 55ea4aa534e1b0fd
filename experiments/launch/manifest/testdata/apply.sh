#!/bin/bash
# Shape: a manifest in a here-document.
MODEL=${MODEL:-Qwen/Qwen3-32B}
cat <<YAML > /tmp/chat.yaml
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  replicas: 2
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.15.1
          command: ["/bin/sh", "-c"]
          args:
            - vllm serve $MODEL --tensor-parallel-size 2
YAML
kubectl apply -f /tmp/chat.yaml
