package autoscale

// Metric is what a fleet scales by. It is of one replica; the fleet adds up the replicas.
type Metric uint8

// The metrics.
const (
	Waiting     Metric = iota // requests in the queue (vllm:num_requests_waiting)
	Running                   // requests in the batch (vllm:num_requests_running)
	Concurrency               // requests in the queue and in the batch
	KVUsage                   // the part of the KV pool in use (vllm:kv_cache_usage_perc)
)

// Gauges are what a scrape reads of a replica.
type Gauges struct {
	Waiting, Running int
	KVUsage          float64 // 0 if the pool is unlimited
}

// metrics says of each metric how scenarios name it, how it follows from the gauges, whether requests that wait at the
// router count too, and whether it needs a KV pool of limited size.
var metrics = [...]struct {
	name    string
	of      func(g *Gauges) float64
	held    bool
	limited bool
}{
	Waiting: {name: "waiting", of: func(g *Gauges) float64 { return float64(g.Waiting) }, held: true},
	Running: {name: "running", of: func(g *Gauges) float64 { return float64(g.Running) }},
	Concurrency: {name: "concurrency", of: func(g *Gauges) float64 { return float64(g.Waiting + g.Running) },
		held: true},
	KVUsage: {name: "kv-usage", of: func(g *Gauges) float64 { return g.KVUsage }, limited: true},
}

// Metrics lists the metrics.
func Metrics() []Metric {
	all := make([]Metric, len(metrics))
	for i := range all {
		all[i] = Metric(i)
	}
	return all
}

// Names returns the names of the metrics.
func (Metric) Names() (names []string) {
	for i := range metrics {
		names = append(names, metrics[i].name)
	}
	return names
}

func (m Metric) String() string { return metrics[m].name }

// MarshalText implements [encoding.TextMarshaler].
func (m Metric) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// Of is the value for a replica with such gauges.
func (m Metric) Of(g Gauges) float64 { return metrics[m].of(&g) }

// CountsHeld reports whether requests that wait at the router count too.
func (m Metric) CountsHeld() bool { return metrics[m].held }

// NeedsLimitedKV reports whether the metric is defined only for a KV pool of limited size.
func (m Metric) NeedsLimitedKV() bool { return metrics[m].limited }
