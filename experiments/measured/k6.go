package measured

import (
	"math"
	"strings"
	"time"
)

// k6Format is the summary of k6: of --summary-export, or of handleSummary. Times are milliseconds. k6 knows no tokens;
// TTFT, TPOT and lengths come from the metrics of xk6-llm-perf or from trends with such names.
// Sources: grafana.com/docs/k6, tmc/misc xk6-llm-perf.
func k6Format() format {
	return format{
		Format: Format{Name: "k6", Layout: "JSON summary of k6 (--summary-export FILE, or handleSummary)",
			Source: "https://grafana.com/docs/k6/latest/results-output"},
		is: func(f *file) bool {
			m := f.root().get("metrics")
			return m.has("http_req_duration") || m.has("iterations") || m.has("http_reqs")
		},
		read: func(f *file, r *Result) {
			metrics := f.root().get("metrics")
			of := func(name string) object {
				m := metrics.get(name)
				if m.has("values") {
					return m.get("values")
				}
				return m
			}
			run := Run{Completed: of("http_reqs").count("count"), RequestsPerS: of("http_reqs").number("rate"),
				Load: Load{Concurrency: of("vus_max").count("value", "max")}}
			failed := of("http_req_failed")
			if share := failed.number("value", "rate"); share != nil && run.Completed != nil {
				n := int(math.Round(*share * float64(*run.Completed)))
				done := *run.Completed - n
				run.Sent, run.Failed, run.Completed = run.Completed, &n, &done
			}
			run.Duration = seconds64(f.root().get("state").value("testRunDurationMs") / 1e3)
			r.k6Names(&run, func(name string) Statistics { return of(name).k6Statistics() }, sortedKeys(metrics.m))
			r.Runs = []Run{run}
		},
	}
}

func (o object) k6Statistics() Statistics {
	return Statistics{Mean: o.number("avg"), Min: o.number("min"), Max: o.number("max"), P50: o.number("med", "p(50)"),
		P90: o.number("p(90)"), P95: o.number("p(95)"), P99: o.number("p(99)")}
}

// k6Metrics are names of trends that tell what they hold.
var k6Metrics = map[string]string{"http_req_duration": "e2e", "llm_request_duration": "e2e", "llm_ttft": "ttft",
	"ttft":    "ttft",
	"ttft_ms": "ttft", "time_to_first_token": "ttft", "llm_token_latency": "itl", "itl_ms": "itl", "tpot_ms": "tpot",
	"tpot": "tpot", "input_tokens": "input", "prompt_tokens": "input", "output_tokens": "output",
	"completion_tokens": "output"}

// k6Names fills in the metrics whose names tell what they hold.
func (r *Result) k6Names(run *Run, of func(name string) Statistics, names []string) {
	first := false
	for _, name := range names {
		s := of(name)
		switch k6Metrics[name] {
		case "e2e":
			if run.E2E.Mean == nil || name != "http_req_duration" {
				run.E2E = s
			}
		case "ttft":
			run.TTFT, first = s, true
		case "tpot":
			run.TPOT = s
		case "itl":
			run.ITL = s
		case "input":
			run.Input.Statistics = s
		case "output":
			run.Output.Statistics = s
		}
	}
	r.note("E2E is http_req_duration: from sending to the last byte")
	if !first {
		r.note("k6 measures no TTFT (http_req_waiting is the first byte); a trend named llm_ttft or ttft in ms would")
	}
}

// k6PointsFormat is the output of k6 run --out json=FILE: one value per line.
func k6PointsFormat() format {
	return format{
		Format: Format{Name: "k6-points", Layout: "JSON lines of k6 run --out json=FILE[.gz], one value each",
			Source: "https://grafana.com/docs/k6/latest/results-output/real-time/json"},
		is: func(f *file) bool {
			if len(f.lines) == 0 || !f.lines[0].has("type", "data", "metric") {
				return false
			}
			kind := f.lines[0].text("type")
			return kind == "Metric" || kind == "Point"
		},
		read: readK6Points,
	}
}

func readK6Points(f *file, r *Result) {
	values := map[string][]float64{}
	run := Run{Name: "points"}
	failed, done := 0, 0
	users := 0.0
	var first, last time.Time
	for _, l := range f.lines {
		name, data := l.text("metric"), l.get("data")
		if l.text("type") != "Point" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, data.text("time"))
		x := data.number("value")
		if err != nil || x == nil {
			f.fault(l.where, "data", "the time or the value of %s is missing (want RFC 3339 and a number)", name)
			continue
		}
		switch name {
		case "vus":
			users = max(users, *x)
		case "http_req_failed":
			if *x > 0 {
				failed++
			}
		}
		if _, known := k6Metrics[name]; known && (name != "http_req_duration" ||
			!strings.HasPrefix(data.get("tags").text("status"), "5")) {
			values[name] = append(values[name], *x)
		}
		if name == "http_req_duration" {
			done++
			if first.IsZero() || at.Before(first) {
				first = at.Add(-time.Duration(*x * 1e6))
			}
			if at.After(last) {
				last = at
			}
		}
	}
	if users > 0 {
		run.Load.Concurrency = whole(&users)
	}
	completed := done - failed
	run.Sent, run.Failed, run.Completed, run.Duration = &done, &failed, &completed, last.Sub(first)
	r.k6Names(&run, func(name string) (s Statistics) { fill(&s, values[name]); return s }, sortedKeys(values))
	r.note("points of different metrics are not joined to requests: k6 gives them no number")
	r.Runs = []Run{run}
}
