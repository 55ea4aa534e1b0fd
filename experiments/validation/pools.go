package validation

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Disaggregated prefill/decode: the pools of a row become pools of a scenario. Both run under vLLM's scheduler with any
// engine, because a pool that only computes prompts or only decodes leaves a scheduler little to decide; kernels,
// formats and limits follow the engine. The ranks of a worker with data-parallel attention are one engine.

// Settings of pools that published results leave open.
const (
	poolPrefillTokens = 16384 // of an iteration of a rank that computes prompts
	poolDecodeTokens  = 8192  // of one that decodes
	poolSeqs          = 1024  // of a rank, if its share of the users is not larger
	wideRedundant     = 32    // experts held twice where the ranks do not divide them: SGLang's recipe of wide EP
	// poolHop is the time from the end of a prompt to the decode pool, including the messages of the workers. It was
	// chosen from 10, 25 and 50 ms on runs of up to 32 users in half of the cells, beside the engines' front ends.
	poolHop = 25 * time.Millisecond
)

// parallelism is how a worker of a pool divides its GPUs.
type parallelism struct{ workers, tp, dp, ep int }

// parallel derives the division from the columns of a pool. Where attention is data parallel each GPU of a worker is a
// rank, and the experts are spread over all, whatever tp and ep say: published results write tp 8 and tp 1 for it.
func (p *Pool) parallel(name string) (parallelism, error) {
	n := or(p.Workers, 1) // a pool with a known number of GPUs only is one engine
	if n < 1 {
		return parallelism{}, fmt.Errorf("%s_workers: the number of engines is not known (want 1 or more)", name)
	}
	gpus := or(p.GPUs, n*or(p.TP, 1)*or(p.DP, 1))
	if gpus < 1 || gpus%n != 0 {
		return parallelism{}, fmt.Errorf("%s_gpus: %d GPUs do not divide among %d workers", name, gpus, n)
	}
	each := gpus / n
	d := parallelism{workers: n, tp: each, dp: 1, ep: or(p.EP, 1)}
	if p.DPAttention == "on" {
		d.tp, d.dp, d.ep = 1, each, each
	}
	if d.ep > 1 {
		d.ep = each
	}
	return d, nil
}

// String is the deployment of a worker as a scenario writes it.
func (p parallelism) String() string {
	return fmt.Sprintf("{tensor_parallel_size: %d, data_parallel_size: %d, expert_parallel_size: %d}", p.tp, p.dp, p.ep)
}

// ranks is the number of data-parallel ranks of a pool.
func (p parallelism) ranks() int { return p.workers * p.dp }

// pools writes the pools of a row, with all that a deployment and an engine have.
func (w *writer) pools() error {
	r := w.row
	prefill, err := r.Prefill.parallel("prefill")
	if err != nil {
		return err
	}
	decode, err := r.Decode.parallel("decode")
	if err != nil {
		return err
	}
	w.c.apply("pools")
	users := or(r.Concurrency, 1)
	most, ruled := w.decodeSeqs(decode)
	if ruled {
		w.c.apply("decode_seqs")
	}
	speculative, err := w.drafts(users / decode.ranks())
	if err != nil {
		return err
	}
	if n := parts(prefill, decode, users); n > 1 {
		w.c.ranks = n
		w.c.apply("share")
		w.c.shares = map[string]int{"prefill": prefill.divide(n), "decode": decode.divide(n)}
	}
	w.line("deployment:")
	w.line("  router: least-tokens")
	w.formats()
	w.line("engine:")
	w.line("  policy: vllm")
	w.line("  kernels: %s", w.poolKernels())
	w.line("  async_scheduling: true")
	w.line("  enable_prefix_caching: %t", r.PrefixCaching == "on")
	if u := r.GPUMemUtil; u != nil {
		w.line("  gpu_memory_utilization: %g", *u)
	}
	if n := or(r.StreamInterval, 1); n > 1 {
		w.line("  stream_interval: %d", n)
	}
	w.line("overheads: {cpu: 0, cpu_per_sequence: 0}")
	exchange := func(p parallelism) string {
		keys := strings.TrimSuffix(p.String(), "}")
		if way := r.exchange(p); way != "" {
			keys += ", all2all_backend: " + way
		}
		if n := w.llm.Experts; n%p.ep != 0 && (n+wideRedundant)%p.ep == 0 {
			w.c.apply("redundant")
			keys += fmt.Sprintf(", num_redundant_experts: %d", wideRedundant)
		}
		return keys + "}"
	}
	w.line("pools:")
	w.line("- {name: prefill, role: prefill, replicas: %d, deployment: %s, engine: {%s%s}}", prefill.workers,
		exchange(prefill), w.prefillLimits(), speculative)
	host := ""
	if us := r.draftHost(); us > 0 { // of the busiest of the ranks, whose sequences the engine counts together
		w.c.apply("draft_host")
		speculative += ", async_scheduling: false"
		host = fmt.Sprintf(", overheads: {cpu: 0, cpu_per_sequence: %.2fus}", us/float64(decode.dp))
	}
	w.line("- {name: decode, role: decode, replicas: %d, deployment: %s, engine: {max_num_batched_tokens: %d, "+
		"max_num_seqs: %d%s}%s}", decode.workers, exchange(decode), max(poolDecodeTokens, most), most, speculative,
		host)
	w.line("disaggregation: {router: least-requests, hop: %v}", poolHop)
	return nil
}

// recipeBatches are the sizes of max_batch_size of a decoding rank in the published recipes of TensorRT-LLM's pools
// (NVIDIA's srt-slurm: DeepSeek-R1 on B200, B300, GB200, GB300). A recipe asks for as many users as all ranks decode at
// a time, or for up to 1.3 times as many, so that some wait: ctx1_gen1_dep32_batch16 for 563 or 666.
var recipeBatches = []int{1, 2, 4, 8, 16, 32, 64, 128, 192, 256, 512, 768, 1024}

const (
	// recipePrefillTokens is max_num_tokens of a rank that computes prompts: two of 8,192 tokens, or 16 of 1,024.
	recipePrefillTokens = 16640

	recipeUsers = 1.3  // times as many users as all ranks decode at a time: the most that a recipe asks for
	wideSeqs    = 8192 // SGLang's max_running_requests of a worker beyond a node, in the recipes of GB200
)

// prefillLimits are the limits of a rank that computes prompts. TensorRT-LLM's recipes divide no prompt, and take as
// many as fit.
func (w *writer) prefillLimits() string {
	longest := w.longestPrompt()
	if w.row.Engine != trtllmEngine || longest > recipePrefillTokens {
		return fmt.Sprintf("max_num_batched_tokens: %d, max_num_seqs: %d", poolPrefillTokens, poolSeqs)
	}
	return fmt.Sprintf("max_num_batched_tokens: %d, max_num_seqs: %d, max_model_len: %d, enable_chunked_prefill: false",
		recipePrefillTokens, recipePrefillTokens/longest, longest+1)
}

// longestPrompt is the most tokens of a prompt, as far as the row says.
func (w *writer) longestPrompt() int {
	if m := uniformSpec.Get().FindStringSubmatch(w.row.InputSpec); m != nil {
		n, _ := strconv.Atoi(m[2])
		return n
	}
	return int(math.Ceil(or(w.row.InputMean, 1)))
}

// poolKernels is the engine whose kernels and front end the pools have.
func (w *writer) poolKernels() string {
	switch w.row.Engine {
	case trtllmEngine:
		return "trtllm"
	case "sglang":
		return "sglang"
	}
	return "vllm"
}

// decodeSeqs returns the largest number of sequences that a rank decodes at a time, and whether it comes from a recipe.
func (w *writer) decodeSeqs(p parallelism) (most int, ruled bool) {
	r, ranks := w.row, p.ranks()
	users := or(r.Concurrency, 1)
	gpu, _, err := r.gpu()
	switch {
	case err != nil || p.dp <= 1:
	case r.Engine == trtllmEngine:
		for _, n := range recipeBatches {
			if n*ranks <= users && float64(users) <= math.Ceil(recipeUsers*float64(n*ranks)) {
				most, ruled = n, true
			}
		}
	case r.Engine == "sglang" && p.dp > gpu.NodeSize():
		most, ruled = wideSeqs/p.dp, true
	}
	if ruled {
		return most, true
	}
	return max(poolSeqs, (users+ranks-1)/ranks), false
}

// drafts are the drafts of the pools as a part of a map; empty without any. share is the users of a decoding rank.
func (w *writer) drafts(share int) (string, error) {
	list, err := w.draftList(share)
	if list == "" || err != nil {
		return "", err
	}
	return ", speculative: " + strings.TrimSpace(list), nil
}

// exchange is how the ranks of a worker exchange tokens with experts, where that is not the default: DeepEP with SGLang
// beyond a node, and TensorRT-LLM's all-to-all in racks that NVLink joins.
func (r *Row) exchange(p parallelism) string {
	gpu, _, err := r.gpu()
	switch {
	case err != nil || p.dp <= 1:
		return ""
	case r.Engine == trtllmEngine && gpu.DomainSize() > gpu.NodeSize():
		return "flashinfer_all2allv"
	case r.Engine == "sglang" && p.dp > gpu.NodeSize():
		return "deepep"
	}
	return ""
}

// fewestUsers is the least number of users of the part of a system that is simulated for the whole.
const fewestUsers = 256

// parts returns the number of equal parts of a system; one of them is simulated. It is the largest number that gives
// all parts equal ranks of both pools, and enough users.
func parts(prefill, decode parallelism, users int) int {
	for n := users / fewestUsers; n > 1; n-- {
		if prefill.ranks()%n == 0 && decode.ranks()%n == 0 {
			return n
		}
	}
	return 1
}

// divide leaves one of n parts of a pool: whole workers as far as they divide, and of each worker the part of its ranks
// that remains, which it returns.
func (p *parallelism) divide(n int) (share int) {
	workers := n
	for rest := p.workers; rest > 0; {
		workers, rest = rest, workers%rest
	}
	p.workers /= workers
	return n / workers
}
