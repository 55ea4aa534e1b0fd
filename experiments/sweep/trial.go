package sweep

import (
	"context"
	"math"
	"sync"

	"clifftop/experiments/hours"
	"clifftop/experiments/scenario"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/report/curve"
)

// trials are the hours that a search has simulated. It may be used by several goroutines at a time.
type trials struct {
	mu     sync.Mutex
	setups map[float64]*trial
	hours  map[cell]*hours.Hour
}

// trial is the scenario at one value, or why it is not allowed.
type trial struct {
	once    sync.Once
	setup   *scenario.Setup
	refused error
}

// cell is one hour at one value.
type cell struct {
	value float64
	hour  int
}

func (q *search) setup(x float64) (*scenario.Setup, error) {
	q.trials.mu.Lock()
	t := q.trials.setups[x]
	if t == nil {
		t = &trial{}
		q.trials.setups[x] = t
	}
	q.trials.mu.Unlock()
	t.once.Do(func() { t.setup, t.refused = q.axis.at(q.s, x) })
	return t.setup, t.refused
}

// hour simulates an hour at a value, unless that was done before.
func (q *search) hour(ctx context.Context, k int, x float64) (*hours.Hour, error) {
	q.trials.mu.Lock()
	h := q.trials.hours[cell{x, k}]
	q.trials.mu.Unlock()
	if h != nil {
		return h, nil
	}
	u, err := q.setup(x)
	if err != nil {
		return nil, err
	}
	list, err := hours.Judge(ctx, u, hours.Options{First: k, Hours: 1, Horizon: q.horizon, Lead: q.lead, Jobs: 1,
		Check: q.o.Check, Cache: q.o.Cache})
	if err != nil {
		return nil, err
	}
	q.trials.mu.Lock()
	defer q.trials.mu.Unlock()
	q.trials.hours[cell{x, k}] = &list[0]
	if q.o.Progress != nil {
		done := len(q.trials.hours)
		q.o.Progress(done, max(done+1, runsPerHour*q.o.Hours))
	}
	return &list[0], nil
}

// runsPerHour is a forecast of how many values are tried with an hour, for progress.
const runsPerHour = 6

// threshold is what is known of the value up to which an hour meets the objective, or from which on if more helps.
type threshold struct {
	// good is the last value with which the hour met it, bad the next one with which it did not; NaN if there is none.
	good, bad         float64
	atGood, atBad     float64 // distances there
	goodHour, badHour *hours.Hour
}

func (t *threshold) note(x float64, h *hours.Hour) {
	if h.Met {
		t.good, t.atGood, t.goodHour = x, h.Distance, h
	} else {
		t.bad, t.atBad, t.badHour = x, h.Distance, h
	}
}

// between is the value, amid the ends, at which the distance is 0 on the line between them; where rounded is false it
// may be any number.
func (t *threshold) between(a axis) float64 {
	share := t.atGood / (t.atGood - t.atBad)
	if math.IsNaN(share) {
		share = .5
	}
	if t.good > 0 && t.bad > 0 {
		return t.good * math.Pow(t.bad/t.good, share)
	}
	return t.good + (t.bad-t.good)*share
}

// next is the value to try: that of the line, but not too near one of the ends.
func (t *threshold) next(a axis) (x float64, ok bool) {
	const least = .2
	low, high := min(t.good, t.bad), max(t.good, t.bad)
	x = t.between(a)
	if low > 0 {
		margin := math.Pow(high/low, least)
		x = min(max(x, low*margin), high/margin)
	} else {
		margin := (high - low) * least
		x = min(max(x, low+margin), high-margin)
	}
	if x = a.round(x); x <= low || x >= high {
		x, ok = a.between(low, high)
		return x, ok
	}
	return x, true
}

// threshold finds the value up to which hour k meets the objective, from a value on that is thought to be near.
func (q *search) threshold(ctx context.Context, k int, near float64) (threshold, error) {
	t := threshold{good: math.NaN(), bad: math.NaN()}
	x, factor := near, 1.06
	for math.IsNaN(t.good) || math.IsNaN(t.bad) {
		h, err := q.hour(ctx, k, x)
		if yamldoc.BadInput(err) && x != near {
			return t, nil // no such value is allowed
		}
		if err != nil {
			return t, err
		}
		t.note(x, h)
		next := q.within(q.axis.step(x, factor, h.Met != q.helps))
		if next == x || !(next > 0) && !q.ranged() || factor > 1e6 {
			return t, nil
		}
		x, factor = next, factor*factor
	}
	for !q.axis.near(t.good, t.bad, q.resolution) {
		x, ok := t.next(q.axis)
		if !ok {
			break
		}
		h, err := q.hour(ctx, k, x)
		if yamldoc.BadInput(err) {
			break
		}
		if err != nil {
			return t, err
		}
		t.note(x, h)
	}
	return t, nil
}

// probes are the values that were tried, in rising order.
func (q *search) probes() []curve.Probe {
	counts := map[float64]*curve.Probe{}
	var values []float64
	for c, h := range q.trials.hours {
		p := counts[c.value]
		if p == nil {
			p = &curve.Probe{Value: c.value}
			counts[c.value] = p
			values = append(values, c.value)
		}
		p.Of++
		if h.Met {
			p.Met++
		}
	}
	list := []curve.Probe{}
	for _, x := range sorted(values) {
		list = append(list, *counts[x])
	}
	return list
}
