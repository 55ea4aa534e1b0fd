package sim

import (
	"fmt"

	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// scaling is a scaler with the history of its metric.
type scaling struct {
	*Scaler
	load *autoscale.History
}

// scrapeLoad reads the metric of the replicas that can be reached.
func (l *lifecycle) scrapeLoad(s *scaling, k int) {
	sum := 0.0
	if s.Metric.CountsHeld() {
		sum = float64(l.heldFor(s))
	}
	for i := s.First; i <= s.Last; i++ {
		if l.reachable(i) {
			sum += l.replicas[i].gauge(s.Metric, l.now)
		}
	}
	s.load.Add(l.now, sum)
	l.plan(l.now.Add(s.Scrape), plannedScrape, k, 0)
}

// heldFor is the number of requests at the router that wait for replicas of a scaler.
func (l *lifecycle) heldFor(s *scaling) (n int) {
	d := l.disaggregated
	if d == nil {
		return l.levels.Held
	}
	for _, ref := range l.held {
		r := &l.sim.frontEnd.requests[ref].Request
		if l.sim.clients.left(r) {
			continue
		}
		if decode := d.handedOff(r) || d.direct(r); decode == d.decodes(int32(s.First)) {
			n++
		}
	}
	return n
}

// gauge is a metric at an instant that is not past the next boundary.
func (r *Replica) gauge(m autoscale.Metric, at clock.Time) float64 {
	x := r.metrics(at, at)
	return m.Of(autoscale.Gauges{Waiting: x.Waiting, Running: x.Running, KVUsage: x.KVUsage()})
}

// scale lets a policy decide and starts or removes replicas.
func (l *lifecycle) scale(s *scaling, k int) error {
	state := autoscale.State{Now: l.now, Least: s.Least, Load: s.load}
	for i := s.First; i <= s.Last; i = l.after(i) {
		if status := &l.of[i]; status.wanted {
			state.Wanted++
			if status.state == event.Ready {
				state.Ready++
			}
		}
	}
	wants, next := s.Policy.Turn(&state)
	if next <= l.now {
		return fmt.Errorf("sim: at %v: policy %T returned %v as the next instant to decide, which is not later", l.now,
			s.Policy, next)
	}
	l.plan(next, plannedScale, k, 0)
	wants = min(max(wants, s.Least), s.Most)
	for ; state.Wanted < wants; state.Wanted++ {
		if !l.addOne(s) {
			break
		}
	}
	for ; state.Wanted > wants; state.Wanted-- {
		l.removeOne(s)
	}
	return nil
}

// addOne starts the first replica that is off and may start, if there is one.
func (l *lifecycle) addOne(s *scaling) bool {
	for i := s.First; i <= s.Last; i = l.after(i) {
		if status := &l.of[i]; status.state == event.Off && !status.wanted && !status.failed {
			status.wanted = true
			l.begin(i)
			return true
		}
	}
	return false
}

// removeOne removes a running or starting replica.
func (l *lifecycle) removeOne(s *scaling) {
	last := -1
	for i := s.First; i <= s.Last; i = l.after(i) {
		if status := &l.of[i]; status.wanted &&
			(last < 0 || status.state != event.Ready || l.of[last].state == event.Ready) {
			last = i
		}
	}
	status := &l.of[last]
	status.wanted = false
	switch status.state {
	case event.Ready:
		l.drain(last, 0)
	case event.Starting:
		status.instance++
		l.off(last)
	case event.Down:
		status.instance++
		l.plan(max(l.now, l.idleFrom(last)), plannedOff, last, status.instance)
	case event.Off: // it was waiting to start again
		status.instance++
		l.rollOn(status)
	}
}
