package curve

import (
	"math"

	"clifftop/report"
	"clifftop/report/stats"
)

// measures are the numbers of a run that a curve is told from: it needs those of all runs at once, and they are few
// enough to keep of many thousands. What is unknown is NaN, or 0 where that is a number of requests or tokens.
type measures struct {
	useful     float64 // output tokens per second within the objective or, without one, of requests that complete
	requestsS  float64 // requests per second
	inSystem   float64 // Mean
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
func measuresOf(s *report.Summary) measures {
	y, r, d, q, g := &s.System, &s.Requests, &s.Latency.TTFT, &s.Latency.Queue, &s.System.GapByCause
	m := measures{
		useful: stats.OrNaN(s.Throughput.SuccessfulOutputTokensPerS), requestsS: stats.OrNaN(s.Throughput.RequestsPerS),
		inSystem: stats.OrNaN(s.Concurrency.InSystem.Mean), growth: stats.OrNaN(s.Window.GrowthRequestsPerS),
		hits: stats.OrNaN(y.PrefixHitRate), failed: stats.OrNaN(y.ErrorRate), busy: stats.OrNaN(y.BusyFraction),
		mfu: stats.OrNaN(y.MFU), mbu: stats.OrNaN(y.MBU),
		kvSD: stats.OrNaN(y.KVUsage.SD), kvMax: stats.OrNaN(y.KVUsage.Max), idle: stats.OrNaN(g.Idle),
		usdPerHour: math.NaN(), recomputed: recomputedShare(s),
		waits: [...]float64{waitsKV: stats.OrNaN(g.KV), waitsSeats: stats.OrNaN(g.Seats),
			waitsTokenBudget: stats.OrNaN(g.TokenBudget), waitsPolicy: stats.OrNaN(g.Policy)},
		ttftP50: stats.OrNaN(d.P50), ttftP99: stats.OrNaN(d.P99), queueP50: stats.OrNaN(q.P50),
		queueP99: stats.OrNaN(q.P99), ttftN: d.N,
		sent: r.Offered, left: r.TimedOut + r.Cancelled, rejectedBusy: r.RejectedBusy, attempts: r.Attempts,
		retries:     r.Retries,
		preemptions: y.Preemptions, hasSLO: s.Goodput.SLO != nil, unsettled: s.Window.Unsettled(),
	}
	if m.hasSLO {
		m.useful = stats.OrNaN(s.Goodput.OutputTokensPerS)
	}
	if d.P99 != nil {
		m.ttftP99Deviation = p99Deviation(d)
	}
	if s.Cost != nil {
		m.usdPerHour = stats.OrNaN(s.Cost.USDPerHour)
	}
	return m
}

// unknown says that a number is not known.
func unknown(v float64) bool { return math.IsNaN(v) }

// recomputedShare is the fraction of computed tokens that had been computed before.
func recomputedShare(s *report.Summary) float64 {
	all := report.ComputedTokens(s)
	if all <= 0 {
		return 0
	}
	return float64(s.Tokens.Recomputed) / all
}
