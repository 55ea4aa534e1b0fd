package report

// Stage is what was measured of a part of the run with traffic of its own: what the system did between its
// ends, and the latencies of the completed requests that arrived between them; ITL is over the gaps that
// ended there. No warm-up is cut from it. A stage that outlasts the run ends with it.
type Stage struct {
	Name       string     `json:"name"`
	StartS     float64    `json:"start_s"`
	EndS       float64    `json:"end_s"`
	Throughput Throughput `json:"throughput"`
	Latency    Latency    `json:"latency_ms"`
}
