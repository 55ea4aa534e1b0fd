package curve

import (
	"fmt"
	"slices"
)

// mostPoints is the number of evenly spaced points of a curve in tables and pictures; points named by findings are
// added.
const mostPoints = 400

// Downsampled returns the curve for tables and pictures. If it has many points, only some hundred evenly spaced ones
// remain, and the ones that the findings name. Files for programs have all points. The summaries of its points are set.
func (c *Curve) Downsampled() (*Curve, error) {
	if c.of > 0 || c.read == nil && len(c.Points) <= mostPoints {
		return c, nil
	}
	sample := *c
	sample.Points, sample.read = nil, nil
	for _, i := range c.picked() {
		p := c.Points[i]
		var err error
		if p.Summary, err = c.Summary(i); err != nil {
			return nil, err
		}
		sample.Points = append(sample.Points, p)
	}
	if len(sample.Points) < len(c.Points) {
		sample.of = len(c.Points)
	}
	return &sample, nil
}

// Omits says in a sentence that points are left out; it is empty where all are there.
func (c *Curve) Omits() string {
	if c.of == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d points are shown; curve.csv has all.", len(c.Points), c.of)
}

// picked are the points to show, in order.
func (c *Curve) picked() []int {
	n := len(c.Points)
	var picks []int
	if n <= mostPoints {
		for i := range n {
			picks = append(picks, i)
		}
		return picks
	}
	for k := range mostPoints {
		picks = append(picks, k*(n-1)/(mostPoints-1))
	}
	for _, at := range c.named() {
		if i, ok := slices.BinarySearchFunc(c.Points, at, func(p Point, x float64) int {
			switch {
			case p.Value < x:
				return -1
			case p.Value > x:
				return 1
			}
			return 0
		}); ok {
			picks = append(picks, i)
		}
	}
	v := &c.scan
	for _, i := range [...]int{v.unsteady - 1, v.unsteady, v.met, v.missed, v.regained - 1, v.regained} {
		if i >= 0 {
			picks = append(picks, i)
		}
	}
	slices.Sort(picks)
	return slices.Compact(picks)
}

// named are the loads that findings name.
func (c *Curve) named() []float64 {
	var at []float64
	if k := c.Knee; k != nil {
		at = append(at, k.Value)
		if k.MarginalValue != nil {
			at = append(at, *k.MarginalValue)
		}
	}
	if k := c.Peak; k != nil {
		at = append(at, k.Value)
	}
	for _, k := range []*Collapse{c.Collapse, c.UsefulCollapse} {
		if k != nil {
			at = append(at, k.Value)
		}
	}
	if k := c.FirstLimit; k != nil {
		at = append(at, k.Value)
	}
	for _, s := range c.WarningSigns {
		at = append(at, s.Value)
	}
	return at
}
