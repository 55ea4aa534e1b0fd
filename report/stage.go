package report

// Stage has the results of a traffic phase: the work of the system from its start to its end, and the latencies of the
// completed requests that arrived in it; ITL counts the gaps that ended in it. No warm-up is removed. A phase that is
// longer than the run ends with it.
type Stage struct {
	Name       string     `json:"name"`
	StartS     float64    `json:"start_s"`
	EndS       float64    `json:"end_s"`
	Throughput Throughput `json:"throughput"`
	Latency    Latency    `json:"latency_ms"`
}
