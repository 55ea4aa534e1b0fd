package validation

// Row is one measured run, or one stage of a run. The tags are the columns of the CSV file; "want"
// marks those that must be there. An empty cell is nil or "", and means unknown.
type Row struct {
	// Line is where the row begins in its file.
	Line int `csv:"-"`
	// Faults say what is wrong with the row's cells; a row with faults is not simulated.
	Faults []string `csv:"-"`

	ID            string `csv:"run_id,want"`
	Source        string `csv:"source"`      // where the measurement was published
	Experiment    string `csv:"experiment"`  // rows of one experiment with a stage each are one run
	Stage         string `csv:"stage"`       // "all", or 0, 1 …
	Engine        string `csv:"engine,want"` // vllm, sglang …
	EngineVersion string `csv:"engine_version"`

	Model       string `csv:"model,want"`
	MoE         string `csv:"moe"` // 0 or 1
	GPU         string `csv:"gpu,want"`
	GPUs        *int   `csv:"n_gpus"`
	TP          *int   `csv:"tp"`
	PP          *int   `csv:"pp"`
	DP          *int   `csv:"dp"` // attention data parallelism inside one engine
	EP          *int   `csv:"ep"`
	WeightDtype string `csv:"weight_dtype"`
	KVDtype     string `csv:"kv_dtype"`

	GPUMemUtil          *float64 `csv:"gpu_mem_util"`
	MaxModelLen         *int     `csv:"max_model_len"`
	MaxNumBatchedTokens *int     `csv:"max_num_batched_tokens"`
	MaxNumSeqs          *int     `csv:"max_num_seqs"`
	BlockSize           *int     `csv:"block_size"`
	RecvInterval        *int     `csv:"recv_interval"` // SGLang's scheduler_recv_interval
	StreamInterval      *int     `csv:"stream_interval"`
	KVBlocks            *int     `csv:"kv_blocks"`     // as the engine logged it
	CPUKVBlocks         *int     `csv:"cpu_kv_blocks"` // offloading to host memory
	SpecMethod          string   `csv:"spec_method"`   // none or mtp
	EngineFlags         string   `csv:"engine_flags"`
	PrefixCaching       string   `csv:"prefix_caching"`
	ChunkedPrefill      string   `csv:"chunked_prefill"`

	Workload           string   `csv:"workload"`
	LoadMode           string   `csv:"load_mode,want"` // open, closed or trace
	ArrivalProcess     string   `csv:"arrival_process"`
	Rate               *float64 `csv:"rate_rps"`
	Concurrency        *int     `csv:"concurrency"`
	DurationS          *float64 `csv:"duration_s"`
	Requests           *int     `csv:"n_requests"`
	Failed             *int     `csv:"n_failed"`
	InputMean          *float64 `csv:"input_tokens_mean"`
	InputSpec          string   `csv:"input_token_spec"`
	OutputMeanReported *float64 `csv:"output_tokens_mean_reported"` // may be counted again by the client, from text
	OutputNominal      *float64 `csv:"output_tokens_nominal"`       // what the engine produced
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

	RequestFile string `csv:"request_level_file"` // relative to the CSV file's folder
	Quality     string `csv:"quality"`            // ok or overload
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

// or is what p points to, or v.
func or[T any](p *T, v T) T {
	if p == nil {
		return v
	}
	return *p
}
