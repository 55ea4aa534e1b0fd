package report

// Class has the measurements of the requests of one class, over the window of the whole run. Output tokens count when
// their request ends, because iterations do not record the class of their tokens. For the same reason there are no
// inter-token latencies.
type Class struct {
	Name       string     `json:"name"`
	Requests   Requests   `json:"requests"`
	Throughput Throughput `json:"throughput"`
	Latency    Latency    `json:"latency_ms"`
	// Goodput is by the class's own objective, or by that of the run.
	Goodput Goodput `json:"goodput"`
	// PrefixHitRate is the fraction of prompt tokens found in the cache.
	PrefixHitRate *float64 `json:"prefix_hit_rate"`
}

// Summary has the class's numbers in the places of those of a run.
func (k *Class) Summary() *Summary {
	return &Summary{Requests: k.Requests, Throughput: k.Throughput, Latency: k.Latency, Goodput: k.Goodput,
		System: System{PrefixHitRate: k.PrefixHitRate}}
}

// CSVRow has the columns to keep.
func (k *Class) CSVRow(keep []int) []string {
	all := k.Summary().CSVRow()
	var row []string
	for _, n := range keep {
		row = append(row, all[n])
	}
	return row
}
