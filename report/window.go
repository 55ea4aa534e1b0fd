package report

import (
	"fmt"
	"math"

	"clifftop/sim/clock"
)

// window is the part of the run that is measured: the buckets from…to-1.
type window struct {
	from, to   int
	start, end clock.Time
	until      clock.Time // of arrivals; the end of the last bucket
	stationary *bool
	growth     *float64
}

func (w *window) seconds() float64 { return w.end.Sub(w.start).Seconds() }

// window finds the buckets to measure.
func (c *Collector) window(s *Summary) window {
	t := &c.line
	runEnd := c.runEnd()
	var w window
	switch {
	case c.opts.End > 0 && runEnd >= c.opts.End:
		w.to = min(t.find(max(c.opts.End, 1)-1)+1, len(t.buckets))
	case c.totals.offered > 0:
		w.to = t.find(c.lastArrival) + 1
		done := int64(0)
		for i := range w.to {
			done += t.buckets[i].completions
		}
		if done == 0 || c.lastArrival == 0 {
			w.to = len(t.buckets)
			s.warn("window_whole_run", "nothing completed before the last arrival, so the window ends with the run")
		}
	}
	switch u := c.opts.Warmup; {
	case u.Auto:
		w.from = c.autoWarmup(&w)
	case u.Duration > 0:
		w.from = int((int64(u.Duration) + t.width - 1) / t.width)
		if w.from >= w.to {
			s.warn("window_empty", fmt.Sprintf("the warm-up of %s leaves nothing to measure", seconds(u.Duration.Seconds())))
		}
	}
	w.from = min(w.from, w.to)
	c.trend(&w)
	w.start, w.until = t.start(w.from), t.start(w.to)
	w.end = max(min(t.start(w.to), runEnd), w.start)
	s.Window = Window{
		StartS: w.start.Seconds(), EndS: w.end.Seconds(), WarmupS: w.start.Seconds(),
		Stationary: w.stationary, GrowthRequestsPerS: w.growth,
	}
	return w
}

// A run of fewer batches of five buckets, or of fewer requests, is too short to tell whether it is steady.
const (
	minBatches = 10
	minSteady  = 50
)

// autoWarmup is the number of buckets to cut: the larger of the cuts that the TTFT over time of arrival and
// the queue length over time ask for.
func (c *Collector) autoWarmup(w *window) int {
	buckets := c.line.buckets[:w.to]
	if len(c.opts.Stages) > 1 || len(buckets) < 5*minBatches || c.totals.offered < minSteady {
		return 0
	}
	ttfts, queues := make([]float64, len(buckets)), make([]float64, len(buckets))
	for i := range buckets {
		b := &buckets[i]
		ttfts[i] = b.ttft.Float64() / float64(b.samples)
		queues[i] = c.line.detail[i].levels[waiting].Mean()
	}
	cut, settled := MSER5(ttfts)
	other, calm := MSER5(queues)
	settled = settled && calm
	w.stationary = &settled
	return max(cut, other)
}

// backlogShare is the part of all arrivals that, still waiting at the end of the window, shows that an
// open loop asks for more than the system can give.
const backlogShare = 0.05

// trend looks for a system that fills up, in an open loop. Either the number of requests in the system
// grows from third to third of the window by more than chance would let it in a queue at the
// brink of stability, whose length wanders like the square root of the arrivals. Or, where the load
// wanders, a good part of all requests waits at the end of the window.
func (c *Collector) trend(w *window) {
	n := w.to - w.from
	if c.opts.Closed || len(c.opts.Stages) > 1 || n < 5*minBatches || c.totals.offered < minSteady {
		return
	}
	inside, arrivals := make([]float64, n), int64(0)
	for i := range n {
		inside[i] = c.line.detail[w.from+i].levels[inSystem].Mean()
		arrivals += c.line.buckets[w.from+i].arrivals
	}
	slope := growth(inside)
	first, middle, last := mean(inside[:n/3]), mean(inside[n/3:n-n/3]), mean(inside[n-n/3:])
	grows := first < middle && middle < last && slope*float64(n) > max(3*math.Sqrt(float64(arrivals)), first/2)
	if w.stationary == nil {
		w.stationary = new(bool)
		*w.stationary = true
	}
	perSecond := float64(clock.Second) / float64(c.line.width)
	if grows {
		*w.stationary = false
		w.growth = number(slope * perSecond)
		return
	}
	backlog, sent := 0.0, int64(0)
	for i := w.to - max(1, n/20); i < w.to; i++ {
		backlog += c.line.detail[i].levels[waiting].Mean() / float64(max(1, n/20))
	}
	for i := range w.to {
		sent += c.line.buckets[i].arrivals
	}
	if backlog > max(backlogShare*float64(sent), 3*math.Sqrt(float64(sent))) {
		*w.stationary = false
		w.growth = number(backlog / float64(w.to) * perSecond)
	}
}
