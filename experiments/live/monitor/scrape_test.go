package monitor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"clifftop/experiments"
	"clifftop/experiments/live/monitor"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/export"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

func resolved(t testing.TB, text string) *scenario.Setup {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// scenarios are runs that differ in what happens to requests.
var scenarios = map[string]string{
	"chat": "workload: {arrivals: {process: poisson, rate: 12}}\nrun: {requests: 300, warmup: 0s}",
	"old": "engine: {version: vllm-0.11}\nworkload: {arrivals: {process: poisson, rate: 6}}\n" +
		"overheads: {network_in: 7ms, network_out: 11ms}\nrun: {requests: 100}",
	"preempted": "engine: {num_gpu_blocks_override: 900, scheduler_reserve_full_isl: false, " +
		"enable_prefix_caching: false}\nworkload: {arrivals: {process: poisson, rate: 20}, " +
		"input: {distribution: fixed, value: 200}, output: {distribution: lognormal, mean: 300, cv: 1}}\nrun: {requests: 200, warmup: 0s}",
	"retries": "engine: {max_num_seqs: 8, max_num_queued_reqs: 40}\n" +
		"clients: {timeout: 6s, retries: 2, cancel_on_timeout: true}\n" +
		"workload: {arrivals: {process: poisson, rate: 12}}\nrun: {requests: 200}",
	"drafts": "engine: {speculative: {method: eagle, num_speculative_tokens: 3, acceptance: 0.7}}\n" +
		"workload: {arrivals: {process: poisson, rate: 6}}\nrun: {requests: 100}",
	"fleet": "gpu: a100-80gb-sxm\npools: [{name: small, replicas: 2, engine: {max_num_seqs: 16, " +
		"num_gpu_blocks_override: 1200}}, {name: large, engine: {max_num_seqs: 64}}]\n" +
		"deployment: {router: least-requests}\nworkload: {arrivals: {process: poisson, rate: 20}, " +
		"prefix: {groups: 4, prompts_per_group: 10, shared_tokens: 100}}\nrun: {requests: 300}",
	"disaggregated": "pools: [{name: p, role: prefill, replicas: 2}, {name: d, role: decode, replicas: 2}]\n" +
		"disaggregation: {link_gb_per_s: 5}\nworkload: {arrivals: {process: poisson, rate: 10}}\nrun: {requests: 200}",
	"failures": "deployment: {replicas: 3, router: least-requests}\nworkload: {arrivals: {process: poisson, rate: 14}}\n" +
		"clients: {timeout: 60s, retries: 2}\nlifecycle: {cold_start: {distribution: fixed, mean: 5s}, grace: 5s, " +
		"failures: [{kind: crash, at: 10s, replica: 2, for: 8s}, {kind: rolling-restart, at: 25s}]}\nrun: {requests: 600}",
}

// run runs a scenario under a monitor and an export of its metrics.
func run(t testing.TB, text string) (*monitor.Monitor, *export.Metrics, *experiments.Result) {
	t.Helper()
	u := resolved(t, text)
	m, exported := monitor.New(u, monitor.Options{}), experiments.NewMetrics(u)
	result, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{Check: true,
		Observers: []event.Observer{m.Observer(), exported}})
	if err != nil {
		t.Fatal(err)
	}
	return m, exported, result
}

// scrape reads the metrics of a replica, or of all.
func scrape(t testing.TB, m *monitor.Monitor, replica int) map[string]*dto.MetricFamily {
	t.Helper()
	w := httptest.NewRecorder()
	m.Metrics(replica).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return parsed(t, w.Body)
}

func parsed(t testing.TB, text io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(text)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// total adds the values of a family: those of a gauge or counter, and the count and the sum of a histogram. Only those
// with the labels are added, which are pairs of a name and a value.
func total(f *dto.MetricFamily, labels ...string) (count, sum float64) {
	for _, s := range f.GetMetric() {
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && slices.ContainsFunc(s.GetLabel(), func(l *dto.LabelPair) bool {
				return l.GetName() == labels[i] && l.GetValue() == labels[i+1]
			})
		}
		if fits {
			count += s.GetCounter().GetValue() + s.GetGauge().GetValue() + float64(s.GetHistogram().GetSampleCount())
			sum += s.GetHistogram().GetSampleSum()
		}
	}
	return count, sum
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// TestExportAgrees compares the metrics at the end of a run with the export of the same run, which counts requests when
// they end. Both have the same requests.
func TestExportAgrees(t *testing.T) {
	for name, text := range scenarios {
		t.Run(name, func(t *testing.T) {
			m, exported, result := run(t, text)
			got := scrape(t, m, -1)
			var b bytes.Buffer
			if err := exported.WriteText(&b); err != nil {
				t.Fatal(err)
			}
			for family, want := range parsed(t, &b) {
				if family == "vllm:time_per_output_token_seconds" && got[family] == nil && name != "old" {
					continue // newer releases do not have it
				}
				if got[family] == nil {
					t.Errorf("%s is missing", family)
					continue
				}
				if got[family].GetType() != want.GetType() || got[family].GetHelp() != want.GetHelp() {
					t.Errorf("%s is %v, %q", family, got[family].GetType(), got[family].GetHelp())
				}
				n, sum := total(got[family])
				wantN, wantSum := total(want)
				// What was dropped is taken off later tokens, and the times of the fleet end with the last event.
				if family == "vllm:generation_tokens_total" && n >= wantN && n < wantN*1.01 ||
					strings.HasPrefix(family, "clifftop_gpu") {
					continue
				}
				if !near(n, wantN) || !near(sum, wantSum) {
					t.Errorf("%s: count %v, sum %v; want %v, %v", family, n, sum, wantN, wantSum)
				}
			}
			prompts, _ := total(got["vllm:prompt_tokens_total"])
			outputs, _ := total(got["vllm:generation_tokens_total"])
			if _, sum := total(got["vllm:iteration_tokens_total"]); sum < prompts+outputs || sum > 1.02*(prompts+outputs) {
				t.Errorf("iterations have %v tokens, want %v", sum, prompts+outputs)
			}
			if name == "chat" || name == "preempted" { // without retries, measured from the start
				agrees(t, got, result.Summary)
			}
		})
	}
}

// agrees compares metrics with the summary of a run whose requests all complete.
func agrees(t *testing.T, got map[string]*dto.MetricFamily, s *report.Summary) {
	t.Helper()
	completed := float64(s.Requests.Completed)
	if n, _ := total(got["clifftop_requests_total"], "outcome", "completed"); n != completed || n == 0 {
		t.Errorf("%v requests are completed, want %v", n, completed)
	}
	for name, want := range map[string]*float64{"time_to_first_token_seconds": s.Latency.TTFT.Mean,
		"e2e_request_latency_seconds": s.Latency.E2E.Mean} {
		n, sum := total(got["vllm:"+name])
		if mean := 1000 * sum / n; n != float64(s.Requests.Completed) || math.Abs(mean-*want) > 1e-6**want {
			t.Errorf("%s has a mean of %v of %v requests, want %v of %d", name, mean, n, *want, s.Requests.Completed)
		}
	}
}

// TestReplica shows only one replica on its own port, as engine 0, with the values of the common page.
func TestReplica(t *testing.T) {
	m, _, _ := run(t, scenarios["fleet"])
	all := scrape(t, m, -1)
	for i := range 3 {
		one := scrape(t, m, i)
		for name, f := range one {
			if strings.HasPrefix(name, "clifftop_") && name != "clifftop_replica_state" {
				continue
			}
			for _, s := range f.GetMetric() {
				if !slices.ContainsFunc(s.GetLabel(), func(l *dto.LabelPair) bool {
					return l.GetName() == "engine" && l.GetValue() == "0"
				}) {
					t.Errorf("%s of replica %d has labels %v", name, i, s.GetLabel())
				}
			}
			n, sum := total(f)
			if wantN, wantSum := total(all[name], "engine", fmt.Sprint(i)); n != wantN || sum != wantSum {
				t.Errorf("%s of replica %d is %v, %v, want %v, %v", name, i, n, sum, wantN, wantSum)
			}
		}
		if n, _ := total(one["vllm:request_success_total"]); n == 0 {
			t.Errorf("replica %d has no requests", i)
		}
	}
}

// buckets are the bounds of vLLM's histograms (vllm-project/vllm, vllm/v1/metrics/loggers.py at commit 005a810b, and
// later releases for the four whose names that commit does not have: inter_token_latency,
// request_time_per_output_token, request_prefill_kv_computed_tokens). Lengths is for those that depend on the model.
var facts = struct {
	gauges, counters []string
	first, token     []float64
	request          []float64
	iteration, n     []float64
}{
	gauges: []string{"num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "cache_config_info"},
	counters: []string{"prefix_cache_queries_total", "prefix_cache_hits_total", "num_preemptions_total",
		"prompt_tokens_total", "generation_tokens_total", "request_success_total"},
	first: []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640,
		2560},
	token: []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80},
	request: []float64{.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920,
		7680},
	iteration: []float64{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384},
	n:         []float64{1, 2, 5, 10, 20},
}

// TestNames holds names, types, labels and buckets to those of vLLM.
func TestNames(t *testing.T) {
	lengths := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}
	histograms := map[string][]float64{
		"time_to_first_token_seconds": facts.first, "inter_token_latency_seconds": facts.token,
		"request_time_per_output_token_seconds": facts.token, "e2e_request_latency_seconds": facts.request,
		"request_queue_time_seconds": facts.request, "request_inference_time_seconds": facts.request,
		"request_prefill_time_seconds": facts.request, "request_decode_time_seconds": facts.request,
		"request_prompt_tokens": lengths, "request_generation_tokens": lengths, "request_params_max_tokens": lengths,
		"request_max_num_generation_tokens": lengths, "request_prefill_kv_computed_tokens": lengths,
		"iteration_tokens_total": facts.iteration, "request_params_n": facts.n,
	}
	u := resolved(t, "engine: {max_model_len: 16384}\nrun: {requests: 10}")
	m := monitor.New(u, monitor.Options{Model: "a \"model\"\n\xff"})
	got := scrape(t, m, -1)
	for name, f := range got {
		short, ok := strings.CutPrefix(name, "vllm:")
		if !ok {
			continue
		}
		kind := dto.MetricType_GAUGE
		switch {
		case slices.Contains(facts.counters, short):
			kind = dto.MetricType_COUNTER
		case histograms[short] != nil:
			kind = dto.MetricType_HISTOGRAM
		case !slices.Contains(facts.gauges, short):
			t.Errorf("vLLM has no metric %s", name)
		}
		if f.GetType() != kind {
			t.Errorf("%s is a %v", name, f.GetType())
		}
		for _, s := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range s.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["engine"] != "0" || short != "cache_config_info" && labels["model_name"] != "a \"model\"\n\uFFFD" {
				t.Errorf("%s has the labels %v", name, labels)
			}
			var bounds []float64
			for _, b := range s.GetHistogram().GetBucket() {
				if !math.IsInf(b.GetUpperBound(), 1) {
					bounds = append(bounds, b.GetUpperBound())
				}
			}
			if kind == dto.MetricType_HISTOGRAM && !slices.Equal(bounds, histograms[short]) {
				t.Errorf("%s has the buckets %v, want %v", name, bounds, histograms[short])
			}
		}
	}
	for _, name := range slices.Concat(facts.gauges, facts.counters, slices.Collect(maps.Keys(histograms))) {
		if got["vllm:"+name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

// TestSGLang has the names of SGLang, with the values of the same requests.
func TestSGLang(t *testing.T) {
	m, exported, _ := run(t, "engine: {policy: sglang, num_gpu_blocks_override: 3000}\nworkload: {arrivals: "+
		"{process: poisson, rate: 12}, prefix: {groups: 4, prompts_per_group: 10, shared_tokens: 100}}\nrun: {requests: 200}")
	got := scrape(t, m, -1)
	var b bytes.Buffer
	if err := exported.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	vllm := parsed(t, &b)
	for name, as := range map[string]string{"prompt_tokens_total": "prompt_tokens_total",
		"generation_tokens_total": "generation_tokens_total", "num_requests_total": "request_success_total",
		"time_to_first_token_seconds": "time_to_first_token_seconds", "cached_tokens_total": "prefix_cache_hits_total",
		"inter_token_latency_seconds": "inter_token_latency_seconds", "queue_time_seconds": "request_queue_time_seconds",
		"e2e_request_latency_seconds": "e2e_request_latency_seconds", "num_running_reqs": "num_requests_running",
		"num_queue_reqs": "num_requests_waiting", "token_usage": "kv_cache_usage_perc"} {
		n, sum := total(got["sglang:"+name])
		if wantN, wantSum := total(vllm["vllm:"+as]); got["sglang:"+name] == nil || !near(n, wantN) || !near(sum, wantSum) {
			t.Errorf("%s is %v, %v, want %v, %v", name, n, sum, wantN, wantSum)
		}
	}
	if n, _ := total(got["sglang:max_total_num_tokens"]); n != 2999 {
		t.Errorf("the pool has %v tokens, want 2999", n)
	}
	for name := range got {
		if strings.HasPrefix(name, "vllm:") {
			t.Errorf("%s is there too", name)
		}
	}
}

// TestDashboard has every metric that the dashboard for Grafana asks for, with its labels.
func TestDashboard(t *testing.T) {
	query := regexp.MustCompile(`\b((?:vllm:|clifftop_|kube_)[a-z0-9_]+)(?:\{([^}]*)\})?`)
	label := regexp.MustCompile(`([a-z_]+)=~?"`)
	for _, name := range []string{"chat", "drafts", "fleet", "failures"} {
		m, exported, _ := run(t, scenarios[name])
		got := scrape(t, m, -1)
		var b bytes.Buffer
		if err := exported.WriteDashboard(&b, "test"); err != nil {
			t.Fatal(err)
		}
		var dashboard struct {
			Panels []struct{ Targets []struct{ Expr string } }
		}
		if err := json.Unmarshal(b.Bytes(), &dashboard); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for _, p := range dashboard.Panels {
			for _, target := range p.Targets {
				for _, found := range query.FindAllStringSubmatch(target.Expr, -1) {
					asked++
					family := got[found[1]]
					if family == nil { // a series of a histogram
						family = got[strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(found[1], "_bucket"), "_sum"), "_count")]
					}
					if len(family.GetMetric()) == 0 {
						t.Errorf("%s: /metrics lacks %s", name, found[1])
						continue
					}
					for _, want := range label.FindAllStringSubmatch(found[2], -1) {
						if !slices.ContainsFunc(family.GetMetric()[0].GetLabel(), func(l *dto.LabelPair) bool {
							return l.GetName() == want[1]
						}) {
							t.Errorf("%s: %s lacks the label %s", name, found[1], want[1])
						}
					}
				}
			}
		}
		if asked < 40 {
			t.Errorf("%s: the dashboard has %d queries", name, asked)
		}
	}
}

// TestDocs has every metric of Clifftop in the documentation.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	m, _, _ := run(t, scenarios["failures"])
	for name := range scrape(t, m, -1) {
		if strings.HasPrefix(name, "clifftop_") && !bytes.Contains(text, []byte("`"+name+"`")) {
			t.Errorf("docs/serve.md lacks %s", name)
		}
	}
}

// TestParams counts what the API says of requests.
func TestParams(t *testing.T) {
	u := resolved(t, "workload: {arrivals: {process: poisson, rate: 12}}\nrun: {requests: 50}")
	m := monitor.New(u, monitor.Options{})
	for id := range int64(50) {
		m.Expect(id, monitor.Params{N: 1 + int(id%2), MaxTokens: 100, Limited: id < 20})
	}
	if _, err := experiments.RunSetup(context.Background(), u, experiments.RunOptions{
		Observers: []event.Observer{m.Observer()}}); err != nil {
		t.Fatal(err)
	}
	m.Expect(3, monitor.Params{N: 9}) // has ended: it is not kept
	got := scrape(t, m, -1)
	if n, _ := total(got["vllm:request_success_total"], "finished_reason", "length"); n != 20 {
		t.Errorf("%v outputs end at the limit, want 20", n)
	}
	if n, sum := total(got["vllm:request_params_n"]); n != 50 || sum != 75 {
		t.Errorf("n is counted %v times with the sum %v, want 50 and 75", n, sum)
	}
	if n, sum := total(got["vllm:request_params_max_tokens"]); n != 50 || sum != 5000 {
		t.Errorf("max_tokens is counted %v times with the sum %v, want 50 and 5000", n, sum)
	}
}

// behind is a driver that is late.
type behind struct{ lag time.Duration }

func (b *behind) Now() clock.Time        { return clock.Time(3 * clock.Second) }
func (b *behind) Lag() time.Duration     { return b.lag }
func (b *behind) PeakLag() time.Duration { return b.lag }

// TestLag warns of a lag, once in ten seconds, and has it in the metrics.
func TestLag(t *testing.T) {
	var warnings []string
	m := monitor.New(resolved(t, "run: {requests: 1}"), monitor.Options{Speed: 4, Log: func(text string) {
		warnings = append(warnings, text)
	}})
	d := &behind{lag: 120 * time.Millisecond}
	m.Follow(d)
	ctx, stop := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer stop()
	m.Run(ctx)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "up to 120 ms") {
		t.Errorf("the warnings are %q", warnings)
	}
	got := scrape(t, m, -1)
	for name, want := range map[string]float64{"clifftop_lag_seconds": 0.12, "clifftop_lag_max_seconds": 0.12,
		"clifftop_speed": 4, "clifftop_simulated_seconds": 3} {
		if v, _ := total(got[name]); v != want {
			t.Errorf("%s is %v, want %v", name, v, want)
		}
	}
	if n, _ := total(got["clifftop_late_total"]); n < 1 {
		t.Error("no late check is counted")
	}
	if help := got["vllm:time_to_first_token_seconds"].GetHelp(); !strings.Contains(help, "4 times as fast") {
		t.Errorf("the help of a time is %q", help)
	}
}
