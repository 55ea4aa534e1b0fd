# Shape: a manifest that kubectl reads from a pipe.
export REPLICAS=4
cat <<'POLICY' | kubectl apply -f -
apiVersion: v1
kind: Service
metadata: {name: chat}
POLICY
cat <<DEPLOYMENT | kubectl apply -n llm -f -
apiVersion: apps/v1
kind: Deployment
metadata: {name: piped}
spec:
  replicas: ${REPLICAS}
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.15.1
          args: [--model=Qwen/Qwen3-32B, --tensor-parallel-size=2]
DEPLOYMENT
