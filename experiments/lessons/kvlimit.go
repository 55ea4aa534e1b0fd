package lessons

import (
	"fmt"

	"clifftop/report/chart"
	"clifftop/report/curve"
)

// kvLimit is lesson 5: requests are admitted without enough free memory.
func kvLimit(c *class) error {
	cliff := c.step("cliff")
	speed := func(p *PointResult) float64 { return of(p.Summary.Throughput.OutputTokensPerS) }
	c.Table.Columns = []string{"users", "tokens/s", "recomputed", "preemptions/min", "KV use", "TTFT p95"}
	row := func(name string, p *PointResult) {
		s := p.Summary
		c.Table.add(name, number(speed(p)), percent(p.recomputed()), number(p.preemptionsPerMinute()),
			percent(of(s.System.KVUsage.Mean)), lasting(of(s.Latency.TTFT.P95)))
	}
	base := chart.Line{Name: "admits if the first chunk fits", Dots: true}
	peak := &cliff.Points[0]
	for i := range cliff.Points {
		p := &cliff.Points[i]
		row(p.Value, p)
		base.Points = append(base.Points, chart.Point{X: p.load(), Y: speed(p)})
		if speed(p) > speed(peak) {
			peak = p
		}
	}
	last := cliff.at("200")
	c.say("peak", peak.Value)
	c.say("x_peak", number(speed(peak)))
	c.say("x200", number(speed(last)))
	c.say("fall", percent(1-speed(last)/speed(peak)))
	c.say("rec_peak", percent(peak.recomputed()))
	c.say("rec200", percent(last.recomputed()))
	c.claim("number of users with the highest throughput", peak.load(), between(70, 120))
	c.claim("throughput, 200 users / 100 users", speed(last)/speed(cliff.at("100")), atMost(0.9))
	c.claim("fraction of recomputed tokens, 200 users", last.recomputed(), atLeast(0.2))
	c.claim("fraction of recomputed tokens, 50 users", cliff.at("50").recomputed(), atMost(0.01))

	possible := cliff.Points[:cliff.index("100")]
	possible = append(possible[:len(possible):len(possible)], c.step("whole request").Points...)
	most := ceiling("without waste", possible)
	for _, q := range most.Points {
		if q.X == 50 {
			c.say("close50", percent(speed(cliff.at("50"))/q.Y))
			c.claim("50 users: fraction of the possible throughput", speed(cliff.at("50"))/q.Y, between(0.85, 1))
		}
	}
	cured := chart.Line{Name: "admits if the whole prompt fits", Dots: true}
	for _, cure := range []struct{ step, key, name string }{
		{"whole prompt", "whole", "if the prompt fits"}, {"watermark", "watermark", "a tenth kept free"},
		{"whole request", "request", "if the output fits too"}, {"large pool", "pool", "two GPUs"},
	} {
		s := c.step(cure.step)
		row("200, "+cure.name, s.at("200"))
		c.say("x_"+cure.key, number(speed(s.at("200"))))
		c.claim(cure.name+": throughput, 200 users / 100 users", speed(s.at("200"))/speed(s.at("100")), atLeast(1))
		if cure.key == "whole" {
			for _, p := range s.Points {
				cured.Points = append(cured.Points, chart.Point{X: p.load(), Y: speed(&p)})
			}
		}
	}
	c.say("gain_whole", times(cured.Points[len(cured.Points)-1].Y/speed(last)))

	c.draw("kv-limit", &chart.Lines{
		Title: fmt.Sprintf("Beyond %s users, throughput falls by %s, because %s of the work is repeated; admitting "+
			"whole prompts cures it",
			peak.Value, percent(1-speed(last)/speed(peak)), percent(last.recomputed())),
		Caption: "A 70B model with 4-bit weights on one H100; prompts of 2,000 tokens on average, outputs of 500, a " +
			"minute of think time",
		Panels: []chart.Panel{{
			X:     chart.Scale{Title: "Users"},
			Y:     chart.Scale{Title: "Output tokens/s"},
			Lines: []chart.Line{most, base, cured},
		}},
	})
	c.draw("kv-over-time", kvOverTime(c, cliff.at("50"), cliff.at("120")))
	return nil
}

// ceiling returns the asymptotic bound on throughput over the number of users: at most the demand of the users, and at
// most the best throughput of a busy GPU.
func ceiling(name string, runs []PointResult) chart.Line {
	var points []curve.Point
	for _, p := range runs {
		points = append(points, curve.Point{Value: p.load(), Summary: p.Summary})
	}
	l := chart.Line{Name: name, Guide: true}
	if b := curve.New("users", points).Bounds; b != nil {
		l.Points = append(l.Points, chart.Point{})
		for i, q := range b.Points {
			if before := i - 1; before >= 0 && b.Points[before].Value < b.Value && b.Value < q.Value {
				l.Points = append(l.Points, chart.Point{X: b.Value, Y: b.MaxOutputTokensPerS})
			}
			l.Points = append(l.Points, chart.Point{X: q.Value, Y: q.OutputTokensPerS})
		}
	}
	return l
}

// recomputed is the fraction of computed tokens that are recomputed.
func (p *PointResult) recomputed() float64 {
	t := p.Summary.Tokens
	return float64(t.Recomputed) / float64(t.Input-t.CachedInput+t.Output+t.Recomputed)
}

func (p *PointResult) preemptionsPerMinute() float64 {
	w := p.Summary.Window
	return float64(p.Summary.System.Preemptions) / (w.EndS - w.StartS) * 60
}

// kvOverTime shows KV usage and preemptions of two runs over time.
func kvOverTime(c *class, calm, full *PointResult) *chart.Lines {
	const minutes = 40
	use := func(p *PointResult) chart.Line {
		l := chart.Line{Name: p.Value + " users"}
		for _, b := range p.series {
			if b.KVUsageMean != nil && b.EndS <= minutes*60 {
				l.Points = append(l.Points, chart.Point{X: (b.StartS + b.EndS) / 120, Y: *b.KVUsageMean})
			}
		}
		return l
	}
	thrown := func(p *PointResult) chart.Line {
		l := chart.Line{Name: p.Value + " users"}
		perMinute := make([]float64, minutes)
		for _, b := range p.series {
			if k := int(b.StartS / 60); k < minutes {
				perMinute[k] += float64(b.Preemptions)
			}
		}
		for k, n := range perMinute {
			l.Points = append(l.Points, chart.Point{X: float64(k) + 0.5, Y: n})
		}
		return l
	}
	return &chart.Lines{
		Title: fmt.Sprintf("With %s users the pool is never full; with %s it is always full, with %s preemptions per "+
			"minute",
			calm.Value, full.Value, ratio(full.preemptionsPerMinute())),
		Caption: "The same system over time, from an empty start",
		Panels: []chart.Panel{{
			Title: "KV cache",
			X:     chart.Scale{Title: "Time, min", Max: minutes},
			Y:     chart.Scale{Title: "Fraction of blocks in use", Unit: chart.Fraction, Max: 1.06},
			Lines: []chart.Line{use(calm), use(full)},
		}, {
			Title: "Preemptions",
			X:     chart.Scale{Title: "Time, min", Max: minutes},
			Y:     chart.Scale{Title: "per minute"},
			Lines: []chart.Line{thrown(calm), thrown(full)},
		}},
	}
}
