package measured

import (
	"cmp"
	"math"
	"slices"
)

// result makes a run of the metrics. vLLM's and SGLang's time_per_output_token_seconds and inter_token_latency_seconds
// hold every gap (ITL); request_time_per_output_token_seconds holds a mean per request (TPOT). The times are the
// engine's: the way to the client is not in them.
func (m *metrics) result(f *file, r *Result) {
	if len(m.list) == 0 {
		f.fault(f.name, "", "no series is of vLLM or SGLang (want names such as vllm:num_requests_running)")
		return
	}
	run := Run{Engine: m.engine, Model: m.model, Name: "metrics"}
	window, timed, points := m.window()
	if timed {
		run.Duration = seconds64(window)
	}
	run.TTFT, _, _ = m.histogram(1e3, "time_to_first_token_seconds")
	run.ITL, _, _ = m.histogram(1e3, "inter_token_latency_seconds", "time_per_output_token_seconds")
	run.TPOT, _, _ = m.histogram(1e3, "request_time_per_output_token_seconds")
	run.Queue, _, _ = m.histogram(1e3, "request_queue_time_seconds", "queue_time_seconds")
	var ended *float64
	run.E2E, ended, _ = m.histogram(1e3, "e2e_request_latency_seconds")
	if done := m.counter("request_success", "num_requests"); done != nil {
		ended = done
	}
	run.Completed = whole(ended)
	run.Input.Statistics, _, _ = m.histogram(1, "request_prompt_tokens", "prompt_tokens_histogram")
	run.Output.Statistics, _, _ = m.histogram(1, "request_generation_tokens", "generation_tokens_histogram")
	run.Input.Total, run.Output.Total = m.counter("prompt_tokens"), m.counter("generation_tokens")
	m.state(&run)
	switch {
	case points == 1 && ended != nil:
		r.note("one snapshot counts from the start of the engine; a second one in the same file makes a window")
	case !timed && points > 1:
		r.note("the snapshots have no times, so that rates are unknown")
	}
	if run.TTFT.Mean != nil || run.E2E.Mean != nil {
		r.note("latencies are the engine's own; percentiles are interpolated between the bounds of a histogram")
	}
	r.Runs = []Run{run}
}

// window is the time from the first to the last value in seconds, whether times are known, and the most values of a
// series.
func (m *metrics) window() (seconds float64, timed bool, points int) {
	first, last := math.Inf(1), math.Inf(-1)
	timed = true
	for _, s := range m.list {
		slices.SortStableFunc(s.points, func(a, b point) int { return cmp.Compare(a.at, b.at) })
		points = max(points, len(s.points))
		for _, p := range s.points {
			timed = timed && p.timed
			first, last = min(first, p.at), max(last, p.at)
		}
	}
	return last - first, timed && last > first, points
}

// state reads gauges as samples of one engine at one time.
func (m *metrics) state(run *Run) {
	type key struct {
		at      float64
		replica string
	}
	samples := map[key]*Sample{}
	at := func(s *promSeries, p point) *Sample {
		k := key{p.at, replicaOf(s.labels)}
		if samples[k] == nil {
			samples[k] = &Sample{At: seconds64(p.at), Replica: k.replica}
		}
		return samples[k]
	}
	for _, g := range []struct {
		names []string
		to    func(*Sample) **float64
	}{
		{[]string{"num_requests_running", "num_running_reqs"}, func(s *Sample) **float64 { return &s.Running }},
		{[]string{"num_requests_waiting", "num_queue_reqs"}, func(s *Sample) **float64 { return &s.Waiting }},
		{[]string{"kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage"},
			func(s *Sample) **float64 { return &s.KVUse }},
		{[]string{"cache_hit_rate", "gpu_prefix_cache_hit_rate"}, func(s *Sample) **float64 { return &s.HitRate }},
		{[]string{"gen_throughput"}, func(s *Sample) **float64 { return &s.OutputTokensPerS }},
	} {
		for _, s := range m.find(g.names...) {
			for _, p := range s.points {
				if !(p.value >= 0) || math.IsInf(p.value, 0) {
					continue
				}
				v := p.value
				*g.to(at(s, p)) = &v
			}
		}
	}
	for _, g := range []struct {
		name string
		to   func(*Sample) **float64
	}{{"prompt_tokens", func(s *Sample) **float64 { return &s.PromptTokensPerS }},
		{"generation_tokens", func(s *Sample) **float64 { return &s.OutputTokensPerS }}} {
		for _, s := range m.find(g.name) {
			for i := 1; i < len(s.points); i++ {
				before, p := s.points[i-1], s.points[i]
				if p.timed && p.at > before.at && p.value >= before.value {
					v := (p.value - before.value) / (p.at - before.at)
					*g.to(at(s, p)) = &v
				}
			}
		}
	}
	m.hits(func(s *promSeries, p point, share float64) { at(s, p).HitRate = &share })
	for _, s := range samples {
		run.Series = append(run.Series, *s)
	}
	run.sortSeries()
}

// hits computes the hit rate of vLLM's prefix cache between samples; of a single one, it is that since the start.
func (m *metrics) hits(found func(s *promSeries, p point, share float64)) {
	hits := m.find("prefix_cache_hits", "gpu_prefix_cache_hits")
	for i, q := range m.find("prefix_cache_queries", "gpu_prefix_cache_queries") {
		if i >= len(hits) || len(hits[i].points) != len(q.points) {
			return
		}
		for j, p := range q.points {
			asked, hit := p.value, hits[i].points[j].value
			if j > 0 {
				asked, hit = asked-q.points[j-1].value, hit-hits[i].points[j-1].value
			}
			if (j > 0 || len(q.points) == 1) && asked > 0 && hit >= 0 && hit <= asked {
				found(q, p, hit/asked)
			}
		}
	}
}

// replicaOf names the engine of a series.
func replicaOf(labels map[string]string) string {
	name := labels["instance"]
	for _, k := range []string{"pod", "engine", "dp_rank"} {
		if v := labels[k]; v != "" {
			if name != "" {
				name += " "
			}
			name += k + " " + v
		}
	}
	return name
}

// sortSeries sorts samples by time and engine, and counts time from the first one.
func (run *Run) sortSeries() {
	slices.SortStableFunc(run.Series, func(a, b Sample) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Replica, b.Replica))
	})
	for i := len(run.Series) - 1; i >= 0; i-- {
		run.Series[i].At -= run.Series[0].At
	}
}
