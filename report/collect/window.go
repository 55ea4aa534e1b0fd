package collect

import (
	"fmt"
	"math"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// window is the part of the run that is measured: the buckets from…to-1.
type window struct {
	from, to   int
	start, end clock.Time
	until      clock.Time // of arrivals; the end of the last bucket
	stationary *bool
	growth     *float64
	kept       *samples // the samples of the window, if they were separated
	sketched   bool     // the details hold all latencies, even where samples are kept
}

func (w *window) seconds() float64 { return w.end.Sub(w.start).Seconds() }

// wholeRun is the code of the warning that the window ends with the run.
const wholeRun = "window_whole_run"

// window finds the buckets to measure.
func (c windowFinder) window(s *report.Summary) window {
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
			s.AddWarning(wholeRun,
				"nothing completed before the last arrival, so the window ends with the run")
		}
	}
	switch u := c.opts.Warmup; {
	case u.Auto:
		w.from = c.autoWarmup(&w)
	case u.Duration > 0:
		w.from = int((int64(u.Duration) + t.width - 1) / t.width)
		if w.from >= w.to {
			s.AddWarning("window_empty",
				fmt.Sprintf("the warm-up of %s leaves nothing to measure", layout.Seconds(u.Duration.Seconds())))
		}
	}
	w.from = min(w.from, w.to)
	c.trend(&w)
	if w.growth != nil && c.opts.Warmup.Auto { // nothing will settle, however much is cut
		w.from = min(w.from, int(int64(fills*c.meanService())/t.width)+1)
	}
	if c.shared != nil {
		c.share(&w)
	}
	w.start, w.until = t.start(w.from), t.start(w.to)
	if end := c.opts.End; end > 0 && runEnd >= end && w.until > end { // buckets have doubled since
		w.until = end
	}
	w.end = max(min(w.until, runEnd), w.start)
	if c.shared != nil && c.shared.until > 0 {
		w.until, w.end = c.shared.until, c.shared.end
	}
	s.Window = report.Window{
		StartS: w.start.Seconds(), EndS: w.end.Seconds(), WarmupS: w.start.Seconds(),
		Stationary: w.stationary, GrowthRequestsPerS: w.growth, Backlog: c.backlog(),
	}
	return w
}

// A run of fewer batches of five buckets, or of fewer requests, is too short to tell whether it is steady.
const (
	minBatches = 10
	minSteady  = 50
)

// judgeLength takes back what was said about a steady state where the window is too short to tell, since a
// system that fills up from empty looks like one that asks for too much.
func judgeLength(s *report.Summary, w *window) {
	if !s.TooShort() {
		return
	}
	w.stationary, w.growth = nil, nil
	s.Window.Stationary, s.Window.GrowthRequestsPerS = nil, nil
	s.AddWarning("window_short", fmt.Sprintf(
		"the window is only %.2g times as long as a request takes (want a run of %d times or more): the system is still "+
			"filling up, and throughput is understated", s.Residences(), report.MinResidences))
}

// A system that starts empty is full after so many times what a request takes. A queue needs so many
// times the wait in it to forget how it started: near saturation it is slow to change.
const (
	fills   = 5
	forgets = 40
)

// finished is the number of attempts that ended.
func (c windowFinder) finished() float64 { return float64(c.totals.recorded) }

// meanService is the mean time from admission to release, in picoseconds.
func (c windowFinder) meanService() float64 {
	return c.totals.running.Float64() / max(c.finished(), 1)
}

// transient bounds the time in which a system forgets how it started. The wait of the first requests counts as
// well as the mean, since a backlog at the start makes it long.
func (c windowFinder) transient(buckets []bucket) clock.Duration {
	wait := c.totals.queue.Float64() / max(c.finished(), 1)
	for i := range buckets {
		if b := &buckets[i]; b.samples > 0 {
			wait = max(wait, b.ttft.Float64()/float64(b.samples))
			break
		}
	}
	return clock.Duration(min(fills*c.meanService()+forgets*wait, math.MaxInt64/2))
}

// wanders reports whether the rate of arrivals changes over time by more than chance lets a steady one
// change: the counts of its parts have too large a variance.
func wanders(buckets []bucket) bool {
	const parts = 20
	const much = 43.8 // the 99.9th percentile of χ² with 19 degrees of freedom
	counts, sum := [parts]float64{}, 0.0
	n := len(buckets) / parts * parts
	for i := range n {
		counts[i*parts/n] += float64(buckets[i].arrivals)
		sum += float64(buckets[i].arrivals)
	}
	chi := 0.0
	for _, k := range counts {
		chi += (k - sum/parts) * (k - sum/parts) / (sum / parts)
	}
	return chi > much
}

// changes reports whether the traffic or the fleet changes by design during the run. Then no steady state is expected,
// and no warm-up is cut.
func (c windowFinder) changes() bool { return len(c.opts.Stages) > 1 || c.opts.Lifecycle }

// autoWarmup is the number of buckets to cut: the larger of the cuts that the TTFT over time of arrival and
// the queue length over time ask for. A start is cut only if it differs from the rest by more than chance: otherwise
// stretches of bad luck would be cut and those of good luck kept, so that latencies would come out too low. The
// course of a rate that wanders is no warm-up either: there the cut ends when the system must have forgotten its start,
// and is a small part of the run.
func (c windowFinder) autoWarmup(w *window) int {
	buckets := c.line.buckets[:w.to]
	if c.changes() || len(buckets) < 5*minBatches || c.totals.offered < minSteady {
		return 0
	}
	ttfts, queues := make([]float64, len(buckets)), make([]float64, len(buckets))
	for i := range buckets {
		b := &buckets[i]
		ttfts[i] = b.ttft.Float64() / float64(b.samples)
		queues[i] = c.line.detail[i].levels[waiting].Mean()
	}
	settled, cut := true, 0
	wandering := !c.opts.Closed && wanders(buckets)
	most := int(min(int64(c.transient(buckets))/c.line.width, int64(len(buckets)/10)))
	for _, series := range [][]float64{ttfts, queues} {
		d, calm := MSER5(series)
		switch {
		case wandering:
			d, calm = mser5(series, most), true
		case !startDiffers(series, d):
			d, calm = 0, true
		}
		cut, settled = max(cut, d), settled && calm
	}
	w.stationary = &settled
	return cut
}

// backlogShare is the part of all arrivals that, still waiting at the end of the window, shows that an
// open loop asks for more than the system can give.
const backlogShare = 0.05

// trend looks for a system that fills up, in an open loop. Either the number of requests in the system
// grows from third to third of the window by more than chance would let it in a queue at the
// brink of stability, whose length wanders like the square root of the arrivals. Or, where the load
// wanders, a good part of all requests waits at the end of the window.
//
// It looks at what comes after the system has filled, if that is half the run or more.
func (c windowFinder) trend(w *window) {
	from := w.from
	if full := int(int64(fills*c.meanService()) / c.line.width); full <= w.to/2 {
		from = max(from, full)
	}
	n := w.to - from
	if c.opts.Closed || c.changes() || n < 5*minBatches || c.totals.offered < minSteady {
		return
	}
	inside, arrivals := make([]float64, n), int64(0)
	for i := range n {
		inside[i] = c.line.detail[from+i].levels[inSystem].Mean()
		arrivals += c.line.buckets[from+i].arrivals
	}
	slope := growth(inside)
	first, middle, last := stats.Mean(inside[:n/3]), stats.Mean(inside[n/3:n-n/3]), stats.Mean(inside[n-n/3:])
	grows := first < middle && middle < last && slope*float64(n) > max(3*math.Sqrt(float64(arrivals)), first/2)
	if w.stationary == nil {
		w.stationary = new(bool)
		*w.stationary = true
	}
	perSecond := float64(clock.Second) / float64(c.line.width)
	if grows {
		*w.stationary = false
		w.growth = stats.Finite(slope * perSecond)
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
		w.growth = stats.Finite(backlog / float64(w.to) * perSecond)
	}
}

// backlog measures how fast the system completes requests while some wait, before and after the last arrival. It is nil
// if that is surely not less than arrives, if it takes too short a time, or if requests failed: clients that give up
// change what the system can do.
func (c windowFinder) backlog() *report.Backlog {
	t := &c.line
	if c.opts.Closed || c.changes() || c.totals.offered == 0 || c.totals.recorded > c.totals.outcomes[event.Completed] {
		return nil
	}
	waits := func(i int) bool {
		h := &t.detail[i].levels[waiting]
		return h.Count() > 0 && h.WeightOfZero() == 0
	}
	last := t.index(c.lastArrival)
	from, to := last+1, last+1
	for from > 0 && waits(from-1) {
		from--
	}
	for to < len(t.buckets) && waits(to) {
		to++
	}
	from += int(int64(c.meanService())/t.width) + 1 // the batch fills
	if to-from < mostBatches || from >= last {
		return nil
	}
	f := fraction{num: make([]float64, to-from), den: make([]float64, to-from)}
	width := clock.Duration(t.width).Seconds()
	arrived, completed := 0.0, 0.0
	for i := range f.num {
		b := &t.buckets[from+i]
		f.num[i], f.den[i] = float64(b.completions), width
		completed += f.num[i]
		arrived += float64(b.arrivals)
	}
	low, high, ok := f.interval()
	offered := arrived / c.lastArrival.Sub(t.start(from)).Seconds()
	if !ok || completed < mostBatches*batchSamples || high >= offered {
		return nil
	}
	return &report.Backlog{RequestsPerS: (low + high) / 2, CI95: [2]float64{low, high}}
}

// windowFinder reads the sums of a collector to find the part of the run to measure.
type windowFinder struct{ *Collector }

// window finds the buckets to measure.
func (c *Collector) window(s *report.Summary) window { return windowFinder{c}.window(s) }
