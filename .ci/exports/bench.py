"""Reads a detailed result as vLLM's benchmark tools read theirs, and makes the summary again from its lists.

    python3 .ci/exports/bench.py results/bench.json

The rules are those of vllm/benchmarks/serve.py: times in seconds, failures with an error and no output, the time per output
token of answers of more than one token.
"""
import json
import statistics
import sys


def close(name, got, want, relative):
    if abs(got - want) > relative * abs(want):
        sys.exit(f"{name} is {got}, want {want}")


with open(sys.argv[1]) as file:
    result = json.load(file)

lists = ["input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "generated_texts", "errors"]
n = len(result["input_lens"])
for key in lists:
    if len(result[key]) != n:
        sys.exit(f"{key} has {len(result[key])} entries, want {n}")

good = [i for i in range(n) if result["errors"][i] == ""]
outputs = [result["output_lens"][i] for i in good]
ttfts = [result["ttfts"][i] for i in good]
tpots = [(result["latencies"][i] - result["ttfts"][i]) / (result["output_lens"][i] - 1) for i in good if result["output_lens"][i] > 1]
itls = [gap for i in good for gap in result["itls"][i]]

# What the timeline plot of `vllm bench serve --plot-timeline` draws of each request.
for i in good:
    drawn = result["ttfts"][i] + sum(result["itls"][i])
    if abs(drawn - result["latencies"][i]) > 0.05 + 0.01 * drawn:
        sys.exit(f"request {i} is drawn to last {drawn}, and lasted {result['latencies'][i]}")

if result["completed"] != len(good) or result["failed"] != n - len(good):
    sys.exit(f"{len(good)} of {n} completed, not {result['completed']}")
if result["total_output_tokens"] != sum(outputs) or result["total_input_tokens"] != sum(result["input_lens"][i] for i in good):
    sys.exit("the tokens do not add up")
close("output_throughput", sum(outputs) / result["duration"], result["output_throughput"], 1e-9)
close("mean_ttft_ms", statistics.fmean(ttfts) * 1000, result["mean_ttft_ms"], 1e-6)
close("median_ttft_ms", statistics.median(ttfts) * 1000, result["median_ttft_ms"], 1e-6)
close("mean_tpot_ms", statistics.fmean(tpots) * 1000, result["mean_tpot_ms"], 1e-6)
# The lists have the gaps between the GPU's iterations, the summary those between the chunks that clients get.
close("mean_itl_ms", statistics.fmean(itls) * 1000, result["mean_itl_ms"], 0.01)
close("median_itl_ms", statistics.median(itls) * 1000, result["median_itl_ms"], 0.01)
print(f"{sys.argv[1]}: {len(good)} of {n} requests and {len(itls)} gaps give the summary's numbers again")
