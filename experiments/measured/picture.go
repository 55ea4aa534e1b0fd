package measured

import (
	"fmt"
	"math"

	"clifftop/report/chart"
)

// Picture shows the measured distributions beside the laws that stand for them.
func (t *Traffic) Picture(caption string) *chart.Lines {
	worst := 0.0
	p := &chart.Lines{Caption: caption, Beside: true, Notes: []string{"Each line is the share of values up to the " +
		"one on the " +
		"axis. KS is the largest vertical distance of the two."}}
	for _, f := range t.Fits {
		worst = max(worst, f.Distance)
		p.Panels = append(p.Panels, f.panel())
		p.Notes = append(p.Notes, fmt.Sprintf("%s: %s; %d values, KS %.3f.", f.Title, f.Law,
			len(f.Measured), f.Distance))
	}
	p.Title = fmt.Sprintf("The fitted traffic differs from the measured one by at most %.0f percentage points",
		math.Ceil(100*worst))
	return p
}

// panel draws both cumulative distributions.
func (f *Fit) panel() chart.Panel {
	const points = 200
	n := len(f.Measured)
	low, high := f.Measured[0], f.Measured[n-1]
	if low == high {
		low, high = low*0.9, high*1.1+1
	}
	measured, fitted := chart.Line{Name: "measured"}, chart.Line{Name: "fitted"}
	last := -1.0
	for i := range points + 1 {
		k := i * (n - 1) / points
		if x := f.Measured[k]; x != last {
			for k+1 < n && f.Measured[k+1] == x {
				k++
			}
			measured.Points = append(measured.Points, chart.Point{X: x, Y: float64(k+1) / float64(n)})
			last = x
		}
		x := low + (high-low)*float64(i)/points
		fitted.Points = append(fitted.Points, chart.Point{X: x, Y: f.Below(x)})
	}
	measured.Stepped = n < points
	return chart.Panel{Title: f.Title,
		X: chart.Scale{Title: f.Unit}, Y: chart.Scale{Title: "share", Unit: chart.Fraction, Max: 1},
		Lines: []chart.Line{measured, fitted}}
}
