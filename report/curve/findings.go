package curve

import (
	"fmt"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
)

// Findings returns the findings as pairs of a heading and a text.
func (c *Curve) Findings() [][2]string {
	var f findings
	f.reserve(c)
	f.saturation(c.Saturation)
	f.shape(c)
	f.capacity(c.Capacity)
	f.collapses(c)
	f.limits(c)
	f.signs(c.WarningSigns)
	return f
}

type findings [][2]string

func (f *findings) add(head, format string, args ...any) {
	*f = append(*f, [2]string{head, fmt.Sprintf(format, args...)})
}

// reserve says how far the rest can be trusted.
func (f *findings) reserve(c *Curve) {
	if c.Partial {
		f.add("partial", "the sweep was interrupted: loads are missing, and what follows may change with them")
	}
	if c.Accuracy != nil {
		f.add("error", "%s", report.ErrorText(c.Predictive, c.Accuracy))
	}
	for _, w := range c.Warnings {
		f.add("warning", "%s", w.Text)
	}
}

// saturation says how much the system can carry in the long run.
func (f *findings) saturation(r *report.Saturation) {
	between := func(ci [2]float64) string { return axisValue(ci[0]) + " to " + axisValue(ci[1]) }
	switch {
	case r == nil:
	case r.Metastable:
		f.add("saturation", "metastable: a system that starts empty keeps up with %s requests/s (%s), but one with a "+
			"backlog recovers only below %s (%s)", axisValue(r.HighRequestsPerS), between(r.HighCI95),
			axisValue(r.LowRequestsPerS), between(r.LowCI95))
	default:
		f.add("saturation", "%s requests/s (%s)", axisValue(r.HighRequestsPerS), between(r.HighCI95))
	}
}

// Shape adds the knee and the peak.
func (f *findings) shape(c *Curve) {
	if k := c.Knee; k != nil {
		f.add("knee", "%s (%s)", axisValue(k.Value), k.Evidence)
		if k.MarginalValue != nil {
			f.add("little gain beyond", "%s", axisValue(*k.MarginalValue))
		}
	}
	if c.Level() {
		f.add("level", "about %s output tokens/s at every %s", layout.Digits(c.Peak.OutputTokensPerS),
			report.LastKey(c.Over))
	} else if c.Peak != nil {
		f.peak(c)
	}
}

// peak tells the highest throughput, its price, and whether there may be more beyond.
func (f *findings) peak(c *Curve) {
	p, name := c.Peak, "peak"
	if c.LevelsOff() {
		name = "plateau"
	}
	price := ""
	if p.USDPerMillionOutput != nil {
		price = fmt.Sprintf(", %s per million of them", layout.Dollars(*p.USDPerMillionOutput))
	}
	beyond := ""
	switch {
	case c.plateau > 0:
		beyond = fmt.Sprintf("; higher values bring %s more at most", layout.Percent(c.plateau))
	case p.AtEdge && p.Value < c.Points[len(c.Points)-1].Value:
		beyond = ", the highest value that can be judged: the true peak may lie beyond"
	case p.AtEdge:
		beyond = ", the highest value swept: the true peak may lie beyond"
	}
	f.add(name, "%s output tokens/s at %s%s%s", layout.Digits(p.OutputTokensPerS), axisValue(p.Value), price, beyond)
}

// capacity tells the highest load that meets the objective, if one was looked for.
func (f *findings) capacity(x *Capacity) {
	if x == nil {
		return
	}
	f.add("capacity", "%s", x)
	if x.USDPerMillionOutput != nil {
		f.add("cost there", "%s per million output tokens", layout.Dollars(*x.USDPerMillionOutput))
	}
}

// collapses tell from where throughput, or what is of use of it, falls.
func (f *findings) collapses(c *Curve) {
	if x := c.Collapse; x != nil {
		f.add("collapse", "from %s on, by up to %s (%s)", axisValue(x.Value), layout.Percent(x.FallFraction),
			x.Evidence)
	}
	if x := c.UsefulCollapse; x != nil {
		f.add("useful output", "collapses from %s on, by up to %s (%s)", axisValue(x.Value),
			layout.Percent(x.FallFraction), x.Evidence)
	}
}

// limits tell what holds throughput down, by law and by what was seen.
func (f *findings) limits(c *Curve) {
	if b := c.Bounds; b != nil {
		f.add("bounds", "%s", b.text(c.Over))
	}
	if u := c.USL; u != nil {
		f.add("scaling law", "%s", u)
	}
	if l := c.FirstLimit; l != nil {
		f.add("first limit", "%s, from %s on (%s)", l.Resource, axisValue(l.Value), l.Evidence)
	}
}

// warningSigns lists the warning signs, each with the load at which it first shows.
func (f *findings) signs(signs []WarningSign) {
	for _, s := range signs {
		f.add("sign at "+axisValue(s.Value), "%s: %s", strings.ReplaceAll(s.Code, "_", " "), s.Evidence)
	}
}

// axisValue formats a value of the swept key.
func axisValue(v float64) string { return layout.Significant(v, 4) }
