FROM vllm/vllm-openai:v0.13.0
ENV HF_HOME=/models
CMD ["--model", "Qwen/Qwen3-32B", \
     "--tensor-parallel-size", "2", \
     "--kv-cache-dtype", "fp8"]
