package plot

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/vg"

	"clifftop/report/chart"
	"clifftop/report/plan"
)

// WritePlan writes the pictures of a plan, as [Figure.WriteFiles] does: plan-slo, what the SLO costs; plan-load, what
// the load costs; plan-pareto, which candidates are not beaten. Pictures without anything to show are left out. It
// answers the names.
func WritePlan(p *plan.Result, keep func(name string, fill func(io.Writer) error) error) (names []string, err error) {
	for _, k := range []struct {
		name   string
		figure *Figure
	}{{"plan-slo", PlanSLO(p)}, {"plan-load", PlanLoad(p)}, {"plan-pareto", PlanPareto(p)}} {
		if k.figure == nil {
			continue
		}
		if err := k.figure.WriteFiles(k.name, keep); err != nil {
			return names, err
		}
		names = append(names, k.name)
	}
	return names, nil
}

const planHeight vg.Length = 360

func planFigure(p *plan.Result, title string, x *panel, notes ...string) *Figure {
	caption := fmt.Sprintf("%s, %s requests/s in the peak hour", p.Model, amount(p.Traffic.PlannedRequestsPerS))
	return &Figure{Title: title, Caption: caption, notes: notes, width: pageWidth, height: planHeight,
		rows: []row{{1, []*panel{x}}}}
}

// usd writes an amount of money.
func usd(v float64) string { return "$" + scaled(v, 3) }

// costAxis is the axis of costs, which is logarithmic where they differ much.
func costAxis(least, most float64) axis {
	a := axis{title: "Cost, $/month", unit: chart.Dollars, air: 0.12}
	if least > 0 && most > 12*least {
		a.log = true
		a.title += ", log scale"
	}
	return a
}

// PlanSLO shows the cost of the cheapest plan by how tight the SLO is; nil where no cost is known.
func PlanSLO(p *plan.Result) *Figure {
	front := p.CostBySLO
	if len(front) < 2 {
		return nil
	}
	last := front[len(front)-1]
	x := &panel{
		x: axis{title: "All limits on latency, as a part of the SLO’s, log scale", unit: chart.Fraction, log: true},
		y: costAxis(last.USDPerMonth, front[0].USDPerMonth),
	}
	s := series{color: blue, width: 2, radius: 2.6}
	right := max(2, last.Factor*1.15)
	for i, q := range front {
		s.points = append(s.points, xy{x: q.Factor, y: q.USDPerMonth})
		next := right
		if i+1 < len(front) {
			next = front[i+1].Factor
		}
		s.points = append(s.points, xy{x: next, y: q.USDPerMonth})
	}
	dots := series{color: blue, radius: 3, scattered: true}
	for _, q := range front {
		dots.points = append(dots.points, xy{x: q.Factor, y: q.USDPerMonth})
		x.tags = append(x.tags, tag{x: q.Factor, y: q.USDPerMonth, text: q.Name, color: black,
			order: []direction{northEast, southWest, east, southEast}, far: []vg.Length{12, 20}})
	}
	s.radius = 0
	s.points = thinned(s.points)
	x.series = []series{s, dots}
	x.rules = []rule{{at: 1, vertical: true, name: "the SLO", color: vermilion}}
	at := costAt(front, 1)
	title := fmt.Sprintf("No run met the SLO; limits %s as wide would cost %s a month", percent(front[0].Factor),
		usd(front[0].USDPerMonth))
	if at > 0 {
		title = fmt.Sprintf("The SLO costs %s a month", usd(at))
		if tight := costAt(front, 0.5); tight > at {
			title += fmt.Sprintf("; limits half as wide would cost %s", usd(tight))
		} else if tight == at {
			title += ", and limits half as wide no more"
		} else {
			title += ", and nothing that was run keeps limits half as wide"
		}
		if loose := costAt(front, 2); loose < at {
			title += fmt.Sprintf(", twice as wide %s", usd(loose))
		}
	}
	return planFigure(p, title, x,
		"Each dot is a simulated number of replicas; between them the line is the least cost known to suffice.")
}

// thinned is a line without points that stand on the one before them.
func thinned(points []xy) []xy {
	return slices.CompactFunc(points, func(a, b xy) bool { return a == b })
}

// costAt is the least cost with limits multiplied by factor; 0 where none is known.
func costAt(front []plan.CostPoint, factor float64) float64 {
	cost := 0.0
	for _, q := range front {
		if q.Factor <= factor {
			cost = q.USDPerMonth
		}
	}
	return cost
}

// PlanLoad shows what the best candidates cost by load; nil where no cost is known.
func PlanLoad(p *plan.Result) *Figure {
	if len(p.CostByLoad) == 0 {
		return nil
	}
	planned := p.Traffic.PlannedRequestsPerS
	reach := 2.5 * planned
	most := 0.0
	x := &panel{x: axis{title: "Requests/s in the peak hour", unit: chart.Whole, min: 0, max: reach}, ends: true}
	for i, line := range p.CostByLoad {
		s := series{name: line.Name, color: overlayColours[i%len(overlayColours)], width: 2}
		from := 0.0
		for _, q := range line.Points {
			s.points = append(s.points, xy{x: from, y: q.USDPerMonth},
				xy{x: min(q.RequestsPerS, reach), y: q.USDPerMonth})
			if from = q.RequestsPerS; from >= reach {
				break
			}
		}
		most = max(most, s.points[len(s.points)-1].y)
		x.series = append(x.series, s)
	}
	x.y = axis{title: "Cost, $/month", unit: chart.Dollars, air: 0.06}
	x.hold = []float64{most}
	x.rules = []rule{{at: planned, vertical: true, name: "planned", color: vermilion}}
	return planFigure(p, loadLinesTitle(p.CostByLoad, planned), x,
		"Each step is a replica more. The validated error of the step model is allowed for; idle hours are paid.")
}

// loadLinesTitle says which candidate is the cheapest at the planned load, and between which loads it stays that.
func loadLinesTitle(lines []plan.LoadLine, planned float64) string {
	best := cheapest(lines, planned)
	const steps = 400
	low, high := 0.0, 0.0
	for i := steps; i > 0 && low == 0; i-- {
		if load := planned * float64(i) / steps; cheapest(lines, load) != best {
			low = load
		}
	}
	for i := 1; i <= steps && high == 0; i++ {
		if load := planned * (1 + 1.5*float64(i)/steps); cheapest(lines, load) != best {
			high = load
		}
	}
	text := func(load float64) string { return loadNumber(significant(load)) }
	switch name := lines[best].Name; {
	case low > 0 && high > 0:
		return fmt.Sprintf("%s is the cheapest from %s to %s requests/s; then %s", name, text(low), text(high),
			lines[cheapest(lines, high)].Name)
	case high > 0:
		return fmt.Sprintf("%s is the cheapest up to %s requests/s; then %s", name, text(high),
			lines[cheapest(lines, high)].Name)
	case low > 0:
		return fmt.Sprintf("%s is the cheapest from %s requests/s on", name, text(low))
	default:
		return fmt.Sprintf("%s is the cheapest at all these loads", name)
	}
}

func significant(x float64) float64 {
	scale := math.Pow10(1 - int(math.Floor(math.Log10(x))))
	return math.Round(x*scale) / scale
}

// cheapest is the line that costs least at a load; the first of equals.
func cheapest(lines []plan.LoadLine, load float64) int {
	best, least := 0, math.Inf(1)
	for i, line := range lines {
		for _, q := range line.Points {
			if q.RequestsPerS >= load {
				if q.USDPerMonth < least {
					best, least = i, q.USDPerMonth
				}
				break
			}
		}
	}
	return best
}

// PlanPareto shows all candidates that meet the SLO by cost and by how much of it they take up; nil where no cost is
// known.
func PlanPareto(p *plan.Result) *Figure {
	front := series{color: blue, width: 1.6, radius: 4}
	others := series{color: pale, radius: 3, scattered: true}
	apart := series{color: vermilion, radius: 3, scattered: true}
	x := &panel{x: axis{title: "Part used of the limit that is nearest", unit: chart.Fraction, min: 0, max: 1}}
	least, most := math.Inf(1), 0.0
	n := 0
	for i := range p.Candidates {
		c := &p.Candidates[i]
		if c.USDPerMonth == nil {
			continue
		}
		n++
		q := xy{x: c.AtPlan.SLOUse, y: *c.USDPerMonth}
		least, most = min(least, q.y), max(most, q.y)
		if c.Apart {
			apart.points = append(apart.points, q)
			continue
		}
		if !c.Pareto {
			others.points = append(others.points, q)
			continue
		}
		front.points = append(front.points, q)
		x.tags = append(x.tags, tag{x: q.x, y: q.y, text: c.Name, color: black,
			order: []direction{northEast, east, north, southWest, west, southEast}, far: []vg.Length{12, 20, 30}})
	}
	if n == 0 {
		return nil
	}
	x.y = costAxis(least, most)
	x.series = []series{others, apart, front}
	first, last := front.points[0], front.points[len(front.points)-1]
	title := fmt.Sprintf("%s a month is the least, and nothing dearer is faster", usd(first.y))
	if len(front.points) > 1 {
		title = fmt.Sprintf("%d of %d candidates are not beaten in both cost and latency: from %s at %s of the limit "+
			"to %s at %s",
			len(front.points), n, usd(first.y), percent(first.x), usd(last.y), percent(last.x))
	}
	var names []string
	for _, c := range p.Candidates {
		if c.Pareto && !c.Apart && !c.Validated && c.Error > 0 {
			names = append(names, c.Name)
		}
	}
	notes := []string{"Grey: beaten in cost by one at least as fast."}
	if apart.points != nil {
		notes = append(notes, "Red: without measured runs behind the step times, not recommended.")
	}
	if names != nil {
		notes = append(notes, "Without measured runs behind the step times: "+strings.Join(names, "; ")+".")
	}
	return planFigure(p, title, x, notes...)
}
