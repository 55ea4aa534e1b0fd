package scenario

import (
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim/clock"
)

// Disaggregation says how KV is sent from pools with the role prefill to pools with the role decode, and for which
// requests. The router of the deployment chooses the replica for the prompt.
type Disaggregation struct {
	// Mode is when KV is sent: with pull the decode replica requests all of it once it has room; with push each
	// layer is sent while the next one is computed.
	Mode string `json:"mode" one:"pull push"`
	// LinkGBPerS is the bandwidth of the link of each replica, in GB/s; null is 25 for each of its GPUs.
	LinkGBPerS *float64 `json:"link_gb_per_s" range:"[0.001,1000000]"`
	// Latency is added to each transfer.
	Latency yamldoc.Duration `json:"latency" range:"[0,60]"`
	// Hop is the delay of a request from the prefill replica through the router to the decode replica.
	Hop yamldoc.Duration `json:"hop" range:"[0,60]"`
	// Lease is how long the KV of a prompt is kept for a decode replica that has not read it; null is until the
	// request ends.
	Lease *yamldoc.Duration `json:"lease" range:"(0,)"`
	// KVLoadFailurePolicy is the treatment of a request whose KV is lost before the transfer: its prompt is
	// recomputed on the decode replica, or the request fails and its client may retry. vLLM's default is fail.
	KVLoadFailurePolicy string `json:"kv_load_failure_policy" one:"recompute fail"`
	// MinTokens is the prompt length below which prompts are computed on the decode replica.
	MinTokens int `json:"min_tokens" range:"[0,1000000000]"`
	// MaxBacklogTokens is the number of queued prompt tokens on every prefill replica at which a prompt is computed
	// on the decode replica; null is no limit.
	MaxBacklogTokens *int `json:"max_backlog_tokens" range:"[1,1000000000000]"`
	// PullPercent delays transfers while requests that do not run yet hold this percentage of the KV cache of the
	// decode replica; 0 is no limit.
	PullPercent int `json:"pull_percent" range:"[0,100]"`
	// Outages are outages of the links that carry KV.
	Outages []Outage `json:"outages,omitempty"`
	// Router chooses the decode replica after the prompt has been computed.
	Router Router `json:"router"`
}

// Outage is a time for which nothing goes over the links of a pool, or over one of them: transfers stand still, and
// leases go on.
type Outage struct {
	// At is when it begins.
	At yamldoc.Duration `json:"at" range:"[0,)"`
	// For is how long it lasts.
	For yamldoc.Duration `json:"for" range:"(0,)"`
	// Pool is the name of the pool.
	Pool string `json:"pool"`
	// Replica is the number of its member, from 0 on; null is all of them.
	Replica *int `json:"replica,omitempty" range:"[0,4095]"`
}

func (o *Outage) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "want {at: 60s, for: 5s, pool: NAME}", "at", "for", "pool")
}

func (d *Disaggregation) SetDefaults() {
	*d = Disaggregation{Mode: "pull", KVLoadFailurePolicy: "recompute", Hop: yamldoc.Duration(clock.Millisecond),
		Router: defaultRouter()}
}

// losesKV reports whether KV may have gone when a replica that computes outputs asks for it.
func (d *Disaggregation) losesKV(served bool, l *Lifecycle) bool {
	return d != nil && (served || d.Lease != nil || l != nil)
}
