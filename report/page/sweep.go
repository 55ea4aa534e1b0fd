package page

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"clifftop/report/curve"
	"clifftop/report/layout"
	"clifftop/report/plot"
)

// Sweep is the page of a curve.
func Sweep(c *curve.Curve, m Machine) (*Page, error) {
	c, err := c.Downsampled()
	if err != nil {
		return nil, err
	}
	p := &Page{Kind: "sweep", Facts: sweepFacts(c), Origin: Origin{Version: c.Clifftop}}
	if c.Partial {
		p.Partial = "The sweep was interrupted: loads are missing, and what is said here may change with them."
	}
	for _, x := range c.Points {
		if x.Summary != nil {
			p.Origin.Seeds = seeds(x.Summary)
			break
		}
	}
	p.add(Section{Name: "Summary", Tables: pairs(c.Findings())})
	if err := p.curve(c); err != nil {
		return nil, err
	}
	runs := plot.SelectedRuns(c)
	p.distributions(runs)
	p.waste(runs)
	if roof := plot.Operating(m.FLOPsPerS, m.BytesPerS, plot.AllRuns(c)); roof != nil {
		p.picture("Roofline", roof)
	}
	if runs = detailed(runs); len(runs) > 0 {
		at := runs[len(runs)/2]
		p.gantt("First iterations, "+at.Name, at.Detail.Gantt)
	}
	all, err := points(c)
	if err != nil {
		return nil, err
	}
	name := "All loads"
	if c.Omits() != "" {
		name = "Loads"
	}
	p.add(Section{Name: name, Text: c.Omits(), Tables: all})
	return p, nil
}

// curve appends the figures of a curve; the title of the first is the page's.
func (p *Page) curve(c *curve.Curve) error {
	for _, k := range []struct{ figure, name string }{
		{"operating", "Operating curve"}, {"throughput", "Throughput"}, {"latency", "Latency"},
		{"interactivity", "Speed for each user"}, {"kv", "KV cache"},
	} {
		f, err := plot.Curve(c, k.figure)
		if err != nil {
			return err
		}
		if k.figure == "operating" {
			p.Title = f.Title
		}
		p.figure(k.name, f)
		if k.figure != "operating" { // the others say the same below their titles
			s := &p.Sections[len(p.Sections)-1]
			s.Text, s.Charts[0].Text = "", ""
		}
	}
	return nil
}

// distributions appends the distributions of a few loads and, where there are details, the time series of the run at
// the knee and beyond.
func (p *Page) distributions(runs []plot.NamedRun) {
	if len(detailed(runs)) == 0 {
		if len(runs) > 0 {
			p.picture("Distribution of latencies", plot.Latencies(runs))
		}
		return
	}
	runs = detailed(runs)
	p.picture("Distribution of latencies", plot.Latencies(runs))
	p.picture("Gaps between tokens", plot.Gaps(runs))
	for _, r := range runs[min(1, len(runs)-1):] {
		p.over("Run over time, "+r.Name, plot.Run(r.Summary, r.Detail.Series))
	}
}

func detailed(runs []plot.NamedRun) []plot.NamedRun {
	return slices.DeleteFunc(slices.Clone(runs), func(r plot.NamedRun) bool { return r.Detail == nil })
}

// points is the table of all loads, without the findings that follow it in Markdown.
func points(c *curve.Curve) (template.HTML, error) {
	return tables(3, func(w io.Writer) error {
		var b strings.Builder
		if err := c.WriteMarkdown(&b); err != nil {
			return err
		}
		table, _, _ := strings.Cut(b.String(), "\n\n")
		_, err := io.WriteString(w, table)
		return err
	})
}

func sweepFacts(c *curve.Curve) []Fact {
	var facts []Fact
	tokens := func(v float64) string { return layout.Digits(v) + " output tokens/s" }
	at := func(v float64) string { return plot.Load(c, v) }
	if k := c.Knee; k != nil {
		facts = append(facts, Fact{"Knee", at(k.Value), tokens(k.OutputTokensPerS)})
	}
	if k := c.Peak; k != nil {
		f := Fact{"Peak", layout.Digits(k.OutputTokensPerS) + " tokens/s", "at " + at(k.Value)}
		if k.AtEdge {
			f.Note += ", the end of the sweep"
		}
		cost := "Cost at the peak"
		if c.LevelsOff() {
			f.Name, cost = "Plateau", "Cost there"
		}
		facts = append(facts, f)
		if k.USDPerMillionOutput != nil {
			facts = append(facts, Fact{cost, layout.Dollars(*k.USDPerMillionOutput), "per million output tokens"})
		}
	}
	if k := c.Collapse; k != nil {
		facts = append(facts, Fact{"Collapse", "from " + at(k.Value), "by up to " + layout.Percent(k.FallFraction)})
	}
	if k := c.Capacity; k != nil && k.Passes != nil {
		f := Fact{"Keeps the SLO", "up to " + at(*k.Passes), ""}
		if k.MoreHelps {
			f.Value = "from " + at(*k.Passes)
		}
		f.Note = "in " + k.Hours.String()
		facts = append(facts, f)
	}
	if l := c.FirstLimit; l != nil {
		facts = append(facts, Fact{"First limit", strings.ReplaceAll(l.Resource, "_", " "),
			fmt.Sprintf("from %s on", at(l.Value))})
	}
	return facts
}
