package validation

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"clifftop/internal/duplicate"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/collect"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// bench is what vllm bench serve --save-result writes. What is not needed is left out, and the lists are
// there with --save-detailed only.
type bench struct {
	Backend        string          `json:"backend"`
	Model          string          `json:"model_id"`
	Rate           json.RawMessage `json:"request_rate"` // a number, or "inf"
	Burstiness     *float64        `json:"burstiness"`
	MaxConcurrency *float64        `json:"max_concurrency"`
	RampUp         *string         `json:"ramp_up_strategy"`

	Prompts      *float64 `json:"num_prompts"`
	Duration     *float64 `json:"duration"`
	Completed    *float64 `json:"completed"`
	Failed       *float64 `json:"failed"`
	InputTokens  *float64 `json:"total_input_tokens"`
	OutputTokens *float64 `json:"total_output_tokens"`

	RequestThroughput *float64 `json:"request_throughput"`
	OutputThroughput  *float64 `json:"output_throughput"`

	InputLens  []float64 `json:"input_lens"`
	OutputLens []float64 `json:"output_lens"` // 0 for requests that failed
	StartTimes []float64 `json:"start_times"` // seconds
}

// IsBench tells a result of vllm bench serve from a table.
func IsBench(data []byte) bool {
	return strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), 512)]), " \t\r\n\ufeff"), "{")
}

// ReadBench reads a result of vllm bench serve --save-result as a reference of one row, and makes its case: the
// scenario says what the result does not, such as the GPU. The result fills in the model, the arrivals, the lengths and
// the number of requests, each unless the scenario gives it.
func ReadBench(path string, data []byte, scenario *scenario.Scenario) (*Reference, *Case, error) {
	var b bench
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, nil, readFault(path, fmt.Sprintf("this is no result of vllm bench serve: %v", err))
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return nil, nil, readFault(path, fmt.Sprintf("this is no result of vllm bench serve: %v", err))
	}
	if key, line, twice := duplicate.Key(data); twice {
		return nil, nil, readFault(path, fmt.Sprintf("line %d: %.40q is given twice (want each key once)", line, key))
	}
	row, err := b.row(strings.TrimSuffix(filepath.Base(path), ".json"), all)
	if err != nil {
		return nil, nil, readFault(path, err.Error())
	}
	c := &Case{Rows: []*Row{row}, ranks: 1}
	settings, err := b.settings(c, scenario)
	if err != nil {
		return nil, nil, readFault(path, err.Error())
	}
	s, err := scenario.With(settings...)
	if err != nil {
		return nil, nil, err
	}
	c.scenario = s
	if c.setup, err = s.Resolve(); err != nil {
		return nil, nil, err
	}
	row.Engine, row.GPU = s.Engine.Policy, c.setup.Deployment.GPU.Name
	row.TP = given(c.setup.Deployment.TensorParallel)
	c.setup.Report.Stages = []collect.StageSpan{{Name: "all", End: never}}
	if !scenario.Given("workload.arrivals") && !scenario.Given("workload.input") &&
		!scenario.Given("workload.output") && !row.Closed() {
		c.list = b.requests()
	}
	return &Reference{Name: filepath.Base(path), Rows: []*Row{row}}, c, nil
}

// row is the measured side.
func (b *bench) row(id string, all map[string]json.RawMessage) (*Row, error) {
	rate, err := b.rate()
	if err != nil {
		return nil, err
	}
	row := &Row{Line: 1, ID: id, Source: "vllm bench serve", Model: b.Model, LoadMode: "open", Rate: rate,
		InputMean: b.per(b.InputTokens), OutputNominal: b.per(b.OutputTokens),
		OutputMeanReported: b.per(b.OutputTokens),
		RequestsPerS:       b.RequestThroughput, OutputTokensPerS: b.OutputThroughput, DurationS: b.Duration}
	if row.Rate == nil && b.MaxConcurrency != nil {
		row.LoadMode, row.Concurrency = "closed", given(int(*b.MaxConcurrency))
	}
	if b.Prompts != nil {
		row.Requests = given(int(*b.Prompts))
	}
	for _, k := range []struct {
		name string
		to   *Latency
	}{{"ttft", &row.TTFT}, {"tpot", &row.TPOT}, {"itl", &row.ITL}, {"e2el", &row.E2E}} {
		for _, s := range []struct {
			name string
			to   **float64
		}{{"mean", &k.to.Mean}, {"median", &k.to.P50}, {"p50", &k.to.P50}, {"p90", &k.to.P90}, {"p95", &k.to.P95},
			{"p99", &k.to.P99}} {
			text, ok := all[s.name+"_"+k.name+"_ms"]
			if !ok || string(text) == "null" {
				continue
			}
			x, err := strconv.ParseFloat(string(text), 64)
			if err != nil || !(x >= 0) || math.IsInf(x, 0) {
				return nil, fmt.Errorf("%s_%s_ms: %s is not allowed (want a number, 0 or more)", s.name, k.name,
					yamldoc.Short(string(text)))
			}
			*s.to = &x
		}
	}
	if row.TTFT.Mean == nil && row.TPOT.Mean == nil && row.E2E.Mean == nil {
		return nil, fmt.Errorf("no mean_ttft_ms, mean_tpot_ms or mean_e2el_ms (want what vllm bench serve --save-result " +
			"writes)")
	}
	return row, nil
}

// rate is the requests per second; nil for as many as can be, as where it is not given.
func (b *bench) rate() (*float64, error) {
	text := strings.Trim(string(b.Rate), `"`)
	if text == "" || text == "null" {
		return nil, nil
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(x > 0):
		return nil, fmt.Errorf("request_rate: %s is not allowed (want a number above 0, or \"inf\")",
			yamldoc.Short(string(b.Rate)))
	case math.IsInf(x, 1):
		return nil, nil
	}
	return &x, nil
}

// per is a total by completed requests.
func (b *bench) per(total *float64) *float64 {
	if total == nil || or(b.Completed, 0) < 1 {
		return nil
	}
	x := *total / *b.Completed
	return &x
}

// settings fills in what the scenario leaves open.
func (b *bench) settings(c *Case, s *scenario.Scenario) ([]scenario.Setting, error) {
	var list []scenario.Setting
	fill := func(key, format string, args ...any) {
		if !s.Given(key) {
			list = append(list, scenario.Setting{Key: key, Value: fmt.Sprintf(format, args...),
				Flag: "the benchmark's result"})
		}
	}
	if b.Model != "" {
		fill("model", "%q", b.Model)
	}
	if !s.Given("workload.trace") {
		if err := b.traffic(c, s, fill); err != nil {
			return nil, err
		}
	}
	fill("run.warmup", "none")
	return list, nil
}

// traffic fills in arrivals and lengths.
func (b *bench) traffic(c *Case, s *scenario.Scenario, fill func(string, string, ...any)) error {
	if b.RampUp != nil && *b.RampUp != "" {
		c.note("the rate ramped up; simulated at the rate given")
	}
	rate, burst := c.Rows[0].Rate, or(b.Burstiness, 1)
	switch {
	case rate == nil && b.MaxConcurrency != nil:
		fill("workload.arrivals", "{process: closed, users: %d}", int(*b.MaxConcurrency))
	case rate == nil:
		fill("workload.arrivals", "{process: all-at-once}")
	case burst > 0 && burst != 1 && !math.IsInf(burst, 0):
		fill("workload.arrivals", "{process: gamma, rate: %g, cv: %g}", *rate, 1/math.Sqrt(burst))
	default:
		fill("workload.arrivals", "{process: poisson, rate: %g}", *rate)
	}
	if rate != nil && b.MaxConcurrency != nil {
		c.note("max_concurrency beside a rate is not simulated")
	}
	for _, l := range []struct {
		key  string
		lens []float64
		mean *float64
	}{{"workload.input", b.InputLens, b.per(b.InputTokens)}, {"workload.output", b.OutputLens, b.per(b.OutputTokens)}} {
		if s.Given(l.key) {
			continue
		}
		lens := slices.DeleteFunc(slices.Clone(l.lens), func(x float64) bool { return !(x >= 1 && x <= mostTokens) })
		switch {
		case len(lens) > 1:
			fill(l.key, "%s", quantiles(lens))
		case l.mean == nil || *l.mean < 1:
			return fmt.Errorf("completed, total_input_tokens and total_output_tokens do not tell the lengths (want them, or " +
				"workload.input and workload.output in the scenario)")
		default:
			fill(l.key, "{distribution: fixed, value: %.0f}", *l.mean)
			c.note("%s lengths are all taken as the mean; --save-detailed records them",
				strings.TrimPrefix(l.key, "workload."))
		}
	}
	if b.Prompts != nil && *b.Prompts >= 1 {
		fill("run.requests", "%d", int(*b.Prompts))
	}
	return nil
}

// quantiles is the law of recorded lengths.
func quantiles(lens []float64) string {
	slices.Sort(lens)
	const parts = 100
	var p, q []string
	for i := range parts + 1 {
		at := float64(i) / parts * float64(len(lens)-1)
		low := int(at)
		v := lens[low]
		if low+1 < len(lens) {
			v += (at - float64(low)) * (lens[low+1] - v)
		}
		p, q = append(p, strconv.FormatFloat(float64(i)/parts, 'g', -1, 64)),
			append(q, strconv.FormatFloat(v, 'f', 2, 64))
	}
	return fmt.Sprintf("{distribution: quantiles, p: [%s], q: [%s]}", strings.Join(p, ", "), strings.Join(q, ", "))
}

// requests are the recorded ones with their times; none where the lists are missing.
func (b *bench) requests() []workload.Request {
	n := len(b.StartTimes)
	if n == 0 || len(b.InputLens) != n || len(b.OutputLens) != n {
		return nil
	}
	start := slices.Min(b.StartTimes)
	var list []recorded
	for i := range n {
		if b.StartTimes[i]-start > clock.MaxRun.Seconds() || b.InputLens[i] > mostTokens ||
			b.OutputLens[i] > mostTokens {
			return nil
		}
		q := recorded{arrival: b.StartTimes[i] - start, input: int(b.InputLens[i]), output: int(b.OutputLens[i]),
			failed: b.OutputLens[i] < 1}
		list = append(list, q)
	}
	out, err := replay{}.requests(list)
	if err != nil {
		return nil
	}
	return out
}
