package validation

// Row is one measured run, or one stage of a run. The tags are the columns of the CSV file; "want"
// marks those that must be there. An empty cell is nil or "", and means unknown.
type Row struct {
	// Line is where the row begins in its file.
	Line int `csv:"-"`
	// Faults say what is wrong with the row's cells; a row with faults is not simulated.
	Faults []string `csv:"-"`
	// Stack is the software that runs the engine's workers, such as dynamo; empty for none.
	Stack string `csv:"-"`

	// Repairs are the codes of rules that overrode cells which contradict published launch recipes.
	Repairs []string `csv:"-"`

	// Launch are the options in EngineFlags.
	Launch flags `csv:"-"`

	ID            string `csv:"run_id"`
	Source        string `csv:"source"`        // where the measurement was published
	Experiment    string `csv:"experiment"`    // rows of one experiment with a stage each are one run
	Stage         string `csv:"stage"`         // "all", or 0, 1 …
	Configuration string `csv:"configuration"` // a name of the set-up, which may name the engine
	Date          string `csv:"date"`          // of the run: 2026-04-28
	Engine        string `csv:"engine"`        // vllm, sglang …
	EngineVersion string `csv:"engine_version"`
	Image         string `csv:"image"`        // of the container; its tag may name the release
	EngineFlags   string `csv:"engine_flags"` // options of the launch script, and of its file after |
	FlagsFrom     string `csv:"flags_from"`   // where they were read

	Model       string `csv:"model,want"`
	MoE         string `csv:"moe"` // 0 or 1
	GPU         string `csv:"gpu,want"`
	GPUs        *int   `csv:"n_gpus"`
	TP          *int   `csv:"tp"`
	PP          *int   `csv:"pp"`
	DP          *int   `csv:"dp"` // attention data parallelism inside one engine
	EP          *int   `csv:"ep"`
	DPAttention string `csv:"dp_attention"` // on or off
	Replicas    *int   `csv:"replicas"`     // independent engines; the row has the load of one
	WeightDtype string `csv:"weight_dtype"`
	KVDtype     string `csv:"kv_dtype"`

	GPUMemUtil          *float64 `csv:"gpu_mem_util"`
	MaxModelLen         *int     `csv:"max_model_len"`
	MaxNumBatchedTokens *int     `csv:"max_num_batched_tokens"`
	MaxNumSeqs          *int     `csv:"max_num_seqs"`
	MaxNumTokens        *int     `csv:"max_num_tokens"`       // TensorRT-LLM: of an iteration, not of a sequence
	ChunkedPrefillSize  *int     `csv:"chunked_prefill_size"` // SGLang
	MaxPrefillTokens    *int     `csv:"max_prefill_tokens"`   // SGLang
	ContinuousDecodes   *int     `csv:"num_continuous_decode_steps"`
	AsyncScheduling     string   `csv:"async_scheduling"` // on or off
	BlockSize           *int     `csv:"block_size"`
	RecvInterval        *int     `csv:"recv_interval"` // SGLang's scheduler_recv_interval
	StreamInterval      *int     `csv:"stream_interval"`
	KVBlocks            *int     `csv:"kv_blocks"`     // as the engine logged it
	CPUKVBlocks         *int     `csv:"cpu_kv_blocks"` // offloading to host memory
	PrefixCaching       string   `csv:"prefix_caching"`
	ChunkedPrefill      string   `csv:"chunked_prefill"`
	SpecMethod          string   `csv:"spec_method"` // of speculative decoding: none, mtp …
	DraftTokens         *int     `csv:"num_speculative_tokens"`
	// AcceptRate is the share of draft tokens that were accepted, where it was logged.
	AcceptRate *float64 `csv:"spec_accept_rate"`

	Prefill Pool `csv:"prefill_"` // with disaggregated prefill/decode
	Decode  Pool `csv:"decode_"`

	Workload           string   `csv:"workload"`
	LoadMode           string   `csv:"load_mode"` // open, closed or trace
	ArrivalProcess     string   `csv:"arrival_process"`
	Rate               *float64 `csv:"rate_rps"`
	Concurrency        *int     `csv:"concurrency"`
	DurationS          *float64 `csv:"duration_s"`
	Requests           *int     `csv:"n_requests"`
	Failed             *int     `csv:"n_failed"`
	Users              *int     `csv:"users"` // with sessions of several turns
	InputMean          *float64 `csv:"input_tokens_mean"`
	InputP50           *float64 `csv:"input_tokens_p50"`
	InputP90           *float64 `csv:"input_tokens_p90"`
	InputSpec          string   `csv:"input_token_spec"`
	OutputMeanReported *float64 `csv:"output_tokens_mean_reported"` // may be counted again by the client, from text
	OutputNominal      *float64 `csv:"output_tokens_nominal"`       // what the engine produced
	OutputMean         *float64 `csv:"output_tokens_mean"`          // where only this is known
	OutputP50          *float64 `csv:"output_tokens_p50"`
	OutputP90          *float64 `csv:"output_tokens_p90"`
	OutputRecorded     *float64 `csv:"output_tokens_recorded_mean"` // part of the next turn's prompt
	OutputSpec         string   `csv:"output_token_spec"`
	SharedPrefixTokens *int     `csv:"shared_prefix_tokens"`
	UniquePrompts      *int     `csv:"unique_prompts"`
	Sampling           string   `csv:"sampling"` // greedy or top_p

	TTFT            Latency  `csv:"ttft_"`
	TPOT            Latency  `csv:"tpot_"`
	TPOTDefinition  string   `csv:"tpot_definition"`
	TPOTMeanNominal *float64 `csv:"tpot_mean_nominal_ms"` // by the count that the engine produced
	ITL             Latency  `csv:"itl_"`
	StreamGap       Latency  `csv:"stream_gap_"` // between chunks, where itl_ is not given
	E2E             Latency  `csv:"e2e_"`

	OutputTokensPerS       *float64 `csv:"output_tok_per_s"`
	InputTokensPerS        *float64 `csv:"input_tok_per_s"`
	RequestsPerS           *float64 `csv:"req_per_s"`
	OutputTokensPerSPerGPU *float64 `csv:"output_tok_per_s_per_gpu"`

	// State has the values of logs and metrics of the engine.
	State State `csv:"-"`

	Offload Offload `csv:""`
	Power   Power   `csv:""`

	RequestFile string `csv:"request_level_file"` // relative to the CSV file's folder, or the folder above it
	Quality     string `csv:"quality"`            // ok, overload or suspect
	Flags       string `csv:"flags"`
	// A replayed request by request, B documented, C partly inferred, D settings found in scripts
	Tier string `csv:"tier"`
}

// Latency is a measured distribution in milliseconds.
type Latency struct {
	Mean *float64 `csv:"mean_ms"`
	P50  *float64 `csv:"p50_ms"`
	P90  *float64 `csv:"p90_ms"`
	P95  *float64 `csv:"p95_ms"`
	P99  *float64 `csv:"p99_ms"`
}

// State is the state of an engine on the average of a run; nil where it was not recorded.
type State struct {
	Running, Waiting *float64 // requests
	KVUsage          *float64 // part of the KV pool
}

// Pool is one of the two pools of disaggregated prefill/decode.
type Pool struct {
	Workers     *int     `csv:"workers"` // engines
	TP          *int     `csv:"tp"`
	EP          *int     `csv:"ep"`
	DP          *int     `csv:"dp"`
	DPAttention string   `csv:"dp_attention"`
	GPUs        *int     `csv:"gpus"` // of all its engines
	AvgPower    *float64 `csv:"avg_power_w"`
}

// Offload has the reported numbers of runs with sessions of several turns and KV outside the GPU.
type Offload struct {
	On          string   `csv:"kv_offload"` // on or off
	HostGB      *float64 `csv:"host_kv_gb"` // memory for KV on the host
	Machine     string   `csv:"machine"`    // which cluster
	Completed   *int     `csv:"n_ok"`       // requests that ended well
	BestHitRate *float64 `csv:"best_hit_rate_unlimited_cache"`
	GPUHitRate  *float64 `csv:"gpu_hit_rate"`  // part of the prompt tokens found on the GPU
	HostHitRate *float64 `csv:"host_hit_rate"` // part found in host memory
	Prompted    *float64 `csv:"prompt_tokens"`
	Generated   *float64 `csv:"generated_tokens"`
	Finished    *int     `csv:"finished"`
	Preemptions *int     `csv:"preemptions"`
	RunningMean *float64 `csv:"running_mean"`
	WaitingMean *float64 `csv:"waiting_mean"`
	KVUsedPct   *float64 `csv:"kv_used_pct_mean"`
}

// Power is measured power in watts and energy in joules. Power is the mean of the run.
type Power struct {
	Task                 string   `csv:"task"`
	BatchMean            *float64 `csv:"batch_mean"`  // sequences that run at the same time
	Avg                  *float64 `csv:"avg_power_w"` // of a GPU
	PerGPU               *float64 `csv:"power_per_gpu_w"`
	AllGPUs              *float64 `csv:"power_all_gpus_w"`
	JoulesPerOutputToken *float64 `csv:"joules_per_output_token"` // over all GPUs
	JoulesPerInputToken  *float64 `csv:"joules_per_input_token"`
	JoulesPerTotalToken  *float64 `csv:"joules_per_total_token"`
	EnergyPerRequest     *float64 `csv:"energy_per_request_j"`
	EnergyPerOutputToken *float64 `csv:"energy_per_output_token_j"`
	UtilisationPct       *float64 `csv:"avg_util_pct"`
	GPUUtilisationPct    *float64 `csv:"gpu_util_pct"`
	ClockMHz             *float64 `csv:"sm_clock_mhz"`
	Samples              *int     `csv:"power_samples"`
}

// PerGPUWatts is the mean power of a GPU; nil where it was not measured.
func (p *Power) PerGPUWatts() *float64 {
	if p.Avg != nil {
		return p.Avg
	}
	return p.PerGPU
}

// PerOutputToken is the energy of all GPUs for each output token, in joules; nil where it was not measured.
func (p *Power) PerOutputToken() *float64 {
	if p.JoulesPerOutputToken != nil {
		return p.JoulesPerOutputToken
	}
	return p.EnergyPerOutputToken
}

// Pools reports whether prefill and decode run in pools of their own.
func (r *Row) Pools() bool { return r.Prefill != Pool{} || r.Decode != Pool{} }

// Closed reports whether a fixed number of clients wait for their outputs.
func (r *Row) Closed() bool { return r.LoadMode == "closed" }

// servedPart is the part of the rate that an open loop must have been served at not to count as overloaded.
const servedPart = 0.8

// Overloaded reports whether more was asked for than the system gave: the file says so, or an open loop was served
// at much less than its rate.
func (r *Row) Overloaded() bool {
	behind := !r.Closed() && r.Rate != nil && r.RequestsPerS != nil && *r.RequestsPerS < servedPart**r.Rate
	return r.Quality == "overload" || behind
}

// tp is the tensor-parallel size.
func (r *Row) tp() int { return or(r.TP, 1) }

// or returns *p, or v if p is nil.
func or[T any](p *T, v T) T {
	if p == nil {
		return v
	}
	return *p
}
