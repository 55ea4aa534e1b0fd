package validation

import (
	"math"
	"strings"

	"clifftop/report"
)

// metric is one number that is both measured and simulated.
type metric struct {
	// Name is the key in results, such as ttft_mean_ms.
	Name string
	// Kind is ttft, tpot, itl, e2e or throughput, and Statistic mean, p50 …
	Kind, Statistic string
	// Points means that the error is a difference, because the number is a part of a whole.
	Points bool

	measured  func(*Row) *float64
	simulated func(*outcome, *Case) *float64
}

// metrics are all that is compared, in the order of results.
func metrics() []metric {
	var all []metric
	for _, k := range []struct {
		kind string
		row  func(*Row) *Latency
		run  func(*report.Latency) *report.Distribution
	}{
		{"ttft", func(r *Row) *Latency {
			return &r.TTFT
		}, func(l *report.Latency) *report.Distribution { return &l.TTFT }},
		{"tpot", tpot, func(l *report.Latency) *report.Distribution { return &l.TPOT }},
		{"itl", itl, func(l *report.Latency) *report.Distribution { return &l.ITL }},
		{"e2e", e2e, func(l *report.Latency) *report.Distribution { return &l.E2E }},
	} {
		for _, s := range []struct {
			name string
			row  func(*Latency) *float64
			run  func(*report.Distribution) *float64
		}{
			{"mean", func(l *Latency) *float64 {
				return l.Mean
			}, func(d *report.Distribution) *float64 { return d.Mean }},
			{"p50", func(l *Latency) *float64 { return l.P50 }, func(d *report.Distribution) *float64 { return d.P50 }},
			{"p90", func(l *Latency) *float64 { return l.P90 }, func(d *report.Distribution) *float64 { return d.P90 }},
			{"p95", func(l *Latency) *float64 { return l.P95 }, func(d *report.Distribution) *float64 { return d.P95 }},
			{"p99", func(l *Latency) *float64 { return l.P99 }, func(d *report.Distribution) *float64 { return d.P99 }},
		} {
			all = append(all, metric{
				Name: k.kind + "_" + s.name + "_ms", Kind: k.kind, Statistic: s.name,
				measured:  func(r *Row) *float64 { return s.row(k.row(r)) },
				simulated: func(o *outcome, _ *Case) *float64 { return s.run(k.run(&o.latency)) },
			})
		}
	}
	all = append(all, hitRates()...)
	all = append(all, states()...)
	all = append(all, powerMetrics()...)
	return append(all, metric{
		Name: "output_tokens_per_s", Kind: "throughput", Statistic: "mean",
		measured: throughput,
		simulated: func(o *outcome, c *Case) *float64 {
			if o.throughput.OutputTokensPerS == nil {
				return nil
			}
			x := *o.throughput.OutputTokensPerS * float64(c.ranks)
			return &x
		},
	})
}

// states are the requests that run and wait, and the part of the KV pool in use, on the average of the run.
func states() []metric {
	return []metric{
		{Name: "running_requests", Kind: "state", Statistic: "mean",
			measured: func(r *Row) *float64 { return r.State.Running },
			simulated: func(o *outcome, _ *Case) *float64 {
				return o.summary.Concurrency.Running.Mean
			}},
		{Name: "waiting_requests", Kind: "state", Statistic: "mean",
			measured: func(r *Row) *float64 { return r.State.Waiting },
			simulated: func(o *outcome, _ *Case) *float64 {
				return o.summary.Concurrency.QueueDepth.Mean
			}},
		{Name: "kv_usage", Kind: "hits", Statistic: "mean", Points: true,
			measured:  func(r *Row) *float64 { return r.State.KVUsage },
			simulated: func(o *outcome, _ *Case) *float64 { return o.summary.System.KVUsage.Mean }},
	}
}

// hitRates are the parts of prompts that were found on the GPU and, of the rest, in the memory of the host.
func hitRates() []metric {
	gpu := func(o *outcome, _ *Case) *float64 { return o.summary.System.PrefixHitRate }
	host := func(o *outcome, _ *Case) *float64 {
		x := 0.0
		if t := o.summary.System.Offload; t != nil && t.HitRate != nil {
			x = *t.HitRate
		}
		if g := o.summary.System.PrefixHitRate; g != nil && *g < 1 {
			x /= 1 - *g
		}
		return &x
	}
	return []metric{
		{Name: "gpu_hit_rate", Kind: "hits", Statistic: "mean", Points: true,
			measured: func(r *Row) *float64 { return r.Offload.GPUHitRate }, simulated: gpu},
		{Name: "host_hit_rate", Kind: "hits", Statistic: "mean", Points: true,
			measured: func(r *Row) *float64 { return r.Offload.HostHitRate }, simulated: host},
	}
}

// powerMetrics are the mean power of a GPU and the energy of all GPUs for each output token.
func powerMetrics() []metric {
	of := func(read func(*report.Energy) *float64) func(*outcome, *Case) *float64 {
		return func(o *outcome, _ *Case) *float64 {
			if o.summary == nil || o.summary.Energy == nil {
				return nil
			}
			return read(o.summary.Energy)
		}
	}
	return []metric{
		{Name: "gpu_watts", Kind: "power", Statistic: "mean",
			measured:  func(r *Row) *float64 { return r.Power.PerGPUWatts() },
			simulated: of(func(e *report.Energy) *float64 { return e.GPUWatts.Mean })},
		{Name: "joules_per_output_token", Kind: "energy", Statistic: "mean",
			measured:  func(r *Row) *float64 { return r.Power.PerOutputToken() },
			simulated: of(func(e *report.Energy) *float64 { return e.PerOutputToken })},
	}
}

// tpot is the time per token that the engine produced. Where the client counted the text's tokens again, only the
// mean by the nominal count can be compared.
func tpot(r *Row) *Latency {
	l := r.TPOT
	if r.TPOTMeanNominal != nil {
		l.Mean = r.TPOTMeanNominal
	}
	if r.recounted() {
		l.P50, l.P90, l.P95, l.P99 = nil, nil, nil, nil
	}
	return &l
}

// itl is the time between chunks, which is that between tokens where a chunk has one.
func itl(r *Row) *Latency {
	switch {
	case r.ITL == Latency{}:
		return &r.StreamGap
	case r.StreamInterval == nil && r.chunked():
		return &Latency{}
	}
	return &r.ITL
}

// chunked reports whether chunks of the stream carry several tokens: the mean time between chunks is then several
// times that between tokens.
func (r *Row) chunked() bool {
	const several = 1.5
	return r.ITL.Mean != nil && tpot(r).Mean != nil && *r.ITL.Mean > several**tpot(r).Mean
}

// e2e is the end-to-end latency, whose mean follows from TTFT and TPOT where it was not published: a request's is
// TTFT + TPOT · (tokens - 1), and its length has little to do with its TPOT.
func e2e(r *Row) *Latency {
	l := r.E2E
	if r.derivesE2E() {
		x := *r.TTFT.Mean + *tpot(r).Mean*(*r.OutputNominal-1)
		l.Mean = &x
	}
	return &l
}

// derivesE2E reports whether the mean end-to-end latency is not there but follows from others.
func (r *Row) derivesE2E() bool {
	return r.E2E.Mean == nil && r.TTFT.Mean != nil && tpot(r).Mean != nil && or(r.OutputNominal, 0) >= 1
}

// recounted reports whether the client counted the output tokens from their text.
func (r *Row) recounted() bool {
	return r.perf() || strings.Contains(r.TPOTDefinition, "reported")
}

// throughput is the rate of tokens that the engine produced.
func throughput(r *Row) *float64 {
	if !r.recounted() {
		return r.OutputTokensPerS
	}
	if r.RequestsPerS == nil || r.OutputNominal == nil {
		return nil
	}
	x := *r.RequestsPerS * *r.OutputNominal
	return &x
}

// Comparison is one metric of a row.
type Comparison struct {
	Metric    string   `json:"metric"`
	Measured  *float64 `json:"measured"`
	Simulated *float64 `json:"simulated"`
	// Error is simulated over measured less 1; nil where one of them is missing.
	Error *float64 `json:"error"`
}

// compare makes a row's comparisons: of all that was measured.
func compare(r *Row, o *outcome, c *Case) []Comparison {
	list := []Comparison{}
	for _, m := range metrics() {
		measured := m.measured(r)
		if measured == nil {
			continue
		}
		k := Comparison{Metric: m.Name, Measured: measured, Simulated: m.simulated(o, c)}
		switch {
		case k.Simulated == nil:
		case m.Points:
			e := *k.Simulated - *measured
			k.Error = &e
		case *measured > 0:
			e := *k.Simulated / *measured - 1
			if !math.IsInf(e, 0) && !math.IsNaN(e) {
				k.Error = &e
			}
		}
		list = append(list, k)
	}
	return list
}
