package validation

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/sim/clock"
)

const never = clock.Never

// writer writes the scenario of a case.
type writer struct {
	c   *Case
	row *Row // the first
	llm model.LLM
	b   bytes.Buffer
}

// newWriter writes all but the traffic.
func newWriter(c *Case) (*writer, error) {
	w := &writer{c: c, row: c.Rows[0]}
	r := w.row
	var err error
	if w.llm, err = catalog.LLM(r.Model); err != nil {
		return nil, fmt.Errorf("model: %s", strings.TrimPrefix(err.Error(), "catalog: "))
	}
	gpu, ruled, err := r.gpu()
	if err != nil {
		return nil, fmt.Errorf("gpu: %s", strings.TrimPrefix(err.Error(), "catalog: "))
	}
	if ruled {
		c.apply("workstation")
	}
	for _, code := range r.Repairs {
		c.apply(code)
	}
	w.line("name: %s", strconv.Quote(r.ID))
	w.line("model: %s", w.llm.Name)
	w.line("gpu: %s", gpu.Name)
	if r.Pools() {
		return w, w.pools()
	}
	w.deployment()
	if err := w.engine(); err != nil {
		return nil, err
	}
	w.overheads()
	return w, nil
}

// overheads writes the parts beside the GPU that are not the engine's defaults.
func (w *writer) overheads() {
	r := w.row
	v, ruled := r.version()
	host := r.draftHost()
	var list []string
	switch {
	case host > 0:
		w.c.apply("draft_host")
		list = append(list, fmt.Sprintf("cpu: 0, cpu_per_sequence: %.1fus", host))
	case r.queueClock():
		w.c.apply("queue_clock")
		list = append(list, "frontend: 0, frontend_per_token: 0, stream_per_sequence: 0")
	case v == olderVersion && ruled, r.earlyAsync():
		list = append(list, "cpu: 0, cpu_per_sequence: 0")
	}
	if r.slowClient() {
		w.c.apply(ruleClient)
		list = append(list, fmt.Sprintf("frontend: %v, frontend_per_token: %v", clientFrontend, clientPerToken))
	}
	if len(list) > 0 {
		w.line("overheads: {%s}", strings.Join(list, ", "))
	}
}

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.b, format+"\n", args...)
}

func (w *writer) bytes() []byte { return w.b.Bytes() }

func (w *writer) deployment() {
	r := w.row
	w.line("deployment:")
	for _, k := range []struct {
		name string
		n    *int
	}{{"tensor", r.TP}, {"pipeline", r.PP}, {"data", r.DP}, {"expert", r.EP}} {
		if n := or(k.n, 1); n > 1 && !(k.name == "data" && r.replicated()) {
			w.line("  %s_parallel_size: %d", k.name, n)
		}
	}
	switch n := or(r.DP, 1); {
	case n > 1 && r.replicated():
		w.line("  replicas: %d", n)
		w.c.apply("replicas")
	case n > allRanks || n > 1 && or(r.RecvInterval, 1) > 1:
		w.c.ranks = n
		w.c.apply("one_rank")
	}
	if v, _ := r.Launch.get("all2all_backend", "moe_a2a_backend"); strings.HasPrefix(v, "deepep") && or(r.EP, 1) > 1 {
		w.line("  all2all_backend: %q", v)
	}
	if or(r.Replicas, 1) > 1 {
		w.c.apply("replicas")
	}
	w.formats()
}

// allRanks is the largest number of data-parallel ranks that are all simulated.
const allRanks = 16

// formats writes the formats of the weights and of the KV cache.
func (w *writer) formats() {
	r := w.row
	gpu, _, err := r.gpu()
	if err != nil {
		return // reported before
	}
	if d := r.WeightDtype; d != "" && d != w.llm.Precision.String() && d != w.llm.MoEPrecision.String() {
		w.line("  dtype: %q", d)
	}
	kv, ruled := r.kvDtype(&gpu)
	if ruled {
		w.c.apply("kv_dtype")
		w.c.note("kv_dtype: %q in the file, %s in the simulation", r.KVDtype, kv)
	}
	w.line("  kv_cache_dtype: %q", kv)
	if m := stateFlag.Get().FindStringSubmatch(r.EngineFlags); m != nil {
		w.line("  mamba_ssm_cache_dtype: %q", m[1])
	}
}

// stateFlag finds the format of recurrent states in the flags of launch scripts of SGLang and vLLM.
var stateFlag = pattern.New(`--mamba-ssm(?:-cache)?-dtype[ =](float32|bfloat16|float16)`)

func (w *writer) engine() error {
	r := w.row
	w.line("engine:")
	w.line("  policy: %q", r.policy())
	if v, ruled := r.version(); r.Engine == "sglang" && !ruled {
		w.line("  version: %q", v)
	} else if number, ok := strings.CutPrefix(v, trtllmEngine+"-"); ok && !ruled {
		w.line("  version: %q", "trtllm-"+number)
	} else if r.Engine == "vllm" && !w.c.steady {
		w.line("  version: %q", v)
		if ruled {
			w.c.apply("version")
			w.c.note("engine_version is not known: simulated as %s", v)
		}
	}
	seqs, tokens := r.limits()
	if r.perf() {
		if seqs == nil || tokens == nil {
			w.c.apply("limits")
		}
		seqs, tokens = given(or(seqs, perfMaxNumSeqs)), given(or(tokens, perfMaxNumBatchedTokens))
	}
	w.count("max_num_seqs", seqs)
	w.count("max_num_batched_tokens", tokens)
	w.count("max_model_len", r.MaxModelLen)
	w.count("block_size", r.BlockSize)
	w.count("num_gpu_blocks_override", r.KVBlocks)
	if n, ruled := r.capture(); n > 0 {
		w.count("max_cudagraph_capture_size", &n)
		if ruled {
			w.c.apply("capture")
		}
	}
	if r.earlyAsync() {
		w.c.apply("early_async")
	}
	w.engineOptions()
	n := or(r.StreamInterval, 1)
	if strings.HasPrefix(r.Engine, "trtllm") { // which counts iterations
		n = w.iterations(n)
	}
	if n > 1 {
		w.line("  stream_interval: %d", n)
	}
	if u := r.GPUMemUtil; u != nil {
		w.line("  gpu_memory_utilization: %g", *u)
	}
	w.toggle("enable_prefix_caching", r.PrefixCaching)
	w.toggle("enable_chunked_prefill", r.ChunkedPrefill)
	w.toggle("async_scheduling", r.asyncScheduling())
	if fuse := r.fusedAllReduce(); fuse != "" {
		w.c.apply("fusion")
		w.toggle("fuse_allreduce_rms", fuse)
	}
	if or(r.CPUKVBlocks, 0) > 0 {
		w.c.apply("offload")
	}
	return w.speculative()
}

func (w *writer) engineOptions() {
	r := w.row
	var options []string
	add := func(key string, value any) { options = append(options, fmt.Sprintf("%s: %v", key, value)) }
	section := r.policy()
	switch {
	case section == "sglang":
		if n := w.iterations(or(r.RecvInterval, 1)); n > 1 {
			add("scheduler_recv_interval", n)
		}
		if n := or(r.ChunkedPrefillSize, 0); n > 0 {
			add("chunked_prefill_size", n)
		}
		if n := or(r.MaxPrefillTokens, 0); n > 0 {
			add("max_prefill_tokens", n)
		}
		if f := r.Launch.fraction("mem_fraction_static"); f != nil && *f > 0 && *f <= 1 {
			add("mem_fraction_static", *f)
		}
		if r.Launch.has("enable_mixed_chunk") {
			add("enable_mixed_chunk", true)
		}
		if r.PrefixCaching == "off" && strings.Contains(r.OutputSpec, "ignore_eos") {
			add("ignore_eos", true)
		}
	case strings.HasPrefix(section, "trtllm-"):
		section = "trtllm"
		if f := r.Launch.fraction("kv_cache_config.free_gpu_memory_fraction"); f != nil && *f > 0 && *f <= 1 {
			add("free_gpu_memory_fraction", *f)
		}
		if r.Launch.has("attention_dp_config.enable_balance") {
			add("attention_dp_enable_balance", true)
			for _, key := range []string{"timeout_iters", "batching_wait_iters"} {
				if n := r.Launch.number("attention_dp_config." + key); n != nil {
					add("attention_dp_"+key, *n)
				}
			}
		}
	}
	if len(options) > 0 {
		w.line("  %s: {%s}", section, strings.Join(options, ", "))
	}
}

// limits are max_num_seqs and max_num_batched_tokens under the names of the engine. For SGLang the latter is the
// largest batch of prompts.
func (r *Row) limits() (seqs, tokens *int) {
	seqs, tokens = r.MaxNumSeqs, r.MaxNumBatchedTokens
	switch {
	case r.Engine == trtllmEngine && tokens == nil:
		tokens = r.MaxNumTokens
	case r.Engine == "sglang" && tokens == nil && or(r.ChunkedPrefillSize, 0) > 0:
		tokens = given(max(*r.ChunkedPrefillSize, or(seqs, 0)))
	}
	if seqs != nil && tokens != nil && *tokens < *seqs {
		tokens = seqs
	}
	return seqs, tokens
}

func given(n int) *int { return &n }

func (w *writer) count(key string, n *int) {
	if n != nil {
		w.line("  %s: %d", key, *n)
	}
}

func (w *writer) toggle(key, value string) {
	switch value {
	case "on":
		w.line("  %s: true", key)
	case "off":
		w.line("  %s: false", key)
	}
}

// traffic writes the workload and the run's length.
func (w *writer) traffic() error {
	r := w.row
	if r.multiTurn() {
		w.offload()
		w.talksTraffic()
		return nil
	}
	w.line("workload:")
	if err := w.arrivals(); err != nil {
		return err
	}
	if err := w.lengths(); err != nil {
		return err
	}
	if n := or(r.SharedPrefixTokens, 0); n > 0 {
		w.c.apply("prompts")
		w.line("  prefix: {groups: %d, prompts_per_group: %d, shared_tokens: %d}", promptGroups, promptsInGroup, n)
	}
	sampling, ruled := r.sampling(&w.llm)
	if ruled {
		w.c.apply("sampling")
	}
	w.line("  sampling: %q", sampling)
	w.line("run:")
	w.line("  warmup: none")
	if r.Closed() {
		// Ten requests for each client are usual.
		w.line("  requests: %d", max(1, or(r.Requests, 10*or(r.Concurrency, 1))/w.c.ranks))
	}
	return nil
}

// arrivals writes one stage for each row.
func (w *writer) arrivals() error {
	r := w.row
	switch r.LoadMode {
	case "closed":
		if or(r.Concurrency, 0) < 1 {
			return fmt.Errorf("concurrency: a closed loop needs the number of clients (want 1 or more)")
		}
		users := max(1, (*r.Concurrency+w.c.ranks/2)/w.c.ranks) // of a rank
		if users*w.c.ranks != *r.Concurrency {
			w.c.note("%d clients on %d ranks are %d on each", *r.Concurrency, w.c.ranks, users)
		}
		w.line("  arrivals: {process: closed, users: %d}", users)
		return nil
	case "open", "trace":
	default:
		return fmt.Errorf("load_mode: %q is not known (want open, closed or trace)", yamldoc.Short(r.LoadMode))
	}
	if r.LoadMode == "trace" && r.RequestFile == "" {
		return fmt.Errorf("request_level_file: a trace needs the file of its requests")
	}
	process, err := r.process()
	if err != nil {
		return err
	}
	w.line("  arrivals:")
	for _, row := range w.c.Rows {
		if or(row.Rate, 0) <= 0 {
			return fmt.Errorf("rate_rps: an open loop needs the requests per second (want more than 0)")
		}
		seconds := or(row.DurationS, 0)
		if seconds == 0 && row.Requests == nil {
			return fmt.Errorf("duration_s and n_requests are both empty (want one of them)")
		}
		if seconds == 0 {
			seconds = math.Ceil(float64(*row.Requests) / *row.Rate)
		}
		w.line("  - {name: %q, process: %s, rate: %g, duration: %ss}", "stage "+row.Stage, process,
			*row.Rate/float64(w.c.ranks), strconv.FormatFloat(seconds, 'f', -1, 64))
	}
	return nil
}

// process is the law of arrivals.
func (r *Row) process() (string, error) {
	switch r.ArrivalProcess {
	case "", "poisson", "trace": // a trace is replayed
		return "poisson", nil
	case "constant":
		return "constant", nil
	}
	return "", fmt.Errorf("arrival_process: %q is not known (want poisson, constant or trace)",
		yamldoc.Short(r.ArrivalProcess))
}

var (
	uniformSpec = pattern.New(`uniform\s*\[\s*([0-9]+)\s*,\s*([0-9]+)\s*\]`)
	fixedSpec   = pattern.New(`^fixed ([0-9]+)`)
	promptSpec  = pattern.New(`^system ([0-9]+) \+ question ([0-9]+)`)
)

// lengths writes the laws of prompts and outputs. Where requests are recorded one by one, theirs count.
func (w *writer) lengths() error {
	if w.row.RequestFile != "" {
		return nil
	}
	input, err := w.length("input", w.row.InputSpec, w.row.InputMean)
	if err != nil {
		return err
	}
	nominal := w.row.OutputNominal
	for _, other := range []*float64{w.row.OutputMean, w.row.OutputMeanReported} {
		if nominal == nil {
			nominal = other
		}
	}
	output, err := w.length("output", w.row.OutputSpec, nominal)
	if err != nil {
		return err
	}
	w.line("  input: {%s}", input)
	w.line("  output: {%s}", output)
	return nil
}

// length reads a law from the words of a specification; without words that say it, all have the mean length.
func (w *writer) length(what, spec string, mean *float64) (string, error) {
	if m := uniformSpec.Get().FindStringSubmatch(spec); m != nil {
		return fmt.Sprintf("distribution: uniform, min: %s, max: %s", m[1], m[2]), nil
	}
	if m := fixedSpec.Get().FindStringSubmatch(spec); m != nil {
		return "distribution: fixed, value: " + m[1], nil
	}
	if m := promptSpec.Get().FindStringSubmatch(spec); m != nil {
		system, _ := strconv.ParseFloat(m[1], 64)
		question, _ := strconv.ParseFloat(m[2], 64)
		tokens := or(mean, retokenised*(system+question))
		w.c.apply("retokenised")
		return fmt.Sprintf("distribution: uniform, min: %.0f, max: %.0f", tokens*(1-retokenisedSpread),
			tokens*(1+retokenisedSpread)), nil
	}
	if mean == nil || *mean < 1 {
		return "", fmt.Errorf("%s_token_spec: %q does not say the lengths, and there is no mean (want "+
			"uniform[LOW,HIGH], fixed N, or the mean)",
			what, yamldoc.Short(spec))
	}
	w.c.note("%s lengths are all taken as the mean", what)
	return fmt.Sprintf("distribution: fixed, value: %.0f", *mean), nil
}
