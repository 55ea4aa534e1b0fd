package collect

import (
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Fleets whose replicas start, fail and end. A replica is paid for as long as it is not off. Shares of the fleet's time
// and of its hardware are those of the time that is paid.

var _ event.LifecycleObserver = (*Collector)(nil)

// ReplicaState implements [event.LifecycleObserver].
func (c *Collector) ReplicaState(at clock.Time, replica int, s event.State) {
	if !c.opts.Lifecycle || replica >= len(c.parts) {
		return
	}
	p := c.parts[replica]
	p.fillState(at)
	if was := p.state; (was == event.Off) != (s == event.Off) {
		n := 1
		if s == event.Off {
			n = -1
		}
		if len(c.paid) == 0 {
			c.paid = append(c.paid, paidFrom{0, len(c.parts)})
		}
		c.paid = append(c.paid, paidFrom{at, c.paid[len(c.paid)-1].replicas + n})
	}
	p.state = s
	c.now = max(c.now, at)
}

// paidFrom is the number of replicas paid for from an instant on.
type paidFrom struct {
	at       clock.Time
	replicas int
}

// mostPaid is the highest number of replicas paid for in a window.
func (c summariser) mostPaid(w *window) int {
	most := len(c.parts)
	for _, x := range c.paid {
		switch {
		case x.at <= w.start:
			most = x.replicas
		case x.at < w.end:
			most = max(most, x.replicas)
		}
	}
	return most
}

// fillState accounts for the state that a replica had until the instant to.
func (p *part) fillState(to clock.Time) {
	from := p.stateSince
	if from >= to {
		return
	}
	p.stateSince = to
	p.line.find(to - 1) // makes room once, so that the width stays
	for from < to {
		i := p.line.find(from)
		end := min(p.line.end(i), to)
		p.line.buckets[i].states[p.state] += uint64(end - from)
		from = end
	}
}

// fillHeld accounts for the requests that were held at the router until the instant to.
func (c *Collector) fillHeld(to clock.Time) {
	from := c.heldSince
	if from >= to {
		return
	}
	c.heldSince = to
	if c.held == 0 {
		return
	}
	c.line.find(to - 1)
	for from < to {
		i := c.line.find(from)
		end := min(c.line.end(i), to)
		b := &c.line.buckets[i]
		b.held = b.held.Add(clock.Mul64(uint64(c.held), uint64(end-from)))
		from = end
	}
}

// paidPicos is for how long a unit was paid for in a window, and how long it was ready or draining.
func (u *unit) paidPicos(w *window) (paid, serving clock.Uint128) {
	if !u.Lifecycle {
		all := clock.Mul64(uint64(w.end.Sub(w.start)), uint64(u.Replicas))
		return all, all
	}
	s := &u.sum.states
	serves := s[event.Ready] + s[event.Draining]
	return clock.Uint128{Lo: serves + s[event.Starting] + s[event.Down]}, clock.Uint128{Lo: serves}
}

// engineSeconds is for how long the engines of a system were paid for in a window.
func (o *Options) engineSeconds(w *window, units []unit) float64 {
	if !o.Lifecycle {
		return w.seconds() * float64(o.Replicas)
	}
	sum := 0.0
	for i := range units {
		paid, _ := units[i].paidPicos(w)
		sum += paid.Float64() * 1e-12
	}
	return sum
}

// lineSeconds is the same of pipeline stages, where replicas come and go.
func lineSeconds(w *window, units []unit) float64 {
	sum := 0.0
	for i := range units {
		paid, _ := units[i].paidPicos(w)
		sum += paid.Float64() * 1e-12 * float64(units[i].PipelineStages)
	}
	return sum
}

// gpuSecondsPaid is the same of GPUs, where replicas come and go.
func (c summariser) gpuSecondsPaid(w *window, units []unit) float64 {
	sum := 0.0
	for i := range units {
		paid, _ := units[i].paidPicos(w)
		sum += paid.Float64() * 1e-12 * float64(units[i].GPUs)
	}
	return sum
}

// blockSeconds is the same of KV blocks, while replicas serve.
func (o *Options) blockSeconds(w *window, units []unit) float64 {
	if !o.Lifecycle {
		return w.seconds() * float64(o.UsableBlocks)
	}
	sum := 0.0
	for i := range units {
		_, serves := units[i].paidPicos(w)
		sum += serves.Float64() * 1e-12 * float64(units[i].UsableBlocks)
	}
	return sum
}

// asleep is how much of a unit's paid time it could not serve, by why, in picoseconds; and its time off.
func (u *unit) asleep() (starting, down, off uint64) {
	s := &u.sum.states
	return s[event.Starting], s[event.Down], s[event.Off]
}

// replicaCounts tells of the replicas of a fleet that come and go.
func (c summariser) replicaCounts(w *window, sum *bucket, units []unit) *report.ReplicaCounts {
	if !c.opts.Lifecycle || c.parts == nil || w.end <= w.start {
		return nil
	}
	var states [event.States]float64
	gpuS, idleS := c.gpuSecondsPaid(w, units), 0.0
	for i := range units {
		u := &units[i]
		for k, picos := range u.sum.states {
			states[k] += float64(picos) * 1e-12
		}
		t := u.gpuTime(w) // which counts each stage of a pipeline
		idleS += t.idle.Float64() * 1e-15 * float64(u.GPUs) / float64(u.PipelineStages)
	}
	mean := func(s event.State) *float64 { return stats.Ratio(states[s], w.seconds()) }
	perHour := func(n int64) *float64 { return stats.Ratio(float64(n), gpuS/3600) }
	return &report.ReplicaCounts{
		Mean: stats.Ratio(states[event.Ready]+states[event.Starting]+states[event.Draining]+states[event.Down],
			w.seconds()), Max: c.mostPaid(w),
		Ready: mean(event.Ready), Starting: mean(event.Starting), Draining: mean(event.Draining),
		Down:     mean(event.Down),
		GPUHours: stats.Finite(gpuS / 3600), IdleGPUHours: stats.Finite(idleS / 3600),
		RequestsPerGPUHour: perHour(sum.completions), OutputTokensPerGPUHour: perHour(sum.output),
		Held: stats.Ratio(sum.held.Float64()*1e-12, w.seconds()),
	}
}

// hourlyPrice is the price of what was paid for in a window, for an hour of it; 0 if unknown.
func (c summariser) hourlyPrice(w *window) float64 {
	if !c.opts.Lifecycle || c.opts.USDPerHour == 0 || w.end <= w.start {
		return c.opts.USDPerHour
	}
	price := 0.0
	for i, p := range c.parts {
		u := unit{Options: &p.opts, sum: p.line.sum(w.from, w.to)}
		paid, _ := u.paidPicos(w)
		price += c.opts.Fleet[i].USDPerHour * (paid.Float64() / float64(w.end.Sub(w.start)))
	}
	return price
}

// seriesOfReplicas completes a point of the series by the replicas of bucket i, which lasted so many seconds.
func (c summariser) seriesOfReplicas(p *report.SeriesPoint, i int, length float64) {
	var states [event.States]float64
	for _, q := range c.parts {
		for k, picos := range q.line.buckets[i].states {
			states[k] += float64(picos) * 1e-12
		}
	}
	paid := states[event.Ready] + states[event.Draining] + states[event.Starting] + states[event.Down]
	p.ReplicasReady, p.ReplicasPaid = stats.Finite(states[event.Ready]/length), stats.Finite(paid/length)
	p.HeldMean = stats.Finite(c.line.buckets[i].held.Float64() * 1e-12 / length)
	b := &c.line.buckets[i]
	p.BusyFraction = 0
	if paid > 0 {
		p.BusyFraction = b.busy.Float64() / 1e15 / paid
	}
	if c.opts.UsableBlocks > 0 {
		w := window{from: i, to: i + 1, start: c.line.start(i), end: c.line.end(i)}
		p.KVUsageMean = stats.Ratio(b.blocks.Float64()/1e15, c.opts.blockSeconds(&w, c.units(&w, b, nil)))
	}
}
