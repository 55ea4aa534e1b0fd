package validation

import (
	"fmt"
	"math"
)

// Differences beyond these tolerances are contradictions: between numbers that agree except for rounding, and between
// numbers that agree on average over a run that fills up and drains.
const (
	slack     = 0.02
	roughly   = 0.15
	drainPart = 0.5 // a closed loop of few requests per client is seldom full
)

// checker looks for contradictions in a row.
type checker struct{ *Row }

// contradictions lists what in a row cannot be true together.
func (r checker) contradictions() []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	r.checkOrder(say)
	if ttft, e2e := r.TTFT.Mean, r.E2E.Mean; ttft != nil && e2e != nil && *ttft > *e2e {
		say("ttft_mean_ms %g is more than e2e_mean_ms %g", *ttft, *e2e)
	}
	r.checkTokenTime(say)
	r.checkLittle(say)
	if x, in := r.RequestsPerS, r.Rate; x != nil && in != nil && !r.Closed() && *x > *in*(1+roughly) {
		say("req_per_s %g is more than the rate_rps %g that was sent", *x, *in)
	}
	if tokens, x, mean := r.OutputTokensPerS, r.RequestsPerS, r.OutputMeanReported; tokens != nil && x != nil &&
		mean != nil && !near(*tokens, *x**mean, roughly) {
		say("output_tok_per_s %g is not req_per_s %g times output_tokens_mean_reported %g", *tokens, *x, *mean)
	}
	if n, rate, s := r.Requests, r.Rate, r.DurationS; r.LoadMode == "open" && n != nil && rate != nil && s != nil &&
		!near(float64(*n), *rate**s, roughly) {
		say("n_requests %d is not rate_rps %g times duration_s %g", *n, *rate, *s)
	}
	return list
}

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(math.Abs(a), math.Abs(b))
}

// checkOrder wants percentiles to rise.
func (r checker) checkOrder(say func(string, ...any)) {
	for _, k := range []struct {
		name string
		l    *Latency
	}{{"ttft", &r.TTFT}, {"tpot", &r.TPOT}, {"itl", &r.ITL}, {"e2e", &r.E2E}} {
		lower, from := (*float64)(nil), ""
		for _, p := range []struct {
			name string
			v    *float64
		}{{"p50", k.l.P50}, {"p90", k.l.P90}, {"p95", k.l.P95}, {"p99", k.l.P99}} {
			if p.v == nil {
				continue
			}
			if lower != nil && *p.v < *lower {
				say("%s_%s_ms %g is less than %s_%s_ms %g", k.name, p.name, *p.v, k.name, from, *lower)
			}
			lower, from = p.v, p.name
		}
	}
}

// checkTokenTime wants the time after the first token to be that of the other tokens.
func (r checker) checkTokenTime(say func(string, ...any)) {
	tpot, tokens, key := r.TPOTMeanNominal, r.OutputNominal, "tpot_mean_nominal_ms"
	if tpot == nil && !r.recounted() {
		tpot, key = r.TPOT.Mean, "tpot_mean_ms"
	}
	if tpot == nil || tokens == nil || r.TTFT.Mean == nil || r.E2E.Mean == nil || *tokens < 2 {
		return
	}
	if rest := *r.E2E.Mean - *r.TTFT.Mean; !near(rest, *tpot*(*tokens-1), roughly) {
		say("e2e_mean_ms less ttft_mean_ms, %g, is not %s %g times %g tokens", rest, key, *tpot, *tokens-1)
	}
}

// checkLittle wants the requests in the system to be as many as the throughput times the latency: in a closed loop
// about as many as its clients, and never more than the limit.
func (r checker) checkLittle(say func(string, ...any)) {
	x, key := r.RequestsPerS, "req_per_s"
	tokens := r.OutputMeanReported
	if tokens == nil {
		tokens = r.OutputNominal
	}
	if x == nil && r.OutputTokensPerS != nil && or(tokens, 0) > 0 {
		rate := *r.OutputTokensPerS / *tokens
		x, key = &rate, "output_tok_per_s by request"
	}
	if r.Concurrency == nil || x == nil || r.E2E.Mean == nil {
		return
	}
	inside, users := *x**r.E2E.Mean/1000, float64(*r.Concurrency)
	most := users * (1 + slack)
	if key != "req_per_s" {
		most = users * (1 + roughly) // the lengths of the outputs are a mean
	}
	if inside > most || r.Closed() && inside < users*drainPart {
		say("%s %.4g times e2e_mean_ms %g is %.3g requests in the system (Little's law), not the concurrency %d",
			key, *x, *r.E2E.Mean, inside, *r.Concurrency)
	}
}
