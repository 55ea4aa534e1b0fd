# Shape: ENTRYPOINT in shell form, as in koyeb/example-vllm.
ARG RELEASE=v0.15.1
FROM python:3.12 AS fetch
RUN pip install huggingface_hub
CMD ["python", "fetch.py"]

FROM vllm/vllm-openai:${RELEASE}
ARG MAX_LEN
ENV MODEL=Qwen/Qwen3-32B TP=2
ENV SEQS 128
COPY --from=fetch /models /models
ENTRYPOINT vllm serve ${MODEL} \
    # the GPUs of one machine
    --tensor-parallel-size ${TP} \
    --max-num-seqs $SEQS \
    ${MAX_LEN:+--max-model-len $MAX_LEN}
CMD ["--ignored"]
