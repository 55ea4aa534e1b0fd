package page

import (
	"fmt"
	"io"

	"clifftop/report"
	"clifftop/report/chart"
	"clifftop/report/layout"
	"clifftop/report/plot"
	"clifftop/report/table"
)

// Machine has the peaks of a replica's hardware, in FLOPs and bytes per second; zero if unknown.
type Machine struct{ FLOPsPerS, BytesPerS float64 }

// Run is the page of one operating point. Latencies are named after the bands.
func Run(s *report.Summary, bands report.Profile, m Machine) (*Page, error) {
	p := &Page{Kind: "run", Facts: runFacts(s, bands), Origin: Origin{Version: s.Clifftop, Seeds: seeds(s)}}
	var buckets []report.SeriesPoint
	if s.Detail != nil {
		buckets = s.Detail.Series
	}
	overTime := plot.Run(s, buckets)
	p.Title = overTime.Title
	if s.Partial {
		p.Partial = "The run was interrupted: the numbers are of what happened before."
	}
	words, err := tables(3, func(w io.Writer) error { return table.WriteMarkdown(s, w, bands) })
	if err != nil {
		return nil, err
	}
	p.add(Section{Name: "Summary", Tables: words})
	one := []plot.NamedRun{{Summary: s}}
	if d := s.Detail; d != nil {
		if d.TTFT.N > 0 {
			p.picture("Latency", plot.Latencies(one))
		}
		if d.ITL.N > 0 {
			p.picture("Gaps between tokens", plot.Gaps(one))
		}
		p.over("Run over time", overTime)
		p.Sections[len(p.Sections)-1].Title = "" // it is the page's
		p.over("Prompts", plot.PromptShare(buckets))
	}
	p.waste(one)
	if roof := plot.Operating(m.FLOPsPerS, m.BytesPerS, one); roof != nil {
		p.picture("Roofline", roof)
	}
	if s.Detail != nil {
		p.gantt("First iterations", s.Detail.Gantt)
	}
	return p, nil
}

func seeds(s *report.Summary) string {
	if r := s.Replications; r != nil && len(r.Seeds) > 1 {
		return fmt.Sprintf("seeds %d to %d, %d runs; pictures of a single run are of the first", r.Seeds[0],
			r.Seeds[len(r.Seeds)-1], r.Runs)
	}
	return fmt.Sprintf("seed %d", s.Seed)
}

// runFacts are the numbers that one looks for first.
func runFacts(s *report.Summary, bands report.Profile) []Fact {
	facts := []Fact{{"Output", layout.Cell(s.Throughput.OutputTokensPerS) + " tokens/s",
		layout.Cell(s.Throughput.RequestsPerS) + " requests/s"}}
	if v := s.Latency.TTFT.P95; v != nil {
		facts = append(facts, Fact{"TTFT p95", milliseconds(*v), bands.TTFT.Name(*v)})
	}
	if v := s.Latency.TPOT.P95; v != nil {
		facts = append(facts, Fact{"TPOT p95", milliseconds(*v), bands.TPOT.Name(*v)})
	}
	if g := &s.Goodput; g.Attainment != nil {
		met := "undecided"
		if g.Met != nil {
			met = map[bool]string{true: "met", false: "missed"}[*g.Met]
		}
		facts = append(facts, Fact{"SLO", met, layout.Percent(*g.Attainment) + " of requests are good"})
	}
	if v := s.System.KVUsage.Mean; v != nil {
		f := Fact{"KV cache", layout.Percent(*v), "mean"}
		if most := s.System.KVUsage.Max; most != nil {
			f.Note = "mean; at most " + layout.Percent(*most)
		}
		facts = append(facts, f)
	}
	if v := s.System.BusyFraction; v != nil {
		facts = append(facts, Fact{"GPU busy", layout.Percent(*v),
			fmt.Sprintf("MFU %s, MBU %s", layout.PercentCell(s.System.MFU), layout.PercentCell(s.System.MBU))})
	}
	if c := s.Cost; c != nil && c.USDPerMillionOutputAtLoad != nil {
		facts = append(facts, Fact{"Cost", layout.Dollars(*c.USDPerMillionOutputAtLoad), "per million output tokens"})
	}
	return facts
}

// milliseconds writes a latency with its unit.
func milliseconds(ms float64) string {
	if ms >= 999.5 {
		return layout.Digits(ms/1000) + " s"
	}
	return layout.Digits(ms) + " ms"
}

// picture appends a picture as a section.
func (p *Page) picture(name string, c chart.Picture) { p.figure(name, plot.Draw(c)) }

// over appends a figure over time, whose charts can be zoomed.
func (p *Page) over(name string, f *plot.Figure) {
	p.figure(name, f)
	charts := p.Sections[len(p.Sections)-1].Charts
	for i := range charts {
		charts[i].Zoom = true
		charts[i].Height = 220
		if charts[i].X.Title == "" {
			charts[i].X.Title = charts[len(charts)-1].X.Title
		}
	}
}

// waste appends what became of tokens and of the GPU's time.
func (p *Page) waste(runs []plot.NamedRun) {
	for _, k := range []struct {
		name string
		w    *chart.Waterfall
	}{{"What becomes of tokens", plot.TokenWaste(runs)}, {"What becomes of GPU time", plot.GPUWaste(runs)}} {
		if k.w == nil {
			continue
		}
		p.picture(k.name, k.w)
		s := &p.Sections[len(p.Sections)-1]
		for i := range s.Charts {
			s.Charts[i].Height = 60 + 30*len(k.w.Stages)
			s.Charts[i].X.Title = k.w.Unit
			if len(s.Charts) > 1 {
				s.Charts[i].Title = upper(k.w.Groups[i].Name)
			}
		}
	}
}

// gantt appends the chart of the first iterations.
func (p *Page) gantt(name string, o *report.Gantt) {
	t := plot.Gantt(o)
	if t == nil {
		return
	}
	p.picture(name, t)
	c := &p.Sections[len(p.Sections)-1].Charts[0]
	c.Zoom, c.Height = true, 70+22*len(t.Lanes)
}
