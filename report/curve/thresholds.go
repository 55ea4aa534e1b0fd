package curve

// Thresholds decide what a sweep is said to show. They are data: a [Curve] carries those that it was judged by, and
// newWith takes others. Fractions are of 1. Where no source is named they are judgement, chosen so that sweeps
// with a known mechanism show its sign and the same sweeps without it do not.
type Thresholds struct {
	// KneeGain is the gain of throughput per unit of load, as a fraction of that at the lowest load, below which more
	// load brings little.
	KneeGain float64 `json:"knee_gain"`
	// Stride is the smallest factor between two loads whose gain is used: the smaller the step, the larger the error of
	// the gain.
	Stride float64 `json:"stride"`
	// Plateau is the fraction of the highest throughput within which another one counts as equal, if there are no
	// confidence intervals: replications of closed loops with 10,000 requests differ by about 1 %.
	Plateau float64 `json:"plateau"`

	// RateOff is how far a rate may lie from the one asked for, as a fraction of that, before it is warned of.
	RateOff float64 `json:"rate_off"`

	// PlainFall is the fall below the peak's throughput, as a fraction of it, that is a collapse without a cause in
	// sight, if it is UnlikelyDeviations standard deviations or more; ExplainedFall is enough where wasted work has
	// grown. Recomputation costs 6 to 40 % past the knee, lost prefixes up to all that the cache gave.
	PlainFall          float64 `json:"plain_fall"`
	ExplainedFall      float64 `json:"explained_fall"`
	UnlikelyDeviations float64 `json:"unlikely_deviations"`
	// WastedWork is the part of computed tokens that are computed again, HitLoss the fall of the prefix hit rate and
	// GivenUp the growth of the part of requests without an answer that count as wasted work.
	WastedWork float64 `json:"wasted_work"`
	HitLoss    float64 `json:"hit_loss"`
	GivenUp    float64 `json:"given_up"`

	// NearTop is the part of the highest throughput above which the first limit is searched. Binding is the part of the
	// time for which requests wait for a resource, or the part of the requests whose clients leave, above which it
	// binds.
	NearTop float64 `json:"near_top"`
	Binding float64 `json:"binding"`
	// Saturated is the busy fraction of a GPU that has no time left, and NearlyFull the usage of a full KV pool.
	Saturated  float64 `json:"saturated"`
	NearlyFull float64 `json:"nearly_full"`
	// HighMBU and HighMFU are the uses of bandwidth and of arithmetic that leave little more to have: kernels reach
	// seldom more than four fifths of the one and two thirds of the other.
	HighMBU float64 `json:"high_mbu"`
	HighMFU float64 `json:"high_mfu"`

	// Slowing is the gain, as for KneeGain, below which throughput no longer grows with load, by LikelyDeviations
	// standard deviations or more.
	Slowing          float64 `json:"slowing"`
	LikelyDeviations float64 `json:"likely_deviations"`
	// Spike is the factor by which p99 grows from a load at most Neighbour times smaller, while p50 grows by Calm at
	// most or by the root of the other's factor. FineWait is the part of p50 that may be waiting then, and
	// SureDeviations how many standard deviations the step takes.
	Spike          float64 `json:"spike"`
	Calm           float64 `json:"calm"`
	Neighbour      float64 `json:"neighbour"`
	FineWait       float64 `json:"fine_wait"`
	SureDeviations float64 `json:"sure_deviations"`
	// TailLevel is the factor between p99 and the least p99 of lower loads that is a tail, whatever p50 does. The ratio
	// of p99 to p50 alone would not do: deep in overload it falls again, because p50 has caught up.
	TailLevel float64 `json:"tail_level"`
	// KVSwing is the standard deviation of KV usage over time, in a pool that is nearly full at times.
	KVSwing float64 `json:"kv_swing"`
	// TurnedAway is the part of the requests that limits of the queue refuse, and Leaving that whose clients leave or
	// that are sent again.
	TurnedAway float64 `json:"turned_away"`
	Leaving    float64 `json:"leaving"`

	// USLGood is the error above which a fit of the USL is poor. USLBetter is the part of its error that a fit with a
	// contention below 0 must take away for the law to be inappropriate.
	USLGood   float64 `json:"usl_good"`
	USLBetter float64 `json:"usl_better"`
}

// defaultThresholds returns the thresholds that [New] uses.
func defaultThresholds() Thresholds {
	return Thresholds{
		KneeGain: .25, Stride: 1.15, Plateau: .03, RateOff: .10,
		PlainFall: .05, ExplainedFall: .02, UnlikelyDeviations: 3, WastedWork: .01, HitLoss: .10, GivenUp: .10,
		NearTop: .95, Binding: .10, Saturated: .99, NearlyFull: .90, HighMBU: .60, HighMFU: .50,
		Slowing: .75, LikelyDeviations: .5,
		Spike: 2, Calm: 1.5, Neighbour: 2, FineWait: .50, SureDeviations: 2, TailLevel: 4,
		KVSwing: .10, TurnedAway: .01, Leaving: .01,
		USLGood: .10, USLBetter: .05,
	}
}
