package validation

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/model"
	"clifftop/report/collect"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// IsResult reports whether a file is a result of a load generator, and not a table of measured runs.
func IsResult(name string, data []byte) bool {
	if _, ok := measured.Recognise(name, data); ok {
		return true
	}
	return strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), 512)]), " \t\r\n\ufeff"), "{")
}

// ReadResult reads a result of a load generator as a reference with a row for each of its runs, and makes their cases.
// The scenario says what the result does not, such as the GPU.
func ReadResult(path string, data []byte, s *scenario.Scenario) (*Reference, []*Case, error) {
	result, err := measured.Read(path, data)
	if err != nil {
		return nil, nil, err
	}
	ref := &Reference{Name: filepath.Base(path)}
	var cases []*Case
	for i := range result.Runs {
		c, err := FromRun(result, &result.Runs[i], s)
		if err != nil {
			return nil, nil, err
		}
		for _, n := range result.Notes {
			c.note("%s", n)
		}
		ref.Rows, cases = append(ref.Rows, c.Rows...), append(cases, c)
	}
	return ref, cases, nil
}

// FromRun makes the case of a measured run: the scenario with the traffic of the run. The run fills in the model, the
// arrivals, the lengths and the number of requests, each unless the scenario gives it. Where it has single requests of
// an open loop with their times, these are replayed.
func FromRun(result *measured.Result, run *measured.Run, given *scenario.Scenario) (*Case, error) {
	row := rowOf(result, run)
	if row.TTFT.Mean == nil && row.TPOT.Mean == nil && row.E2E.Mean == nil && len(run.Series) == 0 &&
		throughput(row) == nil {
		return nil, readFault(result.File, fmt.Sprintf("no mean TTFT, TPOT or E2E latency in this result of %s (want "+
			"one, such as mean_ttft_ms)", result.Tool))
	}
	c := &Case{Rows: []*Row{row}, ranks: 1}
	settings, err := settingsOf(c, run, given)
	if err != nil {
		return nil, readFault(result.File, err.Error())
	}
	s, err := given.With(settings...)
	if err != nil {
		return nil, err
	}
	c.scenario = s
	if c.setup, err = s.Resolve(); err != nil {
		return nil, err
	}
	row.Engine, row.GPU = s.Engine.Policy, c.setup.Pools[0].Deployment.GPU.Name
	row.TP = whole(c.setup.Pools[0].Deployment.TensorParallel)
	if row.Model == "" {
		row.Model = c.setup.Pools[0].Deployment.LLM.Name
	}
	c.setup = c.setup.Staged([]collect.StageSpan{{Name: "all", End: never}})
	if !given.Given("workload.arrivals") && !given.Given("workload.input") && !given.Given("workload.output") &&
		!given.Given("workload.trace") && !row.Closed() {
		c.list = requestsOf(run)
	}
	if c.list != nil {
		c.Notes = slices.DeleteFunc(c.Notes, func(n string) bool { return n == asPoisson })
	}
	return c, nil
}

func whole(n int) *int { return &n }

func rowOf(result *measured.Result, run *measured.Run) *Row {
	id := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(result.File), ".gz"), ".json")
	if len(result.Runs) > 1 {
		id += ", " + run.Name
	}
	row := &Row{Line: 1, ID: id, Source: result.Tool, Model: run.Model, LoadMode: "open", Rate: run.Load.Rate,
		InputMean: run.Input.Mean, OutputNominal: run.Output.Mean, OutputMeanReported: run.Output.Mean,
		RequestsPerS: run.RequestsPerS, OutputTokensPerS: run.OutputTokensPerS}
	if d := run.Duration.Seconds(); d > 0 {
		row.DurationS = &d
	}
	if row.Rate == nil && run.Load.Concurrency != nil {
		row.LoadMode, row.Concurrency = "closed", run.Load.Concurrency
	}
	row.Requests, row.Failed = run.Sent, run.Failed
	row.State, row.Offload.GPUHitRate = stateOf(measured.Busy(run.Series))
	row.Power.Avg = run.GPUWatts
	for _, k := range []struct {
		from *measured.Statistics
		to   *Latency
	}{{&run.TTFT, &row.TTFT}, {&run.TPOT, &row.TPOT}, {&run.ITL, &row.ITL}, {&run.E2E, &row.E2E}} {
		*k.to = Latency{Mean: k.from.Mean, P50: k.from.P50, P90: k.from.P90, P95: k.from.P95, P99: k.from.P99}
	}
	return row
}

// stateOf is the mean of the samples of each replica: summed over the replicas for requests, and their average for
// shares.
func stateOf(series []measured.Sample) (s State, hits *float64) {
	means := func(of func(*measured.Sample) *float64) (sum, average *float64) {
		totals, counts := map[string]float64{}, map[string]int{}
		for i := range series {
			if x := of(&series[i]); x != nil {
				totals[series[i].Replica] += *x
				counts[series[i].Replica]++
			}
		}
		if len(totals) == 0 {
			return nil, nil
		}
		all := 0.0
		for _, name := range slices.Sorted(maps.Keys(totals)) {
			all += totals[name] / float64(counts[name])
		}
		each := all / float64(len(totals))
		return &all, &each
	}
	s.Running, _ = means(func(x *measured.Sample) *float64 { return x.Running })
	s.Waiting, _ = means(func(x *measured.Sample) *float64 { return x.Waiting })
	_, s.KVUsage = means(func(x *measured.Sample) *float64 { return x.KVUse })
	_, hits = means(func(x *measured.Sample) *float64 { return x.HitRate })
	return s, hits
}

// Varied is the case with other settings of the scenario and, if change is not nil, other constants of the GPU.
func (c *Case) Varied(change func(*model.GPU), settings ...scenario.Setting) (*Case, error) {
	return c.without(part{Name: "variation", settings: settings, gpu: change})
}

// Drawn reports whether arrivals or lengths are drawn, and not those of requests that were recorded.
func (c *Case) Drawn() bool {
	return c.list == nil && c.sessions == nil && c.setup != nil && c.setup.Traffic.Recording == nil
}

// settingsOf returns settings for keys that the scenario does not give.
func settingsOf(c *Case, run *measured.Run, s *scenario.Scenario) ([]scenario.Setting, error) {
	var list []scenario.Setting
	fill := func(key, format string, args ...any) {
		if !s.Given(key) {
			list = append(list, scenario.Setting{Key: key, Value: fmt.Sprintf(format, args...),
				Flag: "the benchmark's result"})
		}
	}
	if run.Model != "" {
		fill("model", "%q", run.Model)
	}
	if !s.Given("workload.trace") {
		if err := trafficOf(c, run, s, fill); err != nil {
			return nil, err
		}
	}
	if seconds := busySeconds(run.Series); seconds > 0 && run.Sent == nil && !s.Given("run.requests") &&
		!s.Given("workload.trace") {
		fill("run.duration", "%gs", seconds)
	}
	fill("run.warmup", "none")
	return list, nil
}

// busySeconds returns how long requests were in the engine: from the sample before the first one with a request.
func busySeconds(series []measured.Sample) float64 {
	busy := measured.Busy(series)
	if len(busy) < 2 {
		return 0
	}
	span := busy[len(busy)-1].At - busy[0].At
	step := span / time.Duration(len(busy)-1)
	return (span + step).Round(time.Millisecond).Seconds()
}

// asPoisson says that the arrivals are not known.
const asPoisson = "the result does not say how requests were sent; simulated as Poisson at the rate of completed " +
	"requests"

// trafficOf fills in arrivals and lengths.
func trafficOf(c *Case, run *measured.Run, s *scenario.Scenario, fill func(string, string, ...any)) error {
	load, burst := run.Load, or(run.Load.Burstiness, 1)
	if load == (measured.Load{}) && run.RequestsPerS == nil && len(run.Requests) == 0 {
		if s.Given("workload.arrivals") || s.Given("workload.preset") || s.Given("workload.classes") {
			return nil // the scenario has the traffic that the engine's metrics do not tell
		}
		return fmt.Errorf("the file does not tell the traffic (want the load generator's result beside it, or " +
			"workload in the scenario)")
	}
	switch {
	case load.Rate == nil && load.Concurrency != nil:
		fill("workload.arrivals", "{process: closed, users: %d}", max(*load.Concurrency, 1))
	case load.Rate == nil && load.AtOnce:
		fill("workload.arrivals", "{process: all-at-once}")
	case load.Rate == nil && or(run.RequestsPerS, 0) > 0:
		fill("workload.arrivals", "{process: poisson, rate: %g}", *run.RequestsPerS)
		c.note(asPoisson)
	case load.Rate == nil:
		fill("workload.arrivals", "{process: all-at-once}")
	case load.Constant:
		fill("workload.arrivals", "{process: constant, rate: %g}", *load.Rate)
	case burst > 0 && burst != 1 && !math.IsInf(burst, 0):
		fill("workload.arrivals", "{process: gamma, rate: %g, cv: %g}", *load.Rate, 1/math.Sqrt(burst))
	default:
		fill("workload.arrivals", "{process: poisson, rate: %g}", *load.Rate)
	}
	if load.Rate != nil && load.Concurrency != nil {
		c.note("max_concurrency beside a rate is not simulated")
	}
	for _, l := range []struct {
		key    string
		of     func(measured.Request) int
		totals measured.Statistics
	}{{"workload.input", func(q measured.Request) int { return q.Input }, run.Input.Statistics},
		{"workload.output", func(q measured.Request) int { return q.Output }, run.Output.Statistics}} {
		if s.Given(l.key) {
			continue
		}
		var lens []float64
		for _, q := range run.Requests {
			if x := l.of(q); x >= 1 && x <= mostTokens {
				lens = append(lens, float64(x))
			}
		}
		mean := l.totals.Mean
		switch std := or(l.totals.Std, 0); {
		case len(lens) > 1:
			fill(l.key, "%s", quantiles(lens))
		case mean == nil || *mean < 1:
			return fmt.Errorf("the result does not tell the lengths of prompts and outputs (want them in the result, " +
				"or workload.input and workload.output in the scenario)")
		case std > 0:
			fill(l.key, "{distribution: lognormal, mean: %g, cv: %g}", *mean, min(std / *mean, 100))
			c.note("%s lengths are lognormal with the measured mean and standard deviation",
				strings.TrimPrefix(l.key, "workload."))
		default:
			fill(l.key, "{distribution: fixed, value: %.0f}", *mean)
			hint := ""
			if c.Rows[0].Source == "vllm-bench" {
				hint = "; --save-detailed records them"
			}
			c.note("%s lengths are all taken as the mean%s", strings.TrimPrefix(l.key, "workload."), hint)
		}
	}
	if run.Sent != nil && *run.Sent >= 1 {
		fill("run.requests", "%d", *run.Sent)
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

// requestsOf are the recorded ones with their times; none where those are missing.
func requestsOf(run *measured.Run) []workload.Request {
	if len(run.Trace) > 0 {
		return run.Trace
	}
	var list []recorded
	for _, q := range run.Requests {
		if !q.Timed || q.Arrival.Seconds() > clock.MaxRun.Seconds() || q.Input > mostTokens || q.Output > mostTokens {
			return nil
		}
		list = append(list, recorded{arrival: q.Arrival.Seconds(), input: q.Input, output: q.Output,
			failed: q.Failed || q.Output < 1})
	}
	if len(list) == 0 {
		return nil
	}
	out, err := replay{}.requests(list)
	if err != nil {
		return nil
	}
	return out
}
