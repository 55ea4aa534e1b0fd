package sweep

import (
	"math"
	"strconv"

	"clifftop/experiments"
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/stats"
)

// At is the state of a value.
func (q *search) at(x float64) *state {
	st := q.states[x]
	if st == nil {
		st = &state{value: x}
		q.states[x] = st
		q.order = append(q.order, st)
	}
	return st
}

// prepare resolves the scenario at the value.
func (q *search) prepare(st *state) error {
	if st.setup != nil || st.refused != nil {
		return st.refused
	}
	var more []scenario.Setting
	if q.s.Endless() {
		n := q.requests
		if q.axis.key == scenario.UsersKey {
			n = int(min(max(float64(n), runLengths*st.value), mostRequests))
		}
		more = append(more, scenario.Setting{Key: "run.requests", Value: strconv.Itoa(n), Flag: "--over " + q.axis.key})
	}
	st.setup, st.refused = q.axis.at(q.s, st.value, more...)
	return st.refused
}

// add runs the value until it has n runs.
func (q *search) add(st *state, n int) error {
	if err := q.prepare(st); err != nil {
		return err
	}
	more := n - len(st.runs)
	if more <= 0 {
		return nil
	}
	if q.runs+more > q.o.Runs {
		return errSpent
	}
	var setups []*scenario.Setup
	for k := range more {
		u, err := st.setup.Reseeded(len(st.runs) + k)
		if err != nil {
			return err
		}
		setups = append(setups, u)
	}
	results, err := experiments.RunAll(q.ctx, setups,
		experiments.BatchOptions{Jobs: q.o.Jobs, Check: q.o.Check, Cache: q.o.Cache})
	if err != nil {
		return err
	}
	q.runs += more
	st.runs = append(st.runs, results...)
	st.pooled = report.Pool(st.runs)
	if q.o.Progress != nil {
		q.o.Progress(q.runs, max(q.runs+firstLook, expectedRuns))
	}
	return nil
}

// lengthen makes the runs of what follows so long that a system like the one at a value has filled and emptied often
// enough, and forgets what shorter ones have shown.
func (q *search) lengthen(x float64) {
	st := q.states[x]
	if !q.s.Endless() || q.o.Requests > 0 || st == nil || len(st.runs) == 0 {
		return
	}
	lengths := st.runs[0].Residences()
	if !(lengths < capacityLengths) {
		return
	}
	q.requests = int(min(math.Ceil(float64(q.requests)*capacityLengths/max(lengths, 1)), mostRequests))
	q.states = map[float64]*state{}
}

// look runs a value once, and takes the result for what it is.
func (q *search) look(x float64) (*state, error) {
	st := q.at(x)
	if err := q.add(st, 1); err != nil {
		return nil, err
	}
	if st.purpose == "" {
		st.purpose = curve.ProbeLooks
		met := st.pooled.Goodput.Met
		st.overload = hasGrown(st.pooled)
		st.passes = met != nil && *met && !st.overload
		st.sides = curve.JudgeProbe(st.pooled, stats.Confidence, true)
	}
	return st, nil
}

// hasGrown reports an overload.
func hasGrown(s *report.Summary) bool {
	return s.Window.Unsettled() && s.Window.GrowthRequestsPerS != nil
}

// test adds runs to a value until its verdict is sure, with at most so many looks, and notes it as an end of the result
// where it is nearer.
func (q *search) test(x float64, purpose string, looks int) (string, error) {
	st, err := q.look(x)
	if err != nil {
		return "", err
	}
	if st.verdict == "" || st.verdict == curve.ProbeUndecided {
		st.purpose = purpose
		if err := q.decide(st, q.looks[:looks]); err != nil {
			return "", err
		}
	}
	if purpose == curve.ProbeSearches {
		q.note(st)
	}
	return st.verdict, nil
}

// note makes a value an end of the result, if it is one.
func (q *search) note(st *state) {
	x := st.value
	switch {
	case st.verdict == curve.ProbePasses && (q.good == nil || (x > *q.good) != q.helps):
		q.good = optional.Of(x)
	case st.verdict == curve.ProbeFails && (q.bad == nil || (x > *q.bad) == q.helps):
		q.bad = optional.Of(x)
	}
}

// decide adds runs until the verdict is sure. A single run is enough where there is no hope.
func (q *search) decide(st *state, looks []int) error {
	st.verdict = curve.ProbeUndecided
	if len(st.runs) == 1 && hopeless(st) {
		st.verdict = curve.ProbeFails
		return nil
	}
	for i, n := range looks {
		if n < len(st.runs) {
			continue
		}
		if err := q.add(st, n); err != nil {
			return err
		}
		alike := st.pooled.CI95Method == ""
		st.overload = hasGrown(st.pooled)
		st.sides = curve.JudgeProbe(st.pooled, 1-(1-stats.Confidence)/float64(len(q.looks)), alike)
		if st.verdict = st.judge(i == len(q.looks)-1); st.verdict != curve.ProbeUndecided || alike {
			return nil
		}
	}
	return nil
}

// judge is the verdict of the sides together. At the last look a share that is perfect, as its target asks for, is
// enough.
func (st *state) judge(last bool) string {
	if st.overload || len(st.sides) == 0 {
		return curve.ProbeFails
	}
	verdict := curve.ProbePasses
	for i := range st.sides {
		side := &st.sides[i]
		if last && side.Verdict == curve.ProbeUndecided && side.Perfect(&st.pooled.Goodput.Limits[i]) {
			side.Verdict = curve.ProbePasses
		}
		switch side.Verdict {
		case curve.ProbeFails:
			return curve.ProbeFails
		case curve.ProbeUndecided:
			verdict = curve.ProbeUndecided
		}
	}
	return verdict
}

// hopeless reports whether a single run misses a limit by so much that no further one is needed: it takes three times
// as long on average, or has a share that is off by 40 percent of all requests. That it fills up is not enough: a short
// run near saturation may by chance.
func hopeless(st *state) bool {
	const (
		timesTheMean = 3
		offTheShare  = .4
	)
	s := st.runs[0]
	for i := range s.Goodput.Limits {
		l := &s.Goodput.Limits[i]
		switch {
		case l.Met == nil || *l.Met:
		case l.Mean():
			if l.ValueMs != nil && *l.ValueMs > timesTheMean**l.LimitMs {
				return true
			}
		case l.Fraction == nil:
		case l.Lower() && *l.Fraction > *l.Target+offTheShare, !l.Lower() && *l.Fraction < *l.Target-offTheShare:
			return true
		}
	}
	return false
}

// probe tells what was found at the value.
func (st *state) probe() curve.Probe {
	p := curve.Probe{
		Value: st.value, Verdict: st.verdict, Purpose: st.purpose, Runs: len(st.runs),
		Requests: st.runs[0].Requests.Offered, Overload: st.overload, Limits: st.sides,
	}
	if p.Verdict == "" {
		p.Verdict = curve.ProbeFails
		if st.passes {
			p.Verdict = curve.ProbePasses
		}
	}
	return p
}
