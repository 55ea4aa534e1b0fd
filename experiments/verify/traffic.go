package verify

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"clifftop/experiments/measured"
	"clifftop/experiments/scenario"
	"clifftop/experiments/validation"
	"clifftop/workload"
)

// most is the ratio of a given to a measured rate or length above which the two contradict each other. Rates that were
// reached and lengths that ended early differ by less.
const most = 1.25

// leaveOut says how to get the measured traffic.
const leaveOut = "(leave the key out, so that the measured traffic is simulated)"

// sameTraffic refuses a run whose load or mean lengths are not those that the scenario gives as fixed numbers: the two
// would not be comparable.
func sameTraffic(s *scenario.Scenario, run *measured.Run, file string) error {
	if err := sameLoad(s, run, file); err != nil {
		return err
	}
	w := &s.Workload
	for _, x := range []struct {
		key        string
		given, ran *float64
	}{
		{"workload.arrivals", givenRate(w.Arrivals), run.Load.Rate},
		{"workload.input", fixed(w.Input), run.Input.Mean},
		{"workload.output", fixed(w.Output), run.Output.Mean},
	} {
		shared := x.key == "workload.input" && (w.Prefix != nil || w.Sessions != nil) // the input is more than the key
		if !s.Given(x.key) || x.given == nil || x.ran == nil || shared {
			continue
		}
		if ratio := *x.given / *x.ran; ratio > most || ratio < 1/most {
			return s.Fault(x.key, "%g, but %s measured %.4g %s", *x.given, file, *x.ran, leaveOut)
		}
	}
	return nil
}

// sameLoad refuses a run of another kind of load than the scenario gives, such as a closed loop in place of an open
// one, and a closed loop of another number of users.
func sameLoad(s *scenario.Scenario, run *measured.Run, file string) error {
	a := s.Workload.Arrivals
	if !s.Given("workload.arrivals") || a == nil || len(a.Stages) != 1 {
		return nil
	}
	given, kind := givenLoad(&a.Stages[0])
	ran, ranKind := measuredLoad(&run.Load)
	if kind == 0 || ranKind == 0 {
		return nil
	}
	if kind == ranKind && (kind != closedLoop || *a.Stages[0].Users == *run.Load.Concurrency) {
		return nil
	}
	return s.Fault("workload.arrivals", "%s, but %s measured %s %s", given, file, ran, leaveOut)
}

// loadKind is how requests arrive; 0 is unknown.
type loadKind int

const (
	openLoop loadKind = iota + 1
	closedLoop
	atOnce
)

// givenLoad says in words how a scenario's requests arrive.
func givenLoad(a *scenario.Stage) (string, loadKind) {
	switch {
	case a.Users != nil:
		return fmt.Sprintf("a closed loop of %d users", *a.Users), closedLoop
	case a.Process == "all-at-once":
		return "all requests at once", atOnce
	case a.Rate != nil:
		return fmt.Sprintf("an open loop of %g requests per second", *a.Rate), openLoop
	}
	return "", 0
}

// measuredLoad says in words how a run's requests arrived.
func measuredLoad(l *measured.Load) (string, loadKind) {
	switch {
	case l.Rate != nil:
		return fmt.Sprintf("an open loop of %.4g requests per second", *l.Rate), openLoop
	case l.Concurrency != nil:
		return fmt.Sprintf("a closed loop of %d users", *l.Concurrency), closedLoop
	case l.AtOnce:
		return "all requests at once", atOnce
	}
	return "", 0
}

// withTraffic gives logs and metrics without traffic that of the one run that has it, unless the scenario gives it.
func withTraffic(s *scenario.Scenario, results []*measured.Result) []*measured.Result {
	for _, key := range []string{"arrivals", "preset", "classes", "headcount", "trace"} {
		if s.Given("workload." + key) {
			return results
		}
	}
	var source *measured.Run
	file, without := "", false
	for _, r := range results {
		for i := range r.Runs {
			switch {
			case silent(&r.Runs[i]):
				without = true
			case source != nil:
				return results
			default:
				source, file = &r.Runs[i], r.File
			}
		}
	}
	if source == nil || !without {
		return results
	}
	out := slices.Clone(results)
	for k, r := range out {
		if !slices.ContainsFunc(r.Runs, func(run measured.Run) bool { return silent(&run) }) {
			continue
		}
		own := *r
		own.Runs = slices.Clone(r.Runs)
		own.Notes = append(slices.Clone(r.Notes), "the traffic is that of "+file)
		for i := range own.Runs {
			if run := &own.Runs[i]; silent(run) {
				run.Model = cmp.Or(run.Model, source.Model)
				run.Load, run.Input, run.Output = source.Load, source.Input, source.Output
				run.RequestsPerS, run.Requests, run.Sent = source.RequestsPerS, source.Requests, source.Sent
				run.Trace = source.Trace
			}
		}
		out[k] = &own
	}
	return out
}

// silent reports whether a run has samples of the engine's state, but no traffic.
func silent(run *measured.Run) bool {
	return len(run.Series) > 0 && run.Load == (measured.Load{}) && run.RequestsPerS == nil && len(run.Requests) == 0
}

// givenRate is the rate of arrivals with one stage; nil if there is none.
func givenRate(a *scenario.Arrivals) *float64 {
	if a == nil || len(a.Stages) != 1 {
		return nil
	}
	return a.Stages[0].Rate
}

// fixed is the one length of a fixed law; nil for others.
func fixed(d *scenario.Distribution) *float64 {
	if d == nil || d.Value == nil {
		return nil
	}
	x := float64(*d.Value)
	return &x
}

// sameLaws refuses a run whose mean lengths are not those of the trace, the preset or the laws that the scenario gives.
func sameLaws(s *scenario.Scenario, c *validation.Case, run *measured.Run, file string) error {
	u := c.Setup()
	if u == nil {
		return nil
	}
	for _, x := range []struct {
		key, what string
		pick      func(input, output float64) float64
		ran       *measured.Lengths
	}{
		{"workload.input", "prompts", func(input, _ float64) float64 { return input }, &run.Input},
		{"workload.output", "outputs", func(_, output float64) float64 { return output }, &run.Output},
	} {
		key, input, output := givenMeans(s, u, x.key)
		given := x.pick(input, output)
		if key == "" || given <= 0 || x.ran.Mean == nil || *x.ran.Mean <= 0 {
			continue
		}
		if ratio := given / *x.ran.Mean; ratio > margin(x.ran, run.Completed) ||
			1/ratio > margin(x.ran, run.Completed) {
			return s.Fault(key, "the %s have %.4g tokens in the mean, but %s measured %.4g %s", x.what, given, file,
				*x.ran.Mean, leaveOut)
		}
	}
	if rate := u.Traffic.Rate; s.Given("workload.trace") && rate > 0 && run.Load.Rate != nil {
		if ratio := rate / *run.Load.Rate; ratio > most || ratio < 1/most {
			return s.Fault("workload.trace", "%.4g requests per second, but %s measured %.4g %s", rate, file,
				*run.Load.Rate, leaveOut)
		}
	}
	return nil
}

// margin returns the ratio of means that contradict each other. The mean of few requests of very different lengths says
// less: four times its standard error is added.
func margin(l *measured.Lengths, completed *int) float64 {
	if completed == nil || *completed < 1 {
		return most
	}
	cv := 1.0
	if l.Std != nil {
		cv = *l.Std / *l.Mean
	}
	return most + 4*cv/math.Sqrt(float64(*completed))
}

// givenMeans returns the mean lengths that the scenario gives for a key of lengths, and the key that gives them; empty
// if none does.
func givenMeans(s *scenario.Scenario, u *scenario.Setup, lengths string) (key string, input, output float64) {
	w := &s.Workload
	spec, err := u.Traffic.Spec, error(nil)
	switch {
	case s.Given("workload.trace"):
		t := u.Scenario.Workload.Trace
		if t == nil || t.Statistics == nil {
			return "", 0, 0
		}
		return "workload.trace", t.Statistics.MeanInputTokens, t.Statistics.MeanOutputTokens
	case lengths == "workload.input" && (w.Prefix != nil || w.Sessions != nil):
		return "", 0, 0 // the input is more than the key
	case s.Given("workload.classes") || s.Given("workload.headcount"):
		key = s.FirstGiven("workload.classes", "workload.headcount")
	case s.Given(lengths):
		key = lengths
	case s.Given("workload.preset") && w.Preset != nil:
		key = "workload.preset"
		var p workload.Preset
		if p, err = workload.FindPreset(*w.Preset); err == nil {
			spec = p.Spec
		}
	default:
		return "", 0, 0
	}
	if err == nil {
		input, output, err = spec.MeanTokens()
	}
	if err != nil {
		return "", 0, 0 // what the law needs is missing, and the scenario was refused for it
	}
	return key, input, output
}
