package verify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"clifftop/experiments/scenario"
	"clifftop/experiments/validation"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/report/layout"
)

// Cause is a change of one knob or constant that would explain the measured run.
type Cause struct {
	// Key is the key of the scenario, or the constant of the machine.
	Key string `json:"key"`
	// From is the value that was simulated, To the one that explains the measurement.
	From string `json:"from"`
	To   string `json:"to"`
	// Explains is the part of the deviation that it removes, from 0 to 1: of the sum of the squares of the metrics'
	// deviations in units of their bars.
	Explains float64 `json:"explains"`
	// Inside says that all metrics are then within their bars.
	Inside bool `json:"inside"`
	// Likely says how likely such a value is: likely, possible or unlikely.
	Likely string `json:"likely"`
	// Why says where the knob is set, or what the constant stands for.
	Why string `json:"why"`
}

// trial is a change to try.
type trial struct {
	cause    Cause
	settings []scenario.Setting
	change   func(*model.GPU)
	x        float64 // of a constant, in units of its spread
}

const (
	mostCauses = 6   // that are reported
	leastShare = 0.3 // of the deviation, below which a change explains nothing
)

// causes tries one change at a time and returns those that explain the run.
func causes(ctx context.Context, c *validation.Case, run *Run, o Options) ([]Cause, error) {
	before := deviation(run.Metrics)
	if before == 0 {
		return []Cause{}, nil
	}
	found := []Cause{}
	try := func(t *trial) (metrics []Metric, err error) {
		varied, err := c.Varied(t.change, t.settings...)
		if err != nil {
			return nil, nil // the change is not possible here
		}
		report, err := simulated(ctx, varied, Options{Jobs: o.Jobs})
		if err != nil {
			return nil, err
		}
		return moved(run.Metrics, report.Rows[0].Metrics), nil
	}
	keep := func(t *trial, metrics []Metric) {
		if metrics == nil {
			return
		}
		t.cause.Explains = 1 - deviation(metrics)/before
		t.cause.Inside = !slices.ContainsFunc(metrics, func(m Metric) bool { return m.Verdict == Outside })
		if t.cause.Explains >= leastShare {
			found = append(found, t.cause)
		}
	}
	for _, t := range knobs(c.Setup()) {
		metrics, err := try(&t)
		if err != nil {
			return nil, err
		}
		keep(&t, metrics)
	}
	for _, k := range constants() {
		t, metrics, err := solve(k, c.Setup(), run.Metrics, try)
		if err != nil {
			return nil, err
		}
		if t != nil {
			keep(t, metrics)
		}
	}
	slices.SortStableFunc(found, func(a, b Cause) int {
		if a.Inside != b.Inside {
			return map[bool]int{true: -1, false: 1}[a.Inside]
		}
		return cmp.Or(cmp.Compare(rank(a.Likely), rank(b.Likely)), cmp.Compare(b.Explains, a.Explains))
	})
	return found[:min(len(found), mostCauses)], nil
}

func rank(likely string) int { return slices.Index([]string{"likely", "possible", "unlikely"}, likely) }

// deviation is the sum of the squares of the differences of the judged metrics, each in units of the bar for 90 % on
// its side.
func deviation(metrics []Metric) float64 {
	sum := 0.0
	for _, m := range metrics {
		if z := deviate(m); !math.IsNaN(z) {
			sum += z * z
		}
	}
	return sum
}

// deviate is the difference of a metric in units of its bar, on logarithms; NaN if it is not judged.
func deviate(m Metric) float64 {
	if m.P90 == nil || m.Difference == nil || *m.Difference <= -1 {
		return math.NaN()
	}
	const least = 0.02 // the width of a bar that is all on the other side
	x := math.Log1p(*m.Difference)
	bar := math.Log1p(m.P90[1])
	if x < 0 {
		bar = -math.Log1p(m.P90[0])
	}
	return x / math.Max(bar, least)
}

// moved are the metrics of a run with other simulated values.
func moved(metrics []Metric, now []validation.Comparison) []Metric {
	out := slices.Clone(metrics)
	for i := range out {
		m := &out[i]
		if m.P90 == nil {
			continue
		}
		for _, x := range now {
			if x.Metric != m.Name || x.Simulated == nil || *x.Simulated == 0 {
				continue
			}
			d := *m.Measured / *x.Simulated - 1
			m.Simulated, m.Difference, m.Verdict = x.Simulated, &d, Within
			if d < m.P90[0] || d > m.P90[1] {
				m.Verdict = Outside
			}
		}
	}
	return out
}

// knobs are the settings that people forget, with other values than the scenario has.
func knobs(u *scenario.Setup) (list []trial) {
	e, d := &u.Scenario.Engine, u.Pools[0].Deployment
	add := func(likely, key, from, to, why string, more ...scenario.Setting) {
		if from == to {
			return
		}
		sets := append([]scenario.Setting{{Key: key, Value: to, Flag: "verify"}}, more...)
		list = append(list, trial{cause: Cause{Key: key, From: from, To: to, Likely: likely, Why: why}, settings: sets})
	}
	onOff := func(key string, on bool, why string) {
		add("likely", key, strconv.FormatBool(on), strconv.FormatBool(!on), why)
	}
	onOff("engine.enable_prefix_caching", e.EnablePrefixCaching, "a flag of the launch line")
	onOff("engine.async_scheduling", e.AsyncScheduling == scenario.On, "a flag of the launch line, and the release")
	onOff("engine.enable_chunked_prefill", e.EnableChunkedPrefill, "a flag of the launch line")
	for _, kv := range []string{"bf16", "fp8"} {
		add("likely", "deployment.kv_cache_dtype", d.KVDtype.String(), kv, "a flag of the launch line")
	}
	for _, dtype := range []string{"bf16", "fp8", "int4"} {
		add("possible", "deployment.dtype", d.Dtype.String(), dtype, "another checkpoint, or --quantization")
	}
	if e.MaxNumSeqs != nil {
		for _, n := range []int{32, 64, 128, 256, 512, 1024} {
			add("likely", "engine.max_num_seqs", strconv.Itoa(*e.MaxNumSeqs), strconv.Itoa(n), "a flag of the launch "+
				"line")
		}
	}
	if e.MaxNumBatchedTokens != nil {
		for _, n := range []int{2048, 8192, 16384} {
			add("likely", "engine.max_num_batched_tokens", strconv.Itoa(*e.MaxNumBatchedTokens), strconv.Itoa(n),
				"a flag of the launch line")
		}
	}
	if e.Policy == "vllm" {
		add("possible", "engine.max_cudagraph_capture_size", "default", "1", "--enforce-eager: no CUDA graphs")
		for _, v := range []string{"vllm-0.9", "vllm-0.13", "vllm-0.18"} {
			add("possible", "engine.version", u.Pools[0].Release(), v, "another release of the engine")
		}
	}
	for _, n := range []int{4, 10} {
		add("possible", "engine.stream_interval", strconv.Itoa(e.StreamInterval), strconv.Itoa(n),
			"tokens in a chunk of the stream")
	}
	for _, sampling := range []string{"greedy", "top_p"} {
		add("likely", "workload.sampling", u.Scenario.Workload.Sampling, sampling, "the sampling parameters of the "+
			"requests")
	}
	return list
}

// constant is a constant of the machine that a measurement can move.
type constant struct {
	key, why string
	// spread is the likely size of a change, in logarithms of a factor or in the unit of the value; twice that is
	// possible.
	spread float64
	// factor says that it multiplies; else the value is added, in the unit.
	factor bool
	unit   string
	apply  func(r *catalog.CalibratedRecord, v *float64)
	// delay is set for the front end, which is a key of the scenario.
	delay bool
}

// constants returns the constants of package calibration that influence single runs.
func constants() []constant {
	return []constant{
		{key: "compute of products", why: "the fraction of the peak that matrix products reach: clocks, power limits",
			spread: 0.1, factor: true, apply: func(r *catalog.CalibratedRecord,
				v *float64) {
				r.Calibration.GEMMCompute = v
			}},
		{key: "memory bandwidth of products", why: "the fraction of the bandwidth that weights are read with",
			spread: 0.1,
			factor: true, apply: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.GEMMMemory = v }},
		{key: "memory bandwidth of attention", why: "the fraction of the bandwidth that KV is read with", spread: 0.15,
			factor: true, apply: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.AttentionMemory = v }},
		{key: "compute of attention", why: "the fraction of the peak that prefill attention reaches", spread: 0.15,
			factor: true, apply: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.AttentionCompute = v }},
		{key: "overhead of an iteration", why: "the host, the Python of the engine, launches", spread: 0.5, unit: "ms",
			apply: func(r *catalog.CalibratedRecord, v *float64) { r.Calibration.StepMilliseconds = v }},
		{key: "overhead of a sequence", why: "sampling and the host, for each sequence of an iteration", spread: 10,
			unit: "µs", apply: func(r *catalog.CalibratedRecord,
				v *float64) {
				r.Calibration.SequenceMicroseconds = v
			}},
		{key: "overheads.frontend", why: "the API server, a gateway or the network before the engine",
			spread: 20, unit: "ms", delay: true},
	}
}

// trial is the change of the constant by x spreads.
func (k *constant) trial(u *scenario.Setup, x float64) *trial {
	t := &trial{x: x, cause: Cause{Key: k.key, Why: k.why, Likely: "unlikely"}}
	switch size := math.Abs(x); {
	case size <= 1:
		t.cause.Likely = "likely"
	case size <= 2:
		t.cause.Likely = "possible"
	}
	v := x * k.spread
	if k.delay {
		now := u.Pools[0].Config.Frontend.Seconds()
		to := math.Max(0, now+v/1e3)
		t.cause.From, t.cause.To = layout.Digits(now*1e3)+" ms", layout.Digits(to*1e3)+" ms"
		t.settings = []scenario.Setting{{Key: k.key, Value: time.Duration(to * float64(time.Second)).String(),
			Flag: "verify"}}
		return t
	}
	if k.factor {
		v = math.Exp(v)
		t.cause.From, t.cause.To = "1", fmt.Sprintf("%.3g times as much", v)
	} else {
		t.cause.From, t.cause.To = "0 "+k.unit, fmt.Sprintf("%+.3g %s", v, k.unit)
	}
	r := &catalog.CalibratedRecord{}
	k.apply(r, &v)
	t.change = r.Correct
	return t
}

// mostSpreads bounds the search for the value of a constant.
const mostSpreads = 10

// solve finds the value of a constant that explains most: least squares on the deviations, made linear between two
// values and repeated from the solution.
func solve(k constant, u *scenario.Setup, metrics []Metric, try func(*trial) ([]Metric, error)) (
	*trial, []Metric, error) {
	at, step := 0.0, 1.0
	now := metrics
	var best *trial
	var bestMetrics []Metric
	for range 3 {
		t := k.trial(u, at+step)
		next, err := try(t)
		if err != nil || next == nil {
			return best, bestMetrics, err
		}
		top, bottom := 0.0, 0.0
		for i := range now {
			a, b := deviate(now[i]), deviate(next[i])
			if math.IsNaN(a) || math.IsNaN(b) {
				continue
			}
			slope := (b - a) / step
			top, bottom = top+a*slope, bottom+slope*slope
		}
		if bottom < 1e-9 {
			return best, bestMetrics, nil // the constant moves nothing
		}
		at = min(max(at-top/bottom, -mostSpreads), mostSpreads)
		t = k.trial(u, at)
		if next, err = try(t); err != nil || next == nil {
			return best, bestMetrics, err
		}
		if best == nil || deviation(next) < deviation(bestMetrics) {
			best, bestMetrics = t, next
		}
		now, step = next, 0.25
	}
	return best, bestMetrics, nil
}
