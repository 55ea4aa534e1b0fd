package report

// ReplicaCounts has the numbers of replicas in the window, as averages unless said otherwise, and their cost.
type ReplicaCounts struct {
	Mean     *float64 `json:"mean"` // paid for: all that follow
	Max      int      `json:"max"`  // the most at a time
	Ready    *float64 `json:"ready"`
	Starting *float64 `json:"starting"`
	Draining *float64 `json:"draining"`
	Down     *float64 `json:"down"`
	// GPUHours were paid for, and in IdleGPUHours nothing ran.
	GPUHours     *float64 `json:"gpu_hours"`
	IdleGPUHours *float64 `json:"idle_gpu_hours"`
	// RequestsPerGPUHour and OutputTokensPerGPUHour are throughput per paid GPU hour.
	RequestsPerGPUHour     *float64 `json:"requests_per_gpu_hour"`
	OutputTokensPerGPUHour *float64 `json:"output_tokens_per_gpu_hour"`
	// Held is the number of requests at the router, as long as no replica takes them.
	Held *float64 `json:"held"`
}

// Replica has the results of one replica of a fleet, over the window of the whole run. Its levels have mean and
// maximum, its inter-token gaps number and mean.
type Replica struct {
	Pool        string          `json:"pool,omitempty"`
	Index       int             `json:"index"`
	GPUs        int             `json:"gpus"`
	Requests    ReplicaRequests `json:"requests"`
	Tokens      ReplicaTokens   `json:"tokens"`
	Throughput  Throughput      `json:"throughput"`
	Latency     ReplicaLatency  `json:"latency_ms"`
	Concurrency Concurrency     `json:"concurrency"`
	System      System          `json:"system"`
	Energy      *Energy         `json:"energy,omitempty"`
}

// ReplicaRequests counts the attempts of the whole run that were sent to a replica. A request that is tried again may
// go to another replica.
type ReplicaRequests struct {
	Sent          int64 `json:"sent"`
	Completed     int64 `json:"completed"`
	Rejected      int64 `json:"rejected"`
	TimedOut      int64 `json:"timed_out"`
	Cancelled     int64 `json:"cancelled"`
	Failed        int64 `json:"failed"`
	HandedOn      int64 `json:"handed_on,omitempty"` // to a decode replica, with disaggregated prefill
	InSystemAtEnd int64 `json:"in_system_at_end"`
}

// ReplicaTokens counts the tokens of the whole run at a replica, as [Tokens] does.
type ReplicaTokens struct {
	Input       int64 `json:"input"`
	CachedInput int64 `json:"cached_input"`
	Output      int64 `json:"output"`
	Recomputed  int64 `json:"recomputed"`
}

// ReplicaLatency holds the latencies in milliseconds of the completed requests that a replica served and that arrived
// in the window. Beyond [collect.ExactSamples] requests of the fleet they cover the whole run.
type ReplicaLatency struct {
	TTFT  Distribution `json:"ttft"`
	TPOT  Distribution `json:"tpot"`
	ITL   Distribution `json:"itl"`
	E2E   Distribution `json:"e2e"`
	Queue Distribution `json:"queue"`
}

// Imbalance is the use of the most used replica of a fleet divided by the mean over all replicas. 1 is even. A value is
// nil if the mean is 0.
type Imbalance struct {
	Busy     *float64 `json:"busy_max_over_mean"`
	Requests *float64 `json:"requests_max_over_mean"` // sent, in the whole run
}
