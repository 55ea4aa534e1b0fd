package report

import "math"

// measures are the numbers of a run that a curve is told from: it needs those of all runs at once, and they are few enough to
// keep of many thousands. What is unknown is NaN, or 0 where that is a number of requests or tokens.
type measures struct {
	useful     float64 // output tokens per second within the objective or, without one, of requests that complete
	requestsS  float64 // requests per second
	inSystem   float64 // mean
	growth     float64 // requests per second
	hits       float64 // of the prefix cache, as a fraction
	failed     float64 // requests that end without completing, as a fraction
	busy       float64
	mfu, mbu   float64
	kvSD       float64
	kvMax      float64
	waits      [len(resources)]float64
	idle       float64 // beside waiting requests
	usdPerHour float64
	recomputed float64 // fraction of the computed tokens that had been computed before

	ttftP50, ttftP99, ttftP99Deviation float64
	queueP50, queueP99                 float64
	ttftN                              int64

	sent, left, rejectedBusy, attempts, retries, preemptions int64

	hasSLO, unsettled bool
}

// resources are what requests wait for, in the order of measures.waits.
var resources = [...]string{waitsKV: "kv", waitsSeats: "seats", waitsTokenBudget: "token_budget", waitsPolicy: "policy"}

const (
	waitsKV = iota
	waitsSeats
	waitsTokenBudget
	waitsPolicy
)

// measuresOf reads the numbers.
func measuresOf(s *Summary) measures {
	y, r, d, q, g := &s.System, &s.Requests, &s.Latency.TTFT, &s.Latency.Queue, &s.System.GapByCause
	m := measures{
		useful: orNaN(s.Throughput.SuccessfulOutputTokensPerS), requestsS: orNaN(s.Throughput.RequestsPerS),
		inSystem: orNaN(s.Concurrency.InSystem.Mean), growth: orNaN(s.Window.GrowthRequestsPerS),
		hits: orNaN(y.PrefixHitRate), failed: orNaN(y.ErrorRate), busy: orNaN(y.BusyFraction), mfu: orNaN(y.MFU), mbu: orNaN(y.MBU),
		kvSD: orNaN(y.KVUsage.SD), kvMax: orNaN(y.KVUsage.Max), idle: orNaN(g.Idle), usdPerHour: math.NaN(), recomputed: recomputedShare(s),
		waits:   [...]float64{waitsKV: orNaN(g.KV), waitsSeats: orNaN(g.Seats), waitsTokenBudget: orNaN(g.TokenBudget), waitsPolicy: orNaN(g.Policy)},
		ttftP50: orNaN(d.P50), ttftP99: orNaN(d.P99), queueP50: orNaN(q.P50), queueP99: orNaN(q.P99), ttftN: d.N,
		sent: r.Offered, left: r.TimedOut + r.Cancelled, rejectedBusy: r.RejectedBusy, attempts: r.Attempts, retries: r.Retries,
		preemptions: y.Preemptions, hasSLO: s.Goodput.SLO != nil, unsettled: s.Window.Unsettled(),
	}
	if m.hasSLO {
		m.useful = orNaN(s.Goodput.OutputTokensPerS)
	}
	if d.P99 != nil {
		m.ttftP99Deviation = d.p99Deviation()
	}
	if s.Cost != nil {
		m.usdPerHour = orNaN(s.Cost.USDPerHour)
	}
	return m
}

// unknown says that a number is not known.
func unknown(v float64) bool { return math.IsNaN(v) }

// recomputedShare is the fraction of computed tokens that had been computed before.
func recomputedShare(s *Summary) float64 {
	all := computedTokens(s)
	if all <= 0 {
		return 0
	}
	return float64(s.Tokens.Recomputed) / all
}
