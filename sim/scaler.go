package sim

import (
	"fmt"

	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
)

// scaling is a scaler at work.
type scaling struct {
	*Scaler
	load *autoscale.History
}

// scrapeLoad reads the metric of the replicas that can be reached.
func (e *Simulation) scrapeLoad(s *scaling, k int) {
	sum := 0.0
	if s.Metric == autoscale.Waiting || s.Metric == autoscale.Concurrency {
		sum = float64(e.heldFor(s))
	}
	for i := s.First; i <= s.Last; i++ {
		if e.reachable(i) {
			sum += e.replicas[i].gauge(s.Metric, e.now)
		}
	}
	s.load.Add(e.now, sum)
	e.lifecycle.plan(e.now.Add(s.Scrape), plannedScrape, k, 0)
}

// heldFor is the number of requests at the router that wait for replicas of a scaler.
func (e *Simulation) heldFor(s *scaling) (n int) {
	if e.disaggregated == nil {
		return e.levels.Held
	}
	for _, ref := range e.lifecycle.held {
		r := &e.pending[ref].Request
		if engine.MayLeave(r) && e.clients.Find(r.ID) == nil { // its client left
			continue
		}
		if answers := e.handedOff(r) || e.disaggregated.direct(r); answers == e.disaggregated.decodes(int32(s.First)) {
			n++
		}
	}
	return n
}

// gauge is a metric at an instant that is not past the next boundary.
func (r *Replica) gauge(m autoscale.Metric, at clock.Time) float64 {
	x := r.metrics(at, at)
	switch m {
	case autoscale.Waiting:
		return float64(x.Waiting)
	case autoscale.Running:
		return float64(x.Running)
	case autoscale.KVUsage:
		return x.KVUsage()
	}
	return float64(x.Waiting + x.Running)
}

// scale is a turn of a policy.
func (e *Simulation) scale(s *scaling, k int) error {
	state := autoscale.State{Now: e.now, Least: s.Least, Load: s.load}
	for i := s.First; i <= s.Last; i = e.lifecycle.after(i) {
		if l := &e.lifecycle.of[i]; l.wanted {
			state.Wanted++
			if l.state == event.Ready {
				state.Ready++
			}
		}
	}
	wants, next := s.Policy.Turn(&state)
	if next <= e.now {
		return fmt.Errorf("sim: at %v: policy %T wants to be asked again at %v", e.now, s.Policy, next)
	}
	e.lifecycle.plan(next, plannedScale, k, 0)
	wants = min(max(wants, s.Least), s.Most)
	for ; state.Wanted < wants; state.Wanted++ {
		if !e.addOne(s) {
			break
		}
	}
	for ; state.Wanted > wants; state.Wanted-- {
		e.removeOne(s)
	}
	return nil
}

// addOne starts the first replica that is off and can be started, if there is one.
func (e *Simulation) addOne(s *scaling) bool {
	for i := s.First; i <= s.Last; i = e.lifecycle.after(i) {
		if l := &e.lifecycle.of[i]; l.state == event.Off && !l.wanted && !l.failed {
			l.wanted = true
			e.begin(i)
			return true
		}
	}
	return false
}

// removeOne removes a replica that is wanted.
func (e *Simulation) removeOne(s *scaling) {
	last := -1
	for i := s.First; i <= s.Last; i = e.lifecycle.after(i) {
		if l := &e.lifecycle.of[i]; l.wanted &&
			(last < 0 || l.state != event.Ready || e.lifecycle.of[last].state == event.Ready) {
			last = i
		}
	}
	l := &e.lifecycle.of[last]
	l.wanted = false
	switch l.state {
	case event.Ready:
		e.drain(last, 0)
	case event.Starting:
		l.number++
		e.off(last)
	case event.Down:
		l.number++
		e.lifecycle.plan(max(e.now, e.idleFrom(last)), plannedOff, last, l.number)
	case event.Off: // it was to start again
		l.number++
		e.rollOn(l)
	}
}
