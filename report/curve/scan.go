package curve

import (
	"fmt"
	"math"
	"slices"

	"clifftop/report"
	"clifftop/report/layout"
)

// scan visits the points of a curve in order, and finds common properties and changes.
type scan struct {
	seen      int
	gaps      bool // some point has no throughput that can be judged
	low, high float64

	classes bool
	shared  []report.Warning // that all have

	finite, overloaded int // windows by their state

	short      int // windows
	firstShort float64

	// the rate that is furthest from what was asked for, where that is, and over how many seconds
	off, offAt, offS float64

	unsteady int // the first of the points that end the sweep without a steady state, -1 if the last has one
	met      int // the last of the points that keep the objective, from the lowest load on; -1 without
	missed   int // the first that does not; -1 without
	regained int // the first of the points that keep it up to the end, where an earlier one does not; -1 without
}

func newScan() *scan {
	return &scan{low: math.Inf(1), high: math.Inf(-1), unsteady: -1, met: -1, missed: -1, regained: -1}
}

// add looks at point i; s is nil where it has no result.
func (v *scan) add(c *Curve, i int, s *report.Summary) {
	p := &c.Points[i]
	v.seen++
	if s == nil {
		v.gaps, v.shared = true, nil
		return
	}
	c.Effort.Add(s.Effort)
	if c.Saturation == nil && report.LastKey(c.Over) == "rate" {
		c.Saturation = s.Saturation
	}
	switch s.Window.State {
	case report.Finite:
		v.finite++
	case report.Overloaded:
		v.overloaded++
	}
	if p.Short = s.TooShort(); p.Short {
		if v.short == 0 {
			v.firstShort = p.Value
		}
		v.short++
	}
	if x := s.Throughput.OutputTokensPerS; x != nil && !p.Short {
		v.low, v.high = min(v.low, *x), max(v.high, *x)
	} else {
		v.gaps = true
	}
	if !p.Short {
		v.offLoad(c, p, s)
	}
	v.classes = v.classes || len(s.Classes) > 0
	if v.seen == 1 {
		v.shared = slices.Clone(s.Warnings)
	}
	v.shared = slices.DeleteFunc(v.shared, func(w report.Warning) bool { return !slices.Contains(s.Warnings, w) })
	switch {
	case !s.Window.Unsettled():
		v.unsteady = -1
	case v.unsteady < 0:
		v.unsteady = i
	}
	switch met := s.Goodput.Met; {
	case met == nil:
	case !*met:
		v.regained = -1
		if v.missed < 0 {
			v.missed = i
		}
	case v.missed < 0:
		v.met = i
	case v.regained < 0:
		v.regained = i
	}
}

// offLoad looks for rates that the traffic did not have: bursts and slow changes average out over long runs only.
func (v *scan) offLoad(c *Curve, p *Point, s *report.Summary) {
	rate, n := s.Throughput.OfferedRequestsPerS, float64(s.Latency.E2E.N)
	// which is chance
	if p.Value <= 0 || report.LastKey(c.Over) != "rate" || rate == nil || math.Abs(*rate/p.Value-1) < 3/math.Sqrt(n) {
		return
	}
	if off := *rate/p.Value - 1; math.Abs(off) > math.Abs(v.off) {
		v.off, v.offAt, v.offS = off, p.Value, s.Window.EndS-s.Window.StartS
	}
}

func (v *scan) conclude(c *Curve) {
	c.scan = *v
	if v.short > 0 {
		c.Warnings = append(c.Warnings, report.Warning{Code: "points_short", Text: fmt.Sprintf(
			"%d of %d windows (*), the first of them at %s, are shorter than %d times what a request takes: the "+
				"system is still filling up there. Nothing is told from them; longer runs would tell",
			v.short, len(c.Points), axisValue(v.firstShort), report.MinResidences)})
	}
	if math.Abs(v.off) <= c.Thresholds.RateOff {
		return
	}
	side := "above"
	if v.off < 0 {
		side = "below"
	}
	c.Warnings = append(c.Warnings, report.Warning{Code: "rate_off", Text: fmt.Sprintf(
		"the rate that was offered, at %s, is %s %s that: the course of the traffic does not average out over %s. "+
			"Longer runs would meet more of it",
		axisValue(v.offAt), layout.Percent(math.Abs(v.off)), side, layout.Seconds(v.offS))})
}

// Level reports whether what varies is no load and throughput is the same at all of its values, but for the plateau of
// [Thresholds]: where the load decides the throughput, there is no peak to tell of.
func (c *Curve) Level() bool {
	if c.Peak == nil || c.Knee != nil || c.Collapse != nil || len(c.Points) < 2 || c.isLoad() {
		return false
	}
	v, x := &c.scan, c.Peak.OutputTokensPerS
	return !v.gaps && max(v.high-x, x-v.low) <= c.Thresholds.Plateau*x
}

// LevelsOff reports whether what varies is no load and throughput grows up to a plateau: the peak is where that begins.
func (c *Curve) LevelsOff() bool {
	return c.plateau > 0 && c.Collapse == nil && !c.isLoad() && !c.Level()
}

// isLoad reports whether what varies is a load, and not the value of something else.
func (c *Curve) isLoad() bool {
	return report.LastKey(c.Over) == "rate" || report.LastKey(c.Over) == "users"
}

// HasClasses reports whether any point has classes.
func (c *Curve) HasClasses() bool { return c.scan.classes }

// CommonWarnings are those that all points share: they are of the scenario rather than of a load.
func (c *Curve) CommonWarnings() []report.Warning { return c.scan.shared }
