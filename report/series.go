package report

// SeriesPoint is one time bucket of a run. Means are over the bucket's time; a nil pointer is a mean
// over no sample.
type SeriesPoint struct {
	StartS      float64 `json:"start_s"`
	EndS        float64 `json:"end_s"`
	Arrivals    int64   `json:"arrivals"`
	Completions int64   `json:"completions"`
	InputTokens int64   `json:"input_tokens"` // whole prompts, at their first token
	// OutputTokens are counted at the end of the iteration that produced them.
	OutputTokens int64    `json:"output_tokens"`
	Iterations   int64    `json:"iterations"` // that ended in the bucket
	Preemptions  int64    `json:"preemptions"`
	BusyFraction float64  `json:"busy_fraction"`
	KVUsageMean  *float64 `json:"kv_usage_mean"` // nil for an unlimited pool
	InSystemMean float64  `json:"in_system_mean"`
	RunningMean  float64  `json:"running_mean"`
	DecodingMean float64  `json:"decoding_mean"`
	QueueMean    float64  `json:"queue_depth_mean"`
	// PrefillTokens were computed for prompts, also again after preemptions, ComputedTokens in all.
	PrefillTokens  int64    `json:"prefill_tokens"`
	ComputedTokens int64    `json:"computed_tokens"`
	TTFTMeanMs     *float64 `json:"ttft_mean_ms"` // of the completed requests that arrived in the bucket
	InWindow       bool     `json:"in_window"`
	// ReplicasReady take requests, ReplicasPaid are paid for, and HeldMean requests wait for one: where replicas come
	// and go.
	ReplicasReady *float64 `json:"replicas_ready,omitempty"`
	ReplicasPaid  *float64 `json:"replicas_paid,omitempty"`
	HeldMean      *float64 `json:"held_mean,omitempty"`
}
