package planning

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"clifftop/experiments"
	"clifftop/experiments/grid"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/model/catalog"
	"clifftop/report"
	"clifftop/report/plan"
)

// Options says how to plan. The zero value is the default.
type Options struct {
	// Jobs is the number of runs at a time; 0 is one for each processor. It changes no result.
	Jobs int
	// Check asserts the simulator's invariants throughout, at a cost.
	Check bool
	// Ledger keeps the results of the runs, and gives those that it has; nil keeps none. It changes no result.
	Ledger *experiments.ResultCache
	// Progress is called with the state of the search.
	Progress func(fraction float64)
}

// planner is a plan in the making.
type planner struct {
	options  Options
	scenario *scenario.Scenario
	spec     scenario.Planning
	slo      *report.SLO
	assumed  bool // the scenario has no SLO
	mixture  bool // of experts
	demand   *Demand
	traffic  plan.Traffic
	shape    shape

	classes    []string    // of the traffic
	objectives []objective // of the classes, or of all requests

	missed []string // fleets that short runs have taken to meet the SLO, and hours have shown to miss it

	shard grid.Shard // of the candidates that nothing stands against

	done, total int
}

// DefaultSLO is the SLO of a plan whose scenario has none, as YAML.
const DefaultSLO = "{ttft_p95: 800ms, tpot_p95: 80ms}"

// New plans a scenario. A plan without candidates says what stands against each. The error is [yamldoc.Faults] for
// bad input. When ctx is done before the end, what was found until then is marked partial and comes with the
// context's error.
func New(ctx context.Context, s *scenario.Scenario, o Options) (*plan.Result, error) {
	p := &planner{options: o, scenario: s, spec: s.Planning()}
	all, err := p.prepare(ctx)
	if err != nil {
		return nil, err
	}
	return p.plan(ctx, all)
}

// plan searches the candidates and puts the result together.
func (p *planner) plan(ctx context.Context, all []*candidate) (*plan.Result, error) {
	runErr := p.search(ctx, open(all))
	if runErr != nil && !isEnd(ctx, runErr) {
		return nil, runErr
	}
	return resultBuilder{p}.build(ctx, all, runErr)
}

// isEnd reports whether a search was ended early: what was found until then stands.
func isEnd(ctx context.Context, err error) bool {
	var missing *MissingError
	return ctx.Err() != nil && errors.Is(err, ctx.Err()) || errors.As(err, &missing)
}

func (p *planner) prepare(ctx context.Context) ([]*candidate, error) {
	if s := p.scenario; s.Lifecycle != nil {
		return nil, s.Fault("lifecycle", "a plan does not simulate the lifecycle of replicas (remove lifecycle)")
	}
	if s := p.scenario; s.Deployment.Replicas > 1 || len(s.Pools) > 0 {
		key := "deployment.replicas"
		if len(s.Pools) > 0 {
			key = "pools"
		}
		return nil, s.Fault(key, "a plan chooses the number of replicas itself (want one replica and no pools)")
	}
	if err := p.objective(); err != nil {
		return nil, err
	}
	if err := p.openLoop(); err != nil {
		return nil, err
	}
	if llm, err := catalog.LLM(p.scenario.Model); err == nil {
		p.mixture = llm.Experts > 0
	}
	if err := p.named(); err != nil {
		return nil, err
	}
	all, err := p.list()
	if err != nil {
		return nil, err
	}
	if err := p.first(ctx, all); err != nil {
		return nil, err
	}
	if err := p.resolve(ctx, all); err != nil {
		return nil, err
	}
	if p.demand == nil {
		return all, nil // all are refused
	}
	all = unique(all)
	p.total = len(all)
	err = experiments.Parallel(ctx, len(all), p.options.Jobs, nil, func(_ context.Context, i int) error {
		if all[i].refusal == nil {
			p.assess(all[i])
		}
		return nil
	})
	return all, err
}

// first resolves candidates until one can be built, and finds the load by it, so that faults of the scenario show
// before the rest is resolved.
func (p *planner) first(ctx context.Context, all []*candidate) error {
	for i, c := range all {
		if err := p.resolve(ctx, all[i:i+1]); err != nil {
			return err
		}
		if c.setup != nil {
			return p.load(c.setup)
		}
	}
	return nil
}

// named checks the names of GPUs, so that a wrong one is a fault of its own.
func (p *planner) named() error {
	var faults yamldoc.Faults
	for _, name := range p.spec.GPUs {
		if _, err := catalog.GPU(name); err != nil && !strings.ContainsAny(name, "./\\") {
			faults = append(faults, p.scenario.Fault("plan.gpus", "%s", strings.TrimPrefix(err.Error(), "catalog: ")))
		}
	}
	for name := range p.spec.Prices {
		if _, err := catalog.GPU(name); err != nil && !slices.Contains(p.spec.GPUs, name) {
			faults = append(faults, p.scenario.Fault("plan.prices", "%s", strings.TrimPrefix(err.Error(), "catalog: ")))
		}
	}
	smallest := slices.Min(p.spec.TensorParallelSizes) * slices.Min(p.spec.PipelineParallelSizes)
	if smallest > p.spec.MaxGPUs {
		faults = append(faults, p.scenario.Fault("plan.max_gpus",
			"%d is less than the %d GPUs of the smallest candidate (want as many or more, or smaller "+
				"tensor_parallel_sizes)",
			p.spec.MaxGPUs, smallest))
	}
	if faults != nil {
		return faults
	}
	return nil
}

// objective is the scenario's SLO, or one for chat.
func (p *planner) objective() error {
	s := p.scenario
	ofClasses := slices.ContainsFunc(s.Workload.Classes, func(c scenario.Class) bool {
		return len(c.SLO.Limits) > 0 || c.SLO.Attainment != nil || c.SLO.WaitProbability != nil
	})
	if !ofClasses && len(s.SLO.Limits) == 0 && s.SLO.Attainment == nil && s.SLO.WaitProbability == nil {
		p.assumed = true
		with, err := s.With(set("slo", DefaultSLO))
		if err != nil {
			return err
		}
		p.scenario, s = with, with
	}
	slo, err := s.SLO.Objective()
	if p.slo = slo; slo == nil && err == nil {
		p.slo = &report.SLO{} // classes have their own
		return nil
	}
	if err == nil && len(slo.Objectives) == 0 && slo.WaitProbability == nil && slo.Attainment > 0 {
		return yamldoc.Faults{s.Fault("slo", "attainment needs a latency limit (set a limit such as ttft_p95)")}
	}
	return err
}

// openLoop gives traffic without a rate the peak rate, where that is given.
func (p *planner) openLoop() error {
	if p.spec.PeakRate == nil || p.scenario.Workload.Trace != nil {
		return nil
	}
	a := p.scenario.Workload.Arrivals
	if a == nil || !(a.Stages[0].Process == "closed" || a.Stages[0].Process == "all-at-once") {
		return nil
	}
	with, err := p.scenario.With(set("workload.arrivals",
		fmt.Sprintf("{process: poisson, rate: %g}", *p.spec.PeakRate)))
	if err == nil {
		p.scenario = with
	}
	return err
}

// load finds out how much traffic there is.
func (p *planner) load(u *scenario.Setup) error {
	var err error
	if p.demand, err = NewDemand(u); err != nil {
		return asFaults(err)
	}
	if p.shape, err = shapeOf(p.demand); err != nil {
		return err
	}
	d := p.demand
	p.objectives = nil
	for i, k := range u.Report.Classes {
		p.classes = append(p.classes, k.Name)
		switch {
		case k.SLO != nil:
			p.objectives = append(p.objectives, objective{k.SLO, i})
		case len(p.slo.Objectives) > 0:
			p.objectives = append(p.objectives, objective{p.slo, i})
		}
	}
	if p.objectives == nil {
		p.objectives = []objective{{p.slo, -1}}
	}
	t := &p.traffic
	t.MeanRequestsPerS, t.PeakRequestsPerS, t.HourlyRequestsPerS, t.Process = d.Rate, d.Peak, d.Hourly, d.Process
	if p.spec.PeakRate != nil {
		if given := p.givenRate(); given > *p.spec.PeakRate {
			return yamldoc.Faults{p.scenario.Fault("plan.peak_rate",
				"%g is below the mean rate of %g (want as much or more, or one of the two)", *p.spec.PeakRate, given)}
		}
		factor := *p.spec.PeakRate / d.Peak
		t.PeakRequestsPerS = *p.spec.PeakRate
		t.MeanRequestsPerS *= factor
		t.HourlyRequestsPerS = nil
		for _, h := range d.Hourly {
			t.HourlyRequestsPerS = append(t.HourlyRequestsPerS, h*factor)
		}
	}
	t.Growth = p.spec.Growth
	t.PlannedRequestsPerS = t.PeakRequestsPerS * (1 + t.Growth)
	t.MeanInputTokens, t.MeanOutputTokens = p.shape.in, p.shape.out
	switch {
	case u.Scenario.Workload.Trace != nil:
		t.Split = "each replica gets a random share of the recorded sessions, or of the requests where there are none"
	case d.Process == "poisson":
		t.Split = "each request goes to a random replica, which leaves Poisson arrivals to each: a router that looks " +
			"at queues does no worse"
	default:
		t.Split = "each replica gets arrivals of the same kind at its share of the rate; splitting at random would " +
			"make them more even, so that this is the cautious choice"
	}
	return nil
}

// givenRate is the mean rate, in requests per second, if the scenario was given one; or else 0.
func (p *planner) givenRate() float64 {
	s := p.scenario
	switch {
	case s.Workload.Trace != nil && s.Workload.Trace.Rate != nil:
		return *s.Workload.Trace.Rate
	case s.Workload.Trace == nil && s.Given("workload.arrivals.rate"):
		return p.demand.Rate
	}
	return 0
}

func asFaults(err error) error {
	var f *yamldoc.Fault
	if errors.As(err, &f) {
		return yamldoc.Faults{f}
	}
	return err
}

func (p *planner) tell(n int) {
	p.done += n
	if p.options.Progress != nil && p.total > 0 {
		p.options.Progress(min(1, float64(p.done)/float64(p.total)))
	}
}

func phrase(format string, args ...any) string { return fmt.Sprintf(format, args...) }

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
