package collect

import (
	"math"

	"clifftop/report"
	"clifftop/sim/clock"
)

// sharedWindow is the window of several runs that are compared. until and end are 0 where each run keeps its own end.
type sharedWindow struct{ start, until, end clock.Time }

// ShareWindow gives runs of the same traffic one window, so that their summaries are of the same instants and of the
// same requests. The window begins at the latest of their warm-up cuts, but not after the middle, and ends at the
// earliest of their ends. Where a run is measured whole because nothing completes before the last arrival, each run
// keeps its end: then all requests are in every window. What a run says about its steady state stays its own. The
// summaries have to be asked for again.
func ShareWindow(all []*Collector) {
	width := int64(0)
	for _, c := range all {
		c.shared = nil
		c.settle()
		width = max(width, c.line.width)
	}
	shared := sharedWindow{until: math.MaxInt64}
	whole := false
	for _, c := range all {
		for c.line.width < width {
			c.line.halve()
		}
		var s report.Summary
		w := c.window(&s)
		whole = whole || len(s.Warnings) > 0 && s.Warnings[0].Code == wholeRun
		shared.start, shared.until = max(shared.start, w.start), min(shared.until, w.until)
		shared.end = max(shared.end, w.end)
	}
	shared.start = min(shared.start, shared.until/2/clock.Time(width)*clock.Time(width))
	shared.end = min(shared.end, shared.until)
	if whole {
		shared.until, shared.end = 0, 0
	}
	for _, c := range all {
		own := shared
		c.shared = &own
	}
}

// share puts the window of all runs in the place of the run's own.
func (c windowFinder) share(w *window) {
	width := clock.Time(c.line.width)
	bucketAt := func(at clock.Time) int { return min(int((at+width-1)/width), len(c.line.buckets)) }
	w.from = bucketAt(c.shared.start)
	if c.shared.until > 0 {
		w.to = bucketAt(c.shared.until)
	}
	w.from = min(w.from, w.to)
}
