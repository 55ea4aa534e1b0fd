package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"clifftop/report/chart"
	"clifftop/report/layout"
)

// cell is a number of the runs of a system at a load.
type cell struct {
	title string
	of    func(runs []*course) string
}

func share(of func(*course) float64) func([]*course) string {
	return func(runs []*course) string { return layout.Percent(mean(runs, of)) }
}

// recoveries returns the mean time to recover, or the number of runs that do not recover.
func recoveries(runs []*course) string {
	sum, never := 0.0, 0
	for _, c := range runs {
		if at := c.recovered(); math.IsInf(at, 1) {
			never++
		} else {
			sum += at
		}
	}
	switch {
	case never == len(runs):
		return "never"
	case never > 0:
		return fmt.Sprintf("%d of %d never", never, len(runs))
	case sum == 0:
		return "–"
	}
	return fmt.Sprintf("%.0f s", sum/float64(len(runs)))
}

// tails returns the 99th percentile of the TTFT during the outage.
func tails(runs []*course) string {
	if v := mean(runs, (*course).p99); !math.IsInf(v, 1) {
		return layout.Digits(v) + " s"
	}
	return "no output"
}

// tables writes the results for one of four replicas.
func (x *study) tables(b *strings.Builder, runs [][][]*course) {
	fmt.Fprintf(b, "\n## One of four is lost\n\nFour replicas saturate at %s requests/s; loads are fractions of this "+
		"rate. One replica is lost at %.0f s. If it must start again, it is back %.0f s later. Means over %d seeds.\n",
		layout.Digits(4*x.saturation), lost, outage, len(seeds))
	for _, c := range []cell{
		{"Time after the loss until 95 % of the requests get a first token within 2 s again, and until the end",
			recoveries},
		{"Requests in the five minutes after the loss that get a first token within 2 s",
			share(func(c *course) float64 {
				return c.goodIn(lost, lost+outage)
			})},
		{"99th percentile of the time to first token of those requests, from the first attempt on", tails},
		{"Requests of the whole run that got no output", share((*course).unserved)},
		{"Attempts per request", func(runs []*course) string {
			return layout.Digits(mean(runs, func(c *course) float64 {
				return float64(c.Requests.Attempts) / float64(c.Requests.Offered)
			}))
		}},
	} {
		fmt.Fprintf(b, "\n%s:\n\n| failure |", c.title)
		for _, l := range loads {
			fmt.Fprintf(b, " %.1f |", l)
		}
		b.WriteString("\n|---|" + strings.Repeat("---:|", len(loads)) + "\n")
		for i, s := range systems {
			fmt.Fprintf(b, "| %s |", s.name)
			for k := range loads {
				fmt.Fprintf(b, " %s |", c.of(runs[i][k]))
			}
			b.WriteString("\n")
		}
	}
}

// sizeTable writes the load that n replicas can have.
func sizeTable(b *strings.Builder, good [][][]float64) {
	b.WriteString("\n## The load that n replicas can have if one is lost\n\nThe highest load, in steps of 0.05, at " +
		"which 95 % of the requests in the last two minutes of the outage get a first token within 2 s, for every " +
		"seed.\n\n| replicas | load | (n − 1)/n |\n|---:|---:|---:|\n")
	for i, n := range sizes {
		fmt.Fprintf(b, "| %d | %.2f | %.3f |\n", n, survived(tried(n), good[i]), float64(n-1)/float64(n))
	}
}

// spans are the time intervals of the table of caches.
var spans = []struct {
	name     string
	from, to float64
}{
	{"before", 600, lostCache - 30}, {"during the outage", lostCache + 30, back - 30},
	{"after its return", back + 30, back + 210}, {"at the end", 1560, 1740},
}

// cacheTable writes the fraction of prompt tokens that no cache had.
func cacheTable(b *strings.Builder, talks [][]*course) {
	b.WriteString("\n## Lost caches\n\nFraction of prompt tokens that no cache had.\n\n| router |")
	for _, s := range spans {
		fmt.Fprintf(b, " %s |", s.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(spans)) + "\n")
	for i, name := range routers {
		fmt.Fprintf(b, "| %s |", name)
		for _, s := range spans {
			fmt.Fprintf(b, " %s |", layout.Percent(mean(talks[i], func(c *course) float64 {
				return c.missed(s.from, s.to)
			})))
		}
		b.WriteString("\n")
	}
}

// The loads of the picture.
const (
	high = 0.8
	low  = 0.6
)

// recovery shows the share of good requests over time, with the first seed.
func recovery(runs [][][]*course) *chart.Lines {
	panel := func(title string, load float64, names ...[2]string) chart.Panel {
		p := chart.Panel{
			Title: title, X: chart.Scale{Title: "minutes", Unit: chart.Whole, Max: 30},
			Y: chart.Scale{Title: "requests with a first token within 2 s, by send time", Unit: chart.Fraction,
				Max: 1.04},
			Rules: []chart.Rule{{At: lost / 60, Vertical: true, Name: "lost"},
				{At: (lost + outage) / 60, Vertical: true, Name: "back"}},
		}
		for _, n := range names {
			c := runs[slices.IndexFunc(systems, func(s system) bool {
				return s.name == n[0]
			})][slices.Index(loads, load)][0]
			l := chart.Line{Name: n[1]}
			for _, q := range c.parts {
				if q.to <= c.parts[len(c.parts)-1].to-unfinished {
					l.Points = append(l.Points,
						chart.Point{X: (q.from + q.to) / 120, Y: float64(q.good) / float64(q.sent)})
				}
			}
			p.Lines = append(p.Lines, l)
		}
		return p
	}
	return &chart.Lines{
		Title: fmt.Sprintf("One of four replicas is lost at %.0f %% load: with patient clients the fleet recovers, "+
			"with retries it never does", 100*high),
		Caption: "llama-3.1-8b on l40s, chat; seed " + fmt.Sprint(seeds[0]),
		Panels: []chart.Panel{
			panel(fmt.Sprintf("A crash at %.0f %% of the capacity of four", 100*high), high,
				[2]string{crashPatient, "patient"}, [2]string{crashLeaving, "10 s, 5 retries"},
				[2]string{crashBudgeted, "retry budget"}),
			panel(fmt.Sprintf("Slow is worse than crashed: round robin at %.0f %%", 100*low), low,
				[2]string{crashBlind, "crash"}, [2]string{slowBlind, "3 times slower"}),
		},
	}
}

// caches shows the fraction of computed prompt tokens over time, with the first seed.
func caches(talks [][]*course) *chart.Lines {
	p := chart.Panel{
		X: chart.Scale{Title: "minutes", Unit: chart.Whole, Max: 30},
		Y: chart.Scale{Title: "prompt tokens that no cache had", Unit: chart.Fraction, Max: 1.04},
		Rules: []chart.Rule{{At: lostCache / 60, Vertical: true, Name: "lost"},
			{At: back / 60, Vertical: true, Name: "back"}},
	}
	for i, name := range routers {
		c := talks[i][0]
		l := chart.Line{Name: name}
		for _, q := range c.parts {
			if q.to <= c.parts[len(c.parts)-1].to-unfinished {
				l.Points = append(l.Points,
					chart.Point{X: (q.from + q.to) / 120, Y: 1 - float64(q.cached)/float64(q.input)})
			}
		}
		p.Lines = append(p.Lines, l)
	}
	at := func(k int) float64 {
		return mean(talks[0], func(c *course) float64 { return c.missed(spans[k].from, spans[k].to) })
	}
	return &chart.Lines{
		Title: fmt.Sprintf("Losing one of four caches: %.1f times as many prompt tokens are computed, and %.1f times "+
			"when it is back, cold", at(1)/at(0), at(2)/at(0)),
		Caption: "llama-3.1-8b on l40s, conversations of eight turns on average; seed " + fmt.Sprint(seeds[0]),
		Panels:  []chart.Panel{p},
	}
}
