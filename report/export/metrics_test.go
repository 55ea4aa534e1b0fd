package export_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"clifftop/report"
	"clifftop/report/export"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// sample is a value of a series, with its instant where it has one.
type sample struct {
	value float64
	at    float64
}

var line = regexp.MustCompile(`^([a-z_:0-9A-Z]+)\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\} (\S+)(?: (\S+))?$`)

// readSamples reads an exposition: by name and labels, in order.
func readSamples(t *testing.T, text string) (series map[string][]sample, types map[string]string) {
	t.Helper()
	series, types = map[string][]sample{}, map[string]string{}
	for scan := bufio.NewScanner(strings.NewReader(text)); scan.Scan(); {
		row := scan.Text()
		if name, ok := strings.CutPrefix(row, "# TYPE "); ok {
			f := strings.Fields(name)
			if types[f[0]] != "" {
				t.Fatalf("%s is there twice", f[0])
			}
			types[f[0]] = f[1]
		}
		if strings.HasPrefix(row, "#") {
			continue
		}
		m := line.FindStringSubmatch(row)
		if m == nil {
			t.Fatalf("%q is no sample", row)
		}
		var s sample
		var err error
		if s.value, err = strconv.ParseFloat(m[3], 64); err != nil {
			t.Fatal(err)
		}
		if m[4] != "" {
			if s.at, err = strconv.ParseFloat(m[4], 64); err != nil {
				t.Fatal(err)
			}
		}
		key := m[1] + "{" + m[2] + "}"
		series[key] = append(series[key], s)
	}
	return series, types
}

func text(t *testing.T, m *export.Metrics) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func openMetrics(t *testing.T, m *export.Metrics) string {
	t.Helper()
	var b bytes.Buffer
	if err := m.WriteOpenMetrics(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// key is the name of a series.
func key(name string, engine int, more string) string {
	return fmt.Sprintf(`vllm:%s{engine="%d",model_name="llama-3.1-8b"%s}`, name, engine, more)
}

// TestMetrics compares the last values with the records of the requests.
func TestMetrics(t *testing.T) {
	each(t, func(t *testing.T, r *ran) {
		series, _ := readSamples(t, text(t, r.metrics))
		get := func(name, more string) float64 {
			t.Helper()
			sum, engines := 0.0, 0
			for ; len(series[key(name, engines, more)]) == 1; engines++ {
				sum += series[key(name, engines, more)][0].value
			}
			if engines != r.setup.Report.Replicas {
				t.Fatalf("%s%s is of %d engines", name, more, engines)
			}
			return sum
		}
		var prompts, tokens, whole, left, preempted, lookups, hits int64
		var e2e, ttft []float64
		for i := range r.records {
			rec := &r.records[i]
			preempted += int64(rec.Preemptions)
			if rec.Scheduled != clock.Never && r.setup.Pools[0].Config.PrefixCaching { // as in all pools
				lookups += int64(rec.Request.InputTokens)
				hits += int64(rec.CachedTokens)
			}
			if rec.FirstToken != clock.Never {
				prompts += int64(rec.Request.InputTokens)
			}
			tokens += int64(rec.Tokens)
			switch {
			case rec.Refusal != event.NotRefused:
			case rec.Outcome == event.Completed:
				whole++
				ttft = append(ttft, rec.ClientFirst.Sub(rec.Request.Arrival).Seconds())
				e2e = append(e2e, rec.ClientLast.Sub(rec.Request.Arrival).Seconds())
			default:
				left++
			}
		}
		want := func(name, more string, v float64) {
			t.Helper()
			if got := get(name, more); math.Abs(got-v) > 1e-9*math.Abs(v) {
				t.Errorf("%s%s is %v, want %v", name, more, got, v)
			}
		}
		want("prompt_tokens_total", "", float64(prompts))
		want("generation_tokens_total", "", float64(tokens))
		want("num_preemptions_total", "", float64(preempted))
		want("prefix_cache_queries_total", "", float64(lookups))
		want("prefix_cache_hits_total", "", float64(hits))
		want("request_success_total", `,finished_reason="stop"`, float64(whole))
		want("request_success_total", `,finished_reason="abort"`, float64(left))
		want("num_requests_running", "", 0)
		want("num_requests_waiting", "", 0)
		want("kv_cache_usage_perc", "", 0)
		want("e2e_request_latency_seconds_count", "", float64(whole+left))
		if left > 0 {
			return // they are in the histograms too
		}
		for name, values := range map[string][]float64{"time_to_first_token_seconds": ttft,
			"e2e_request_latency_seconds": e2e} {
			sum := 0.0
			for _, v := range values {
				sum += v
			}
			want(name+"_sum", "", sum)
			for _, le := range []string{"0.5", "1.0", "2.5", "+Inf"} {
				bound, _ := strconv.ParseFloat(strings.TrimPrefix(le, "+"), 64)
				n := 0
				for _, v := range values {
					if v <= bound {
						n++
					}
				}
				want(name+"_bucket", `,le="`+le+`"`, float64(n))
			}
		}
		var itls float64
		for i := range r.records {
			itls += r.records[i].LastToken.Sub(r.records[i].FirstToken).Seconds()
		}
		// The gap of a token that was dropped, because its iteration was composed before the end was known, is counted.
		for _, name := range []string{"inter_token_latency_seconds_sum", "time_per_output_token_seconds_sum"} {
			if got := get(name, ""); got < itls*(1-1e-9) || got > itls*1.01 {
				t.Errorf("%s is %v, want %v, and at most 1 %% more", name, got, itls)
			}
		}
	})
}

// TestMetricsOverTime makes sure that what is counted only grows, at equal intervals, up to the last values.
func TestMetricsOverTime(t *testing.T) {
	each(t, func(t *testing.T, r *ran) {
		whole := openMetrics(t, r.metrics)
		if !strings.HasSuffix(whole, "\n# EOF\n") {
			t.Error("the end is missing")
		}
		series, types := readSamples(t, whole)
		last, lastTypes := readSamples(t, text(t, r.metrics))
		if len(types) != len(lastTypes) || len(series) != len(last) {
			t.Errorf("%d series of %d families over time, %d of %d at the end", len(series), len(types), len(last),
				len(lastTypes))
		}
		for key, list := range series {
			if len(last[key]) != 1 || last[key][0].value != list[len(list)-1].value {
				t.Errorf("%s ends with %v, want %v", key, list[len(list)-1].value, last[key])
			}
			for i, s := range list {
				if want := float64(export.Epoch.Unix()) + float64(i)*r.metrics.Interval().Seconds(); s.at != want {
					t.Fatalf("%s: sample %d is at %v, want %v", key, i, s.at, want)
				}
				if strings.HasPrefix(key, "kube_") || strings.HasPrefix(key, "clifftop_replicas") ||
					strings.HasPrefix(key, "vllm:healthy") {
					continue
				}
				grows := !strings.HasPrefix(key, "vllm:num_requests_") && !strings.HasPrefix(key, "vllm:kv_cache_usage")
				if grows && i > 0 && s.value < list[i-1].value {
					t.Fatalf("%s falls from %v to %v", key, list[i-1].value, s.value)
				}
				if strings.HasPrefix(key, "vllm:kv_cache_usage") && (s.value < 0 || s.value > 1) {
					t.Fatalf("%s is %v", key, s.value)
				}
			}
		}
	})
}

// TestGauges compares the gauges with the levels that the records imply.
func TestGauges(t *testing.T) {
	each(t, func(t *testing.T, r *ran) {
		if r.setup.Pools[0].Config.HostBlocks > 0 || r.result.Summary.Tokens.Recomputed > 0 {
			t.Skip("preempted requests do not run all the time")
		}
		series, _ := readSamples(t, openMetrics(t, r.metrics))
		for engine := range r.setup.Report.Replicas {
			list := series[key("num_requests_running", engine, "")]
			busy := 0
			for i, s := range list {
				at := clock.Time(i) * clock.Time(r.metrics.Interval().Nanoseconds()*1000)
				n := 0
				for k := range r.records {
					if rec := &r.records[k]; rec.Replica == engine && rec.Scheduled <= at && rec.Released > at {
						n++
					}
				}
				if float64(n) != s.value {
					t.Errorf("%d requests run on replica %d at %v, not %v", n, engine, at, s.value)
				}
				if n > 0 {
					busy++
				}
			}
			if busy < len(list)/2 {
				t.Errorf("only %d of %d samples see requests", busy, len(list))
			}
		}
	})
}

var metricName = regexp.MustCompile(`(?:vllm:|kube_|clifftop_)[a-z0-9_]+`)

// TestDashboard holds the dashboard to what Grafana needs, and its queries to the metrics that there are.
func TestDashboard(t *testing.T) {
	each(t, func(t *testing.T, r *ran) {
		var b bytes.Buffer
		if err := r.metrics.WriteDashboard(&b, "a test"); err != nil {
			t.Fatal(err)
		}
		var d struct {
			Title         string
			SchemaVersion int
			Time          struct{ From, To string }
			Panels        []struct {
				ID          int
				Type, Title string
				GridPos     struct{ H, W, X, Y int }
				Targets     []struct{ Expr, RefID, Interval string }
			}
			Templating struct {
				List []struct{ Name, Type string }
			}
		}
		if err := json.Unmarshal(b.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		if d.Title != "a test" || d.SchemaVersion < 30 || d.Time.From >= d.Time.To {
			t.Errorf("%+v", d)
		}
		series, _ := readSamples(t, text(t, r.metrics))
		var names []string
		for key := range series {
			names = append(names, key[:strings.Index(key, "{")])
		}
		variables := []string{"datasource", "model_name", "engine"}
		if r.setup.Scenario.Lifecycle != nil {
			variables = append(variables, "namespace", "deployment")
		}
		for i, v := range d.Templating.List {
			if i >= len(variables) || v.Name != variables[i] {
				t.Errorf("variable %d is %+v, want %v", i, v, variables)
			}
		}
		if asks := strings.Contains(b.String(), "kube_"); asks != (r.setup.Scenario.Lifecycle != nil) {
			t.Errorf("the dashboard asks for replicas: %v", asks)
		}
		seen := map[string]bool{}
		for i, p := range d.Panels {
			if p.ID != i+1 || p.Type != "timeseries" || p.Title == "" || len(p.Targets) == 0 ||
				p.GridPos.X+p.GridPos.W > 24 || seen[fmt.Sprint(p.GridPos)] {
				t.Errorf("panel %d: %+v", i, p)
			}
			seen[fmt.Sprint(p.GridPos)] = true
			for _, target := range p.Targets {
				found := metricName.FindAllString(target.Expr, -1)
				if len(found) == 0 || target.Interval != r.metrics.Interval().String() {
					t.Errorf("%s: %+v", p.Title, target)
				}
				for _, name := range found {
					if !slices.Contains(names, name) {
						t.Errorf("%s asks for %s, which is not exported", p.Title, name)
					}
				}
			}
		}
	})
}

// TestMetricsOfTheCatalogue wants every vLLM metric that the catalogue names.
func TestMetricsOfTheCatalogue(t *testing.T) {
	var b bytes.Buffer
	m := export.NewMetrics(export.MetricsInfo{MaxModelLen: 4096, Speculative: true,
		Engines: []export.EngineInfo{{Model: "m", UsableBlocks: 100}}})
	if err := m.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	for _, metric := range report.Metrics() {
		names := strings.FieldsFunc(metric.Prometheus, func(r rune) bool { return r == ' ' || r == '/' })
		for _, name := range names {
			if !strings.Contains(b.String(), "\n"+name+"{") {
				t.Errorf("%s: no metric %s is exported", metric.Path, name)
			}
		}
	}
}
