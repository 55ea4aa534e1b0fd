package curve

import (
	"fmt"
	"math"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// measures are the numbers of a run that the analysis of a curve uses. They are small, so that thousands of runs fit in
// memory. An unknown value is NaN, or 0 if it is a number of requests or tokens.
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

	ttft, queue tail
	requestCounts
	preemptions int64

	hasSLO, unsettled, overloaded bool
}

// tail is the median of a latency and its 99th percentile with the standard deviation, in milliseconds.
type tail struct {
	p50, p99, deviation float64
	samples             int64
}

func tailOf(d *report.Distribution) tail {
	t := tail{p50: stats.OrNaN(d.P50), p99: stats.OrNaN(d.P99), samples: d.N}
	if d.P99 != nil {
		t.deviation = p99Deviation(d)
	}
	return t
}

// known reports whether there are enough samples for the 99th percentile.
func (t *tail) known() bool {
	return !unknown(t.p50) && !unknown(t.p99) && t.samples >= report.MinSamplesP99
}

// requestCounts count requests and attempts. left are those whose client went away: timed out or cancelled.
type requestCounts struct{ sent, left, rejectedBusy, attempts, retries int64 }

// leftFraction is the fraction of requests whose client left before the end of the output.
func (r *requestCounts) leftFraction() float64 { return float64(r.left) / float64(max(r.sent, 1)) }

// retryFraction is the fraction of attempts that repeat an earlier one.
func (r *requestCounts) retryFraction() float64 {
	return float64(r.retries) / float64(max(r.attempts, 1))
}

// leaving is the larger of the two fractions.
func (r *requestCounts) leaving() float64 { return max(r.leftFraction(), r.retryFraction()) }

// leavingText describes both.
func (r *requestCounts) leavingText() string {
	text := fmt.Sprintf("clients leave before the end of %s of the requests (%d of %d)",
		layout.Percent(r.leftFraction()), r.left, r.sent)
	if r.retries > 0 {
		text += fmt.Sprintf("; %s of the attempts are repetitions", layout.Percent(r.retryFraction()))
	}
	return text
}

// resources are the names of the resources in measures.waits.
var resources = [...]string{waitsKV: "kv", waitsSeats: "seats", waitsTokenBudget: "token_budget", waitsPolicy: "policy"}

const (
	waitsKV = iota
	waitsSeats
	waitsTokenBudget
	waitsPolicy
)

func measuresOf(s *report.Summary) measures {
	y, r, g := &s.System, &s.Requests, &s.System.GapByCause
	m := measures{
		useful: stats.OrNaN(s.Throughput.SuccessfulOutputTokensPerS), requestsS: stats.OrNaN(s.Throughput.RequestsPerS),
		inSystem: stats.OrNaN(s.Concurrency.InSystem.Mean), growth: stats.OrNaN(s.Window.GrowthRequestsPerS),
		hits: stats.OrNaN(y.PrefixHitRate), failed: stats.OrNaN(y.ErrorRate), busy: stats.OrNaN(y.BusyFraction),
		mfu: stats.OrNaN(y.MFU), mbu: stats.OrNaN(y.MBU),
		kvSD: stats.OrNaN(y.KVUsage.SD), kvMax: stats.OrNaN(y.KVUsage.Max), idle: stats.OrNaN(g.Idle),
		usdPerHour: math.NaN(), recomputed: recomputedShare(s),
		waits: [...]float64{waitsKV: stats.OrNaN(g.KV), waitsSeats: stats.OrNaN(g.Seats),
			waitsTokenBudget: stats.OrNaN(g.TokenBudget), waitsPolicy: stats.OrNaN(g.Policy)},
		ttft: tailOf(&s.Latency.TTFT), queue: tailOf(&s.Latency.Queue),
		requestCounts: requestCounts{r.Offered, r.TimedOut + r.Cancelled, r.RejectedBusy, r.Attempts, r.Retries},
		preemptions:   y.Preemptions, hasSLO: s.Goodput.SLO != nil, unsettled: s.Window.Unsettled(),
		overloaded: s.Window.State == report.Overloaded,
	}
	if m.hasSLO {
		m.useful = stats.OrNaN(s.Goodput.OutputTokensPerS)
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
