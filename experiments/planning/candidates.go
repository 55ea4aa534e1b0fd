package planning

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model"
	"clifftop/model/catalog"
	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/plan"
)

// candidate is a replica, and what the search knows of it.
type candidate struct {
	sets    []scenario.Setting
	knobs   map[string]string
	setup   *scenario.Setup
	name    string // of one replica
	perGPUs int    // GPUs of a replica

	price    *float64 // per GPU and hour
	source   string
	err      float64 // of the step model
	accuracy *report.Accuracy
	apart    bool // it is recommended only if there are no candidates with measured runs

	bounds        *replica
	about, atMost float64 // requests per second of a replica
	planned       float64 // requests per second, with the allowance for the error
	refusal       *plan.Refusal

	probes    map[float64]*report.Summary // by rate of a replica
	runs      int
	effort    report.Effort // of the runs
	seatsNote string        // how the fewest seats were found

	count  int // of replicas that meet the SLO; 0 if none was found
	passes float64
	fails  float64 // 0 where none was found
	near   bool    // passes and fails were brought near each other

	trials   map[int]*trial     // of whole fleets, by the number of replicas
	verified *plan.Verification // nil if hours of the fleet were not simulated
}

// cost is the price of n replicas for a month; +Inf where it is unknown.
func (c *candidate) cost(n int) float64 {
	if c.price == nil {
		return math.Inf(1)
	}
	return *c.price * float64(c.perGPUs*n) * plan.HoursPerMonth
}

func (c *candidate) label(n int) string {
	d := c.setup.Pools[0].Deployment
	var how []string
	for _, p := range []struct {
		name string
		n    int
	}{{"TP", d.TensorParallel}, {"PP", d.PipelineParallel}, {"EP", d.ExpertParallel}} {
		if p.n > 1 {
			how = append(how, fmt.Sprintf("%s %d", p.name, p.n))
		}
	}
	if d.KVDtype == model.FP8 {
		how = append(how, "fp8 KV")
	}
	for _, k := range sortedKeys(c.knobs) {
		how = append(how, k+" "+c.knobs[k])
	}
	if c.setup.Scenario.StepTime.Kind == "linear" {
		return fmt.Sprintf("%d × replica%s", n, prefixed(", ", strings.Join(how, ", ")))
	}
	what := d.GPU.Name + " " + d.Dtype.String()
	if d.LLM.Experts > 0 && d.MoEDtype != d.Dtype {
		what += "/" + d.MoEDtype.String()
	}
	tail := prefixed(", ", strings.Join(how, ", "))
	if c.perGPUs == 1 {
		return fmt.Sprintf("%d × %s%s", n, what, tail)
	}
	return fmt.Sprintf("%d × (%d × %s%s)", n, c.perGPUs, what, tail)
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (p *planner) list() ([]*candidate, error) {
	spec := &p.spec
	gpus, dtypes, kvs := spec.GPUs, spec.Dtypes, spec.KVCacheDtypes
	if gpus == nil {
		for _, g := range catalog.GPUs() {
			gpus = append(gpus, g.Name)
		}
	}
	tps, pps := spec.TensorParallelSizes, spec.PipelineParallelSizes
	if kvs == nil {
		kvs = []string{p.scenario.Deployment.KVCacheDtype}
	}
	if p.scenario.StepTime.Kind == "linear" { // which knows no machine
		gpus, dtypes, kvs, tps, pps = []string{p.scenario.GPU}, []string{p.scenario.Deployment.Dtype}, kvs[:1],
			[]int{1}, []int{1}
	}
	var all []*candidate
	for _, gpu := range gpus {
		for _, dtype := range dtypes {
			for _, kv := range kvs {
				for _, tp := range tps {
					for _, pp := range pps {
						for _, ep := range p.expertSizes(tp) {
							base := []scenario.Setting{
								set("gpu", gpu), set("deployment.dtype", dtype), set("deployment.kv_cache_dtype", kv),
								set("deployment.tensor_parallel_size", fmt.Sprint(tp)),
								set("deployment.pipeline_parallel_size", fmt.Sprint(pp)),
								set("deployment.expert_parallel_size", fmt.Sprint(ep)),
							}
							all = append(all, p.withKnobs(base)...)
						}
					}
				}
			}
		}
	}
	const most = 20_000
	if len(all) > most {
		return nil, p.scenario.Fault("plan.engine", "%d candidates (want at most %d: fewer values to try)", len(all),
			most)
	}
	return all, nil
}

// expertSizes are the expert-parallel sizes to try.
func (p *planner) expertSizes(tp int) []int {
	if !p.mixture || tp == 1 {
		return []int{1}
	}
	switch p.spec.ExpertParallel {
	case scenario.On:
		return []int{tp}
	case scenario.Off:
		return []int{1}
	}
	return []int{1, tp}
}

// withKnobs varies the knobs of the engine.
func (p *planner) withKnobs(base []scenario.Setting) []*candidate {
	list := []*candidate{{sets: base, knobs: map[string]string{}}}
	for _, k := range p.spec.Engine {
		var more []*candidate
		for _, c := range list {
			for _, v := range k.Values {
				d := &candidate{sets: append(slices.Clone(c.sets), set("engine."+k.Name, v)),
					knobs: map[string]string{k.Name: v}}
				for name, value := range c.knobs {
					d.knobs[name] = value
				}
				more = append(more, d)
			}
		}
		list = more
	}
	return list
}

func set(key, value string) scenario.Setting {
	return scenario.Setting{Key: key, Value: value, Flag: "plan"}
}

// resolve makes the candidates ready, side by side, and says of each what stands against it. Faults that have nothing
// to do with the candidates are an error.
func (p *planner) resolve(ctx context.Context, all []*candidate) error {
	faults := make([]error, len(all))
	err := experiments.Parallel(ctx, len(all), p.options.Jobs, nil, func(_ context.Context, i int) error {
		c := all[i]
		if c.setup != nil || c.refusal != nil {
			return nil
		}
		s, err := p.scenario.With(c.sets...)
		if err == nil {
			c.setup, err = s.Resolve()
		}
		faults[i] = err
		return nil
	})
	if err != nil {
		return err
	}
	for i, c := range all {
		if faults[i] == nil {
			continue
		}
		if c.refusal = refusalOf(faults[i]); c.refusal == nil {
			return faults[i]
		}
		c.refusal.Name = c.described()
	}
	return nil
}

// refusalOf says why a candidate cannot be built; nil if that is not the candidate's fault.
func refusalOf(err error) *plan.Refusal {
	var misfit *model.FitError
	if errors.As(err, &misfit) {
		return &plan.Refusal{Reason: plan.DoesNotFit, Text: misfit.Error(), MissingBytes: &misfit.MissingBytes}
	}
	var faults yamldoc.Faults
	if !errors.As(err, &faults) {
		return nil
	}
	for _, f := range faults {
		if !strings.HasPrefix(f.Key, "deployment") && f.Key != "engine.max_model_len" {
			return nil
		}
	}
	return &plan.Refusal{Reason: plan.NotPossible, Text: faults[0].Problem}
}

// described names a candidate that could not be built, by its settings.
func (c *candidate) described() string {
	value := func(key string) string {
		for _, s := range c.sets {
			if s.Key == key {
				return s.Value
			}
		}
		return ""
	}
	text := value("gpu") + " " + value("deployment.dtype")
	for _, p := range []struct{ name, key string }{{"TP", "tensor"}, {"PP", "pipeline"}, {"EP", "expert"}} {
		if n := value("deployment." + p.key + "_parallel_size"); n != "1" {
			text += fmt.Sprintf(", %s %s", p.name, n)
		}
	}
	for _, k := range sortedKeys(c.knobs) {
		text += ", " + k + " " + c.knobs[k]
	}
	return text
}

// unique drops candidates that are the same once their formats are resolved.
func unique(all []*candidate) []*candidate {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(c *candidate) bool {
		if c.setup == nil {
			return false
		}
		key := c.label(1)
		twice := seen[key]
		seen[key] = true
		return twice
	})
}

// assess fills in what follows from the setup: price, error, bounds. It may refuse the candidate.
func (p *planner) assess(c *candidate) {
	u := c.setup
	c.perGPUs = u.Pools[0].Deployment.GPUs()
	c.name = strings.TrimPrefix(c.label(1), "1 × ")
	c.probes = map[float64]*report.Summary{}
	if usd, source, ok := price(p.scenario, u); ok {
		c.price, c.source = &usd, source
	}
	c.accuracy = u.Accuracy()
	c.err = p.errorOf(c.accuracy)
	c.apart = p.spec.Unmeasured == "apart" && c.accuracy != nil && !measured(c.accuracy)
	c.planned = p.traffic.PlannedRequestsPerS / (1 - c.err)
	c.bounds = replicaOf(u, p.shape)
	c.about, c.atMost = c.bounds.carries(p.objectives)
	refuse := func(reason, format string, args ...any) *plan.Refusal {
		c.refusal = &plan.Refusal{Name: c.name, Reason: reason, Text: fmt.Sprintf(format, args...)}
		return c.refusal
	}
	const slack = 1.02 // the sample is not the run
	if o, seconds, ratio := c.bounds.excess(p.objectives); ratio > slack {
		r := refuse(plan.SLOFloor, "%s is %s for a request alone, the limit is %s: %s too much",
			report.LimitName(o.Key()), latency(seconds), latency(o.Limit.Seconds()), latency(seconds-o.Limit.Seconds()))
		if !math.IsInf(ratio, 1) { // as for a limit of 0
			r.Excess = &ratio
		}
		return
	}
	if n := c.least(); p.spec.Fewest == nil && n*c.perGPUs > p.spec.MaxGPUs {
		refuse(plan.TooManyGPUs, "at least %d GPUs by the bounds on throughput, at most %s requests/s each replica "+
			"(max_gpus is %d)", n*c.perGPUs, layout.Digits(c.atMost), p.spec.MaxGPUs)
	}
}

// least is the number of replicas below which no simulation is needed.
func (c *candidate) least() int { return plan.Replicas(c.planned, c.atMost) }

// errorOf is the error to allow for: the greatest of those of the metrics that the SLO limits and of throughput, or
// what is assumed where none was measured.
func (p *planner) errorOf(a *report.Accuracy) float64 {
	if a == nil {
		return 0 // a step time that is no machine's has no error
	}
	if !measured(a) {
		return p.spec.UnvalidatedError
	}
	worst, known := 0.0, false
	take := func(v *float64) {
		if v != nil {
			worst, known = max(worst, *v), true
		}
	}
	for _, o := range limits(p.objectives) {
		switch o.Metric {
		case "ttft", "queue":
			take(a.TTFT)
		case "tpot", "itl":
			take(a.TPOT)
		case "e2e":
			take(a.E2E)
		}
	}
	take(a.Throughput)
	if !known {
		return p.spec.UnvalidatedError
	}
	return min(worst, 0.9)
}

// measured reports whether measured runs stand behind the step times.
func measured(a *report.Accuracy) bool { return a.Runs > 0 && a.SameGPU }

// latency writes seconds in the unit that suits them.
func latency(seconds float64) string {
	if seconds >= 1 {
		return layout.Significant(seconds, 3) + " s"
	}
	return layout.Significant(seconds*1e3, 3) + " ms"
}
