package sweep

import (
	"context"
	"errors"
	"fmt"
	"math"

	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report"
	"clifftop/report/curve"
)

// search looks for a capacity.
type search struct {
	ctx      context.Context
	s        *scenario.Scenario
	o        CapacityOptions
	axis     axis
	base     *scenario.Setup
	requests int   // of a run, where the scenario leaves that open
	looks    []int // numbers of runs after which to look at intervals
	states   map[float64]*state
	order    []*state
	runs     int
	helps    bool // More of the value helps
	found    *curve.Capacity
	good     *float64 // shown to pass
	bad      *float64 // shown to fail
}

// state is what is known of one value.
type state struct {
	value    float64
	setup    *scenario.Setup
	runs     []*report.Summary
	pooled   *report.Summary
	sides    []curve.ProbeSide
	verdict  string // of intervals; empty before
	passes   bool   // by the first run alone
	overload bool
	purpose  string
	refused  error // the value is not allowed
}

// errSpent ends a search whose runs are spent.
var errSpent = errors.New("the runs of the search are spent")

// run searches.
func (q *search) run() error {
	good, bad, err := q.bracket()
	if err == nil {
		err = q.narrow(good, bad)
	}
	if err == nil {
		err = q.beyond()
	}
	if errors.Is(err, errSpent) {
		q.found.Warnings = append(q.found.Warnings, report.Warning{Code: "search_spent", Text: fmt.Sprintf(
			"the search ended before its result was as narrow as asked, after %d runs", q.runs)})
		return nil
	}
	return err
}

// bracket looks, by single runs, for a value that passes and one that fails. Each is NaN where there is none.
func (q *search) bracket() (good, bad float64, err error) {
	if q.o.Low != 0 || q.o.High != 0 {
		return q.bracketWithin(q.axis.round(q.o.Low), q.axis.round(q.o.High))
	}
	start, enough, err := q.outset()
	if err != nil {
		return 0, 0, err
	}
	first, err := q.look(start)
	if err != nil {
		return 0, 0, err
	}
	// More of a load is worse, so that there is one direction to look in; of anything else both are tried in turn.
	up := &way{up: true, open: !q.axis.load || first.passes, at: start, factor: 2, end: enough}
	down := &way{open: !q.axis.load || !first.passes, at: start, factor: 2, end: math.Inf(-1)}
	if q.axis.whole {
		down.end = 1
	}
	const doublings = 24
	most := doublings
	if q.axis.load {
		// An idle system is as good as any: there is no need to come near it in small steps.
		down.factor = 4
		if !first.passes {
			most = 6
		}
	}
	for k := 0; k < most && (up.open || down.open); k++ {
		for _, w := range []*way{up, down} {
			if !w.open {
				continue
			}
			other, err := q.stride(w, first.passes)
			if err != nil {
				return 0, 0, err
			}
			if other != nil {
				q.helps = w.up == other.passes
				good, bad = q.ends(other, w.at)
				return good, bad, nil
			}
		}
	}
	if first.passes {
		return max(up.at, start), math.NaN(), nil
	}
	return math.NaN(), min(down.at, start), nil
}

// outset is the value to begin with, and one at which all requests come at once, so that more of a load changes
// nothing.
func (q *search) outset() (start, enough float64, err error) {
	start, enough = q.axis.start, math.Inf(1)
	n := q.base.Scenario.Run.Requests
	switch q.axis.key {
	case scenario.UsersKey:
		if n != nil {
			enough = float64(*n)
		}
	case scenario.RateKey:
		idle, err := idleResidence(q.ctx, q.base)
		if err != nil {
			return 0, 0, err
		}
		if idle > 0 {
			start = significant(1/idle, 2)
			if n != nil {
				enough = 16 * float64(*n) / idle
			}
		}
	}
	return start, enough, nil
}

// way is a direction in which a search strides.
type way struct {
	up, open bool
	at       float64 // the last value looked at
	factor   float64 // of a stride
	end      float64 // a value at which it ends
}

// stride looks at the next value of a way. It is returned where its verdict is another one than before.
func (q *search) stride(w *way, passes bool) (*state, error) {
	next, err := q.look(q.axis.step(w.at, w.factor, w.up))
	switch {
	case yamldoc.BadInput(err) || err == nil && next.value == w.at:
		w.open = false
		return nil, nil
	case err != nil:
		return nil, err
	case next.passes != passes:
		return next, nil
	}
	w.at = next.value
	w.open = w.up && w.at < w.end || !w.up && w.at > w.end
	return nil, nil
}

// ends are a value and the last before it, which was judged otherwise.
func (q *search) ends(next *state, last float64) (good, bad float64) {
	if next.passes {
		return next.value, last
	}
	return last, next.value
}

// bracketWithin looks at the ends of a range, and inside it where they are alike.
func (q *search) bracketWithin(low, high float64) (good, bad float64, err error) {
	l, err := q.look(low)
	if err != nil {
		return 0, 0, err
	}
	h, err := q.look(high)
	if err != nil {
		return 0, 0, err
	}
	if l.passes != h.passes {
		q.helps = h.passes
		if h.passes {
			return high, low, nil
		}
		return low, high, nil
	}
	const inside = 3
	for i := 1; i <= inside; i++ {
		x := q.axis.round(low + (high-low)*float64(i)/(inside+1))
		if x <= low || x >= high {
			continue
		}
		m, err := q.look(x)
		if err != nil {
			return 0, 0, err
		}
		if m.passes != l.passes {
			q.found.NonMonotone = true
			if m.passes {
				return x, high, nil
			}
			return low, x, nil
		}
	}
	if l.passes {
		return high, math.NaN(), nil
	}
	return math.NaN(), low, nil
}

// narrow brings two ends, found by single runs, near each other, makes sure of them, and bisects.
func (q *search) narrow(good, bad float64) error {
	const roughly = .25
	for !math.IsNaN(good) && !math.IsNaN(bad) && !q.axis.near(good, bad, roughly) {
		m, ok := q.axis.between(good, bad)
		if !ok {
			break
		}
		x, err := q.look(m)
		if err != nil {
			return err
		}
		if x.passes {
			good = m
		} else {
			bad = m
		}
	}
	if math.IsNaN(good) {
		q.lengthen(bad)
	} else {
		q.lengthen(good)
	}
	if !math.IsNaN(good) {
		if err := q.secure(good, curve.ProbePasses, q.helps); err != nil {
			return err
		}
	}
	if q.bad == nil && !math.IsNaN(bad) {
		if err := q.secure(bad, curve.ProbeFails, !q.helps); err != nil {
			return err
		}
	}
	if q.good == nil || q.bad == nil {
		return nil
	}
	return q.bisect()
}

// secure looks for a value that surely has a verdict, from x on in a direction.
func (q *search) secure(x float64, want string, up bool) error {
	const steps = 8
	factor := 1.1
	for range steps {
		v, err := q.test(x, curve.ProbeSearches, len(q.looks))
		if yamldoc.BadInput(err) || err == nil && v == want {
			return nil
		}
		if err != nil {
			return err
		}
		next := q.axis.step(x, factor, up)
		if q.o.Low != 0 || q.o.High != 0 {
			next = min(max(next, q.axis.round(q.o.Low)), q.axis.round(q.o.High))
		}
		if next == x {
			return nil
		}
		x, factor = next, factor*factor
	}
	return nil
}

// bisect halves the distance of the ends. An undecided value stays between them, and each end comes as near to it as it
// can.
func (q *search) bisect() error {
	for !q.axis.near(*q.good, *q.bad, q.o.Precision) {
		m, ok := q.axis.between(*q.good, *q.bad)
		if !ok {
			return nil
		}
		v, err := q.test(m, curve.ProbeSearches, len(q.looks))
		if yamldoc.BadInput(err) {
			return nil // nothing between the ends is allowed
		}
		if err != nil {
			return err
		}
		if v != curve.ProbeUndecided {
			continue
		}
		if v, err = q.toward(m, q.good); err != nil || v != curve.ProbeUndecided {
			if err != nil {
				return err
			}
			continue
		}
		if v, err = q.toward(m, q.bad); err != nil || v == curve.ProbeUndecided {
			return err
		}
	}
	return nil
}

// toward bisects between an undecided value and an end, until they are near or a verdict is not the end's: it is then
// returned, and the bisection of the whole goes on.
func (q *search) toward(undecided float64, end *float64) (string, error) {
	isGood := end == q.good
	for {
		at := q.bad
		if isGood {
			at = q.good
		}
		if q.axis.near(undecided, *at, q.o.Precision) {
			return curve.ProbeUndecided, nil
		}
		m, ok := q.axis.between(undecided, *at)
		if !ok {
			return curve.ProbeUndecided, nil
		}
		v, err := q.test(m, curve.ProbeSearches, len(q.looks))
		switch {
		case err != nil:
			return v, err
		case v == curve.ProbeUndecided:
			undecided = m
		case (v == curve.ProbePasses) != isGood:
			return v, nil
		}
	}
}

// beyond tries values on the other side of the failing end.
func (q *search) beyond() error {
	if q.bad == nil || q.good == nil {
		return nil
	}
	for _, factor := range []float64{1.2, 1.5, 2} {
		x := q.axis.step(*q.bad, factor, !q.helps)
		if ranged := q.o.Low != 0 || q.o.High != 0; x == *q.bad || ranged && (x < q.o.Low || x > q.o.High) {
			continue
		}
		v, err := q.test(x, curve.ProbeBeyond, 1)
		switch {
		case yamldoc.BadInput(err):
			return nil
		case err != nil:
			return err
		case v == curve.ProbePasses:
			q.found.NonMonotone = true
		}
	}
	return nil
}

// result puts the result together.
func (q *search) result() *curve.Capacity {
	c := q.found
	c.Passes, c.Fails, c.MoreHelps, c.Runs = q.good, q.bad, q.helps, q.runs
	c.Resolved = c.Passes != nil && c.Fails != nil && q.axis.near(*c.Passes, *c.Fails, q.o.Precision)
	for _, x := range q.order {
		if len(x.runs) > 0 {
			c.Probes = append(c.Probes, x.probe())
		}
	}
	if c.Passes != nil {
		c.AtPasses = q.states[*c.Passes].pooled
	}
	if c.Fails != nil {
		c.AtFails = q.states[*c.Fails].pooled
	}
	c.Explain()
	return c
}
