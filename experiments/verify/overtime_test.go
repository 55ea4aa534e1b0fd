package verify_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"clifftop/experiments"
	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/experiments/verify"
	"clifftop/report"
)

const overTimeScenario = `model: llama-3.1-8b
gpu: h100
engine: {max_num_seqs: 21}
workload: {arrivals: {process: poisson, rate: 9}, input: 1800, output: 300, prefix: {groups: 4, prompts_per_group: 5, shared_tokens: 1000}}
run: {duration: 240s, warmup: none}
`

// simulatedSeries is the state over time of a machine.
func simulatedSeries(t *testing.T, yaml string) *experiments.Result {
	t.Helper()
	s, err := scenario.Parse("machine.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	r, err := experiments.Run(context.Background(), s, experiments.RunOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// around is the mean of a number of the state in a period around a time; 0 before the start of the traffic.
func around(series []report.SeriesPoint, at, period float64, of func(*report.SeriesPoint) float64) float64 {
	sum := 0.0
	for i := range series {
		p := &series[i]
		sum += max(0, min(p.EndS, at+period/2)-max(p.StartS, at-period/2)) * of(p)
	}
	return sum / period
}

func running(p *report.SeriesPoint) float64 { return p.RunningMean }
func waiting(p *report.SeriesPoint) float64 { return p.QueueMean }
func kvUse(p *report.SeriesPoint) float64   { return *p.KVUsageMean }

// vllmLog writes the lines that vLLM would log of a run whose traffic starts some seconds after the first line.
func vllmLog(r *experiments.Result, start float64) string {
	const period = 10
	var b strings.Builder
	first := time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	for i := 0; float64(i*period)-start+period/2 < 240; i++ {
		at := float64(i*period) - start
		clock := first.Add(time.Duration(i) * period * time.Second).Format("01-02 15:04:05")
		fmt.Fprintf(&b, "INFO %s [loggers.py:259] Engine 000: Avg prompt throughput: 9.0 tokens/s, Avg generation "+
			"throughput: 9.0 tokens/s, Running: %.0f reqs, Waiting: %.0f reqs, GPU KV cache usage: %.1f%%, Prefix cache "+
			"hit rate: %.1f%%\n", clock, around(r.Series, at, period, running), around(r.Series, at, period, waiting),
			100*around(r.Series, at, period, kvUse), 100**r.Summary.System.PrefixHitRate)
	}
	return b.String()
}

// prometheusRange writes the answer of Prometheus about the same run.
func prometheusRange(t *testing.T, r *experiments.Result, start float64) string {
	t.Helper()
	const period = 15
	var results []map[string]any
	for _, m := range []struct {
		name string
		of   func(*report.SeriesPoint) float64
	}{{"vllm:num_requests_running", running}, {"vllm:num_requests_waiting", waiting},
		{"vllm:kv_cache_usage_perc", kvUse}} {
		var values []any
		for i := 0; float64(i*period)-start+period/2 < 240; i++ {
			x := around(r.Series, float64(i*period)-start, period, m.of)
			values = append(values, []any{1772000000 + i*period, strconv.FormatFloat(x, 'g', -1, 64)})
		}
		results = append(results, map[string]any{"metric": map[string]string{"__name__": m.name}, "values": values})
	}
	data, err := json.Marshal(map[string]any{"status": "success", "data": map[string]any{"result": results}})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// verified holds a scenario against a file.
func verified(t *testing.T, yaml, name, text string) *verify.Result {
	t.Helper()
	m, err := measured.Read(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := verify.New(context.Background(), promise(t, yaml), []*measured.Result{m}, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// curves are the differences of a run over time by quantity.
func curves(t *testing.T, r *verify.Result) map[string]*verify.Curve {
	t.Helper()
	o := r.Runs[0].OverTime
	if o == nil {
		t.Fatal("nothing over time")
	}
	list := map[string]*verify.Curve{}
	for i := range o.Series {
		list[o.Series[i].Name] = &o.Series[i]
	}
	return list
}

// TestOverTime recovers the start of the traffic and the series of the same simulation, from a log with whole requests
// and from Prometheus, and shows the difference of a smaller machine.
func TestOverTime(t *testing.T) {
	const start = 23.5
	truth := simulatedSeries(t, overTimeScenario)
	for _, c := range []struct {
		name, text string
		most       float64 // difference by rounding, and by the steps of the start
	}{{"vllm.log", vllmLog(truth, start), 0.5}, {"range.json", prometheusRange(t, truth, start), 0.2}} {
		same := verified(t, overTimeScenario, c.name, c.text)
		if at := same.Runs[0].OverTime.StartS; math.Abs(at-start) > 0.75 {
			t.Errorf("%s: the traffic starts at %v s, want %v", c.name, at, start)
		}
		found := curves(t, same)
		for _, name := range []string{"running_requests", "waiting_requests"} {
			if found[name] == nil || found[name].Difference > c.most || found[name].Chance < found[name].Difference {
				t.Errorf("%s: %s %+v", c.name, name, found[name])
			}
		}
		if k := found["kv_usage"]; k == nil || k.Difference > 0.002 || k.Mean < 0.03 {
			t.Errorf("%s: %+v", c.name, k)
		}
		if h := found["gpu_hit_rate"]; c.name == "vllm.log" && (h == nil || h.Difference > 0.02 || h.Mean < 0.5) {
			t.Errorf("%s: %+v", c.name, h)
		}
		other := curves(t, verified(t, overTimeScenario+"deployment: {kv_cache_dtype: fp8}\n", c.name, c.text))
		if k := other["kv_usage"]; k.Difference < 0.3*k.Mean {
			t.Errorf("%s: with half the bytes: %v of %v", c.name, k.Difference, k.Mean)
		}
		var b strings.Builder
		if err := same.WriteTable(&b); err != nil || !strings.Contains(b.String(), "\nOver time, in ") {
			t.Errorf("%v in\n%s", err, b.String())
		}
		var svg strings.Builder
		if err := same.Picture().WriteSVG(&svg); err != nil || !strings.Contains(svg.String(), "waiting requests") {
			t.Errorf("%v: the picture lacks the waiting requests", err)
		}
	}
}

// TestLogBesideResult takes the traffic of a log from the result of the load generator of the same run.
func TestLogBesideResult(t *testing.T) {
	machine := "model: llama-3.1-8b\ngpu: h100\nworkload: {arrivals: {process: poisson, rate: 9}, input: 1800, output: 300}\n" +
		"run: {duration: 240s, warmup: none}\n"
	truth := simulatedSeries(t, machine)
	bench, err := json.Marshal(truth.VLLMBench())
	if err != nil {
		t.Fatal(err)
	}
	results, err := measured.ReadAll([]measured.Named{{Name: "vllm.log", Data: []byte(vllmLog(truth, 23.5))},
		{Name: "bench.json", Data: bench}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := verify.New(context.Background(), promise(t, "model: llama-3.1-8b\ngpu: h100\n"), results, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if c := curves(t, r)["running_requests"]; c.Difference > 0.6 || c.Mean < 10 {
		t.Errorf("%v of %v", c.Difference, c.Mean)
	}
	if len(r.Runs) != 2 || !slices.Contains(r.Runs[0].Notes, "the traffic is that of bench.json") {
		t.Errorf("%d runs, notes %q", len(r.Runs), r.Runs[0].Notes)
	}
	if results[0].Runs[0].Load.Rate != nil {
		t.Error("the result itself was changed")
	}
	_, err = verify.New(context.Background(), promise(t, "model: llama-3.1-8b"), results[:1], verify.Options{})
	if err == nil || !strings.Contains(err.Error(), "the file does not tell the traffic") {
		t.Errorf("a log alone: %v", err)
	}
}

// TestOverTimeOfFewSamples compares nothing over time.
func TestOverTimeOfFewSamples(t *testing.T) {
	log := strings.Join(strings.SplitAfter(vllmLog(simulatedSeries(t, overTimeScenario), 3), "\n")[:2], "")
	if r := verified(t, overTimeScenario, "short.log", log); r.Runs[0].OverTime != nil {
		t.Errorf("%+v of two samples", r.Runs[0].OverTime)
	}
}
