package measured

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// complete computes what follows from the single requests and from other totals, where the file does not say it.
func (run *Run) complete(r *Result) {
	run.fromRequests(r)
	if run.Sent == nil && run.Completed != nil && run.Failed != nil {
		n := *run.Completed + *run.Failed
		run.Sent = &n
	}
	seconds := run.Duration.Seconds()
	perS := func(x *float64) *float64 {
		if x == nil || seconds <= 0 {
			return nil
		}
		return times(x, 1/seconds)
	}
	completed := float(run.Completed)
	for _, l := range []*Lengths{&run.Input, &run.Output} {
		if l.Mean == nil {
			l.Mean = quotient(l.Total, completed)
		}
		if l.Total == nil && l.Mean != nil && completed != nil {
			l.Total = times(l.Mean, *completed)
		}
	}
	for _, k := range []struct{ to, from **float64 }{{&run.RequestsPerS, &completed},
		{&run.InputTokensPerS, &run.Input.Total}, {&run.OutputTokensPerS, &run.Output.Total}} {
		if *k.to == nil {
			*k.to = perS(*k.from)
		}
	}
	if run.Duration == 0 && completed != nil && or(run.RequestsPerS, 0) > 0 {
		run.Duration = seconds64(*completed / *run.RequestsPerS)
	}
}

// fromRequests computes counts, lengths and latencies of single requests.
func (run *Run) fromRequests(r *Result) {
	if len(run.Requests) == 0 {
		return
	}
	slices.SortStableFunc(run.Requests, func(a, b Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	var input, output, ttft, tpot, e2e []float64
	failed, timed := 0, true
	var first, last time.Duration
	for i, q := range run.Requests {
		timed = timed && q.Timed
		if i == 0 {
			first = q.Arrival
		}
		last = max(last, q.Arrival+q.E2E)
		if q.Failed {
			failed++
			continue
		}
		input, output = append(input, float64(q.Input)), append(output, float64(q.Output))
		if q.TTFT > 0 {
			ttft = append(ttft, milliseconds(q.TTFT))
		}
		if q.E2E > 0 {
			e2e = append(e2e, milliseconds(q.E2E))
			if q.TTFT > 0 && q.Output > 1 {
				tpot = append(tpot, milliseconds(q.E2E-q.TTFT)/float64(q.Output-1))
			}
		}
	}
	for i := range run.Requests {
		run.Requests[i].Arrival -= first
	}
	done, all := len(run.Requests)-failed, len(run.Requests)
	switch {
	case run.Completed != nil && *run.Completed > done:
		r.note("%d of %d completed requests are in the file; lengths and gaps are theirs", done, *run.Completed)
	case run.Completed == nil:
		run.Completed, run.Sent, run.Failed = &done, &all, &failed
	}
	if run.Duration == 0 && timed {
		run.Duration = last - first
	}
	fill(&run.Input.Statistics, input)
	fill(&run.Output.Statistics, output)
	fill(&run.TTFT, ttft)
	fill(&run.TPOT, tpot)
	fill(&run.E2E, e2e)
}

// fill computes the statistics that are unknown.
func fill(s *Statistics, values []float64) {
	if len(values) == 0 {
		return
	}
	v := describe(values)
	for _, k := range []struct{ to, from **float64 }{{&s.Mean, &v.Mean}, {&s.Std, &v.Std}, {&s.Min, &v.Min},
		{&s.Max, &v.Max}, {&s.P50, &v.P50}, {&s.P90, &v.P90}, {&s.P95, &v.P95}, {&s.P99, &v.P99}} {
		if *k.to == nil {
			*k.to = *k.from
		}
	}
}

// describe computes the statistics of a sample of at least one. Percentiles are interpolated as numpy does.
func describe(values []float64) Statistics {
	v := slices.Sorted(slices.Values(values))
	mean, square := 0.0, 0.0
	for _, x := range v {
		mean += x / float64(len(v))
	}
	for _, x := range v {
		square += (x - mean) * (x - mean) / float64(len(v))
	}
	std := math.Sqrt(square)
	at := func(p float64) *float64 { x := quantile(v, p); return &x }
	return Statistics{Mean: &mean, Std: &std, Min: &v[0], Max: &v[len(v)-1], P50: at(0.5), P90: at(0.9), P95: at(0.95),
		P99: at(0.99)}
}

// quantile interpolates in sorted values.
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// empty reports whether nothing was measured.
func (run *Run) empty() bool {
	if len(run.Series) > 0 {
		return false
	}
	if run.Completed != nil && *run.Completed == 0 {
		return true
	}
	for _, x := range []*float64{run.TTFT.Mean, run.TTFT.P50, run.TPOT.Mean, run.TPOT.P50, run.E2E.Mean, run.E2E.P50,
		run.ITL.Mean, run.ITL.P50, run.RequestsPerS, run.OutputTokensPerS, run.Input.Mean, run.Output.Mean} {
		if x != nil {
			return false
		}
	}
	return len(run.Requests) == 0
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// seconds64 is a time of so many seconds, at most 100 years.
func seconds64(s float64) time.Duration {
	const most = 9e9
	if !(s > 0) {
		return 0
	}
	return time.Duration(math.Round(min(s, most) * 1e9))
}

func float(n *int) *float64 {
	if n == nil {
		return nil
	}
	x := float64(*n)
	return &x
}

// names are the numbers and names of the runs, for messages.
func (r *Result) names() []string {
	var names []string
	for i, run := range r.Runs {
		names = append(names, fmt.Sprintf("%d: %s", i+1, run.Name))
	}
	return names
}
