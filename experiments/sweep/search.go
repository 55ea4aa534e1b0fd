package sweep

import (
	"context"
	"math"
	"slices"

	"clifftop/experiments"
	"clifftop/experiments/hours"
	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/experiments/steady"
	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// search looks for a capacity.
type search struct {
	ctx        context.Context
	s          *scenario.Scenario
	o          CapacityOptions
	axis       axis
	base       *scenario.Setup
	share      float64 // of hours that should meet the objective
	horizon    clock.Duration
	lead       clock.Duration
	resolution float64 // how near the ends of an hour's threshold come, as a share
	trials     trials
	helps      bool // More of the value helps
	found      *curve.Capacity
}

func (q *search) run() error {
	good, bad, err := q.bracket()
	if err != nil {
		return err
	}
	near := good
	if math.IsNaN(good) {
		near = bad
	}
	first := threshold{good: good, bad: bad}
	if !math.IsNaN(good) && !math.IsNaN(bad) {
		near = q.axis.round(math.Sqrt(math.Abs(good * bad)))
		if near == 0 {
			near = good
		}
		if first, err = q.threshold(q.ctx, 0, near); err != nil {
			return err
		}
		if !math.IsNaN(first.good) {
			near = first.good
		}
	}
	var list []threshold
	for n := q.o.Hours; ; n += moreHours {
		more, err := q.thresholds(len(list), n, near)
		if err != nil {
			return err
		}
		list = append(list, more...)
		q.estimate(list)
		if q.o.Precision == 0 || n+moreHours > mostHours || q.precise() {
			break
		}
	}
	return q.confirm(list)
}

const (
	// moreHours are added while a precision is not reached, up to mostHours.
	moreHours = 20
	mostHours = 209
)

// thresholds finds those of hours from one number to another.
func (q *search) thresholds(from, to int, near float64) ([]threshold, error) {
	list := make([]threshold, to-from)
	err := experiments.Parallel(q.ctx, len(list), q.o.Jobs, nil, func(ctx context.Context, i int) error {
		var err error
		list[i], err = q.threshold(ctx, from+i, near)
		return err
	})
	return list, err
}

// level maps a threshold so that an hour meets the objective at a value if its level is at most that of the value: the
// logarithm where values are positive. Hours that always meet it have −∞, those that never do +∞.
func (q *search) level(t *threshold) float64 {
	switch {
	case math.IsNaN(t.good):
		return math.Inf(1)
	case math.IsNaN(t.bad):
		return math.Inf(-1)
	case q.axis.whole:
		return q.toLevel(t.good)
	}
	return q.toLevel(t.between(q.axis))
}

func (q *search) toLevel(x float64) float64 {
	if q.positive() {
		x = math.Log(x)
	}
	if q.helps {
		return x
	}
	return -x
}

func (q *search) fromLevel(v float64) float64 {
	if !q.helps {
		v = -v
	}
	if q.positive() {
		return math.Exp(v)
	}
	return v
}

// positive reports whether all values that were tried are positive.
func (q *search) positive() bool {
	for c := range q.trials.hours {
		if c.value <= 0 {
			return false
		}
	}
	return true
}

// estimate finds the value with the share of hours, and its interval, from the thresholds of hours.
func (q *search) estimate(list []threshold) {
	levels := make([]float64, len(list))
	for i := range list {
		levels[i] = q.level(&list[i])
	}
	slices.Sort(levels)
	value, low, high := stats.QuantileOrder(levels, q.share, stats.Confidence)
	// Whole numbers are too coarse for the normal law: a quantile between two of them would be rounded away.
	if !q.axis.whole && !math.IsInf(levels[0], 0) && !math.IsInf(levels[len(levels)-1], 0) {
		value, low, high = stats.QuantileInterval(levels, q.share, stats.Confidence)
	}
	set := func(v float64) *float64 {
		if math.IsInf(v, 0) {
			return nil
		}
		return optional.Of(significant(q.fromLevel(v), 4))
	}
	c := q.found
	c.Passes, c.Low, c.High = set(value), set(high), set(low)
	if q.helps {
		c.Low, c.High = c.High, c.Low
	}
}

// precise reports whether the interval is as narrow as asked.
func (q *search) precise() bool {
	c := q.found
	return c.Low != nil && c.High != nil && q.axis.near(*c.Low, *c.High, 2*q.o.Precision)
}

// confirm counts the hours that meet the objective at the value found: the hours of the search, and as many fresh ones,
// at most 29, since the value was chosen by the former. It takes a smaller load, or more resources, until the count
// reaches the share asked for.
func (q *search) confirm(list []threshold) error {
	c := q.found
	levels := make([]float64, len(list))
	for i := range list {
		levels[i] = q.level(&list[i])
	}
	slices.Sort(levels)
	enough := func(n int) int { return int(math.Ceil(q.share*float64(n) - 1e-9)) } // hours that must meet it
	searched := len(list)
	n := searched + min(searched, hours.DefaultHours)
	least := enough(n)
	// The value with which just so many of the search do, as far as the thresholds tell.
	switch enough := levels[enough(searched)-1]; {
	case math.IsInf(enough, 1):
		c.Passes, c.Low, c.High = nil, nil, nil
	case math.IsInf(enough, -1):
		c.Passes = optional.Of(q.extreme())
	default:
		x := q.fromLevel(enough)
		if c.Passes == nil || q.toLevel(*c.Passes) < enough {
			c.Passes = &x
		}
		*c.Passes = q.axis.down(*c.Passes, q.helps)
	}
	q.fails(list, searched-enough(searched))
	const steps = 12
	for range steps {
		if c.Passes == nil {
			return nil
		}
		met, all, err := q.count(*c.Passes, n)
		if err != nil {
			return err
		}
		c.Hours = &report.SLOHours{Met: met, Of: n, HorizonS: q.horizon.Seconds(),
			ShareLow: optional.Of(stats.ShareAtLeast(met, n, stats.Confidence))}
		q.found.AtPasses = report.Pool(all)
		if met >= least {
			break
		}
		x := q.within(q.axis.step(*c.Passes, 1+q.resolution/4, q.helps))
		if x == *c.Passes {
			c.Passes = nil
			break
		}
		*c.Passes = x
	}
	c.Low, c.High = widened(c.Low, c.Passes, false), widened(c.High, c.Passes, true)
	return nil
}

// widened is the end of an interval that has a value inside.
func widened(end, value *float64, high bool) *float64 {
	if end == nil || value == nil || high && *end >= *value || !high && *end <= *value {
		return end
	}
	return optional.Of(*value)
}

// extreme is the value farthest out that was tried.
func (q *search) extreme() float64 {
	values := q.probes()
	if q.helps {
		return values[0].Value
	}
	return values[len(values)-1].Value
}

// fails notes the value at which one more hour fails than may.
func (q *search) fails(list []threshold, may int) {
	var failing []*threshold
	for i := range list {
		if t := &list[i]; !math.IsNaN(t.bad) {
			failing = append(failing, t)
		}
	}
	if len(failing) <= may {
		return
	}
	slices.SortStableFunc(failing, func(a, b *threshold) int {
		switch x, y := q.toLevel(a.bad), q.toLevel(b.bad); {
		case x > y:
			return -1
		case x < y:
			return 1
		}
		return 0
	})
	t := failing[may]
	q.found.Fails = optional.Of(t.bad)
	if t.badHour != nil {
		q.found.AtFails = t.badHour.Summary
	}
}

// count simulates all hours at a value.
func (q *search) count(x float64, n int) (met int, all []*report.Summary, err error) {
	list := make([]*hours.Hour, n)
	err = experiments.Parallel(q.ctx, n, q.o.Jobs, nil, func(ctx context.Context, i int) error {
		var err error
		list[i], err = q.hour(ctx, i, x)
		return err
	})
	if err != nil {
		return 0, nil, err
	}
	for _, h := range list {
		all = append(all, h.Summary)
		if h.Met {
			met++
		}
	}
	return met, all, nil
}

func (q *search) ranged() bool { return q.o.Low != 0 || q.o.High != 0 }

// within is the value moved into the bounds of the search.
func (q *search) within(x float64) float64 {
	if q.ranged() {
		return min(max(x, q.axis.round(q.o.Low)), q.axis.round(q.o.High))
	}
	return x
}

// look reports whether the first hour meets the objective at a value.
func (q *search) look(x float64) (bool, error) {
	h, err := q.hour(q.ctx, 0, x)
	return err == nil && h.Met, err
}

// bracket looks, by the first hour alone, for a value that meets the objective and one that does not. Each is NaN where
// there is none.
func (q *search) bracket() (good, bad float64, err error) {
	if q.ranged() {
		return q.bracketWithin(q.axis.round(q.o.Low), q.axis.round(q.o.High))
	}
	start, enough, err := q.outset()
	if err != nil {
		return 0, 0, err
	}
	passes, err := q.look(start)
	if err != nil {
		return 0, 0, err
	}
	// More of a load is worse, so that there is one direction to look in; of anything else both are tried in turn.
	up := &way{up: true, open: !q.axis.load || passes, at: start, factor: 1.5, end: enough}
	down := &way{open: !q.axis.load || !passes, at: start, factor: 1.5, end: math.Inf(-1)}
	if q.axis.whole {
		down.end = 1
	}
	const most = 16
	for k := 0; k < most && (up.open || down.open); k++ {
		for _, w := range []*way{up, down} {
			if !w.open {
				continue
			}
			last := w.at
			other, err := q.stride(w, passes)
			if err != nil {
				return 0, 0, err
			}
			if other {
				q.helps = w.up != passes
				if passes {
					return last, w.at, nil
				}
				return w.at, last, nil
			}
		}
	}
	if passes {
		return max(up.at, start), math.NaN(), nil
	}
	return math.NaN(), min(down.at, start), nil
}

// outset is the value to begin with, and one beyond which it need not look.
func (q *search) outset() (start, enough float64, err error) {
	start, enough = q.axis.start, math.Inf(1)
	if !q.axis.load {
		return start, enough, nil
	}
	sat, err := steady.Sketch(q.ctx, q.base)
	q.found.Effort.SearchRequests += sat.Simulated
	if err != nil || !(sat.Throughput > 0) {
		return start, enough, err
	}
	const (
		load = .75
		most = 16
	)
	start = significant(load*sat.Throughput, 2)
	if q.axis.key == scenario.UsersKey {
		start = max(1, math.Round(start*sat.Service))
	}
	return start, most * start, nil
}

// way is a direction in which a search strides.
type way struct {
	up, open bool
	at       float64 // the last value looked at
	factor   float64 // of a stride
	end      float64 // a value at which it ends
}

// stride looks at the next value of a way, and reports whether its verdict is another one than before.
func (q *search) stride(w *way, passes bool) (other bool, err error) {
	x := q.axis.step(w.at, w.factor, w.up)
	next, err := q.look(x)
	switch {
	case yamldoc.BadInput(err) || err == nil && x == w.at:
		w.open = false
		return false, nil
	case err != nil:
		return false, err
	}
	w.at, w.factor = x, min(w.factor*w.factor, 4)
	w.open = w.up && w.at < w.end || !w.up && w.at > w.end
	return next != passes, nil
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
	if l != h {
		q.helps = h
		if h {
			return high, low, nil
		}
		return low, high, nil
	}
	if l {
		return high, math.NaN(), nil
	}
	return math.NaN(), low, nil
}

func (q *search) result() *curve.Capacity {
	c := q.found
	c.MoreHelps, c.Runs = q.helps, len(q.trials.hours)
	c.Probes = q.probes()
	for _, h := range q.trials.hours {
		c.Effort.Add(h.Summary.Effort)
	}
	c.Explain()
	return c
}

// sorted is a list in rising order.
func sorted(list []float64) []float64 {
	slices.Sort(list)
	return list
}
