package lessons

import (
	"fmt"

	"clifftop/report/chart"
)

// overload is lesson 4: goodput collapses while throughput stays high.
func overload(c *class) error {
	rate := c.step("rate")
	const edge, after, over = "22", "23", "25"
	c.Table.Columns = []string{"requests/s", "tokens/s", "in time, tokens/s", "attainment", "TTFT p50", "TTFT p95",
		"in system"}
	offered := chart.Line{Name: "offered", Guide: true}
	output := chart.Line{Name: "all", Dots: true}
	good := chart.Line{Name: "in time", Dots: true}
	p50 := chart.Line{Name: "p50", Dots: true}
	p95 := chart.Line{Name: "p95", Dots: true}
	best := &rate.Points[0]
	for i := range rate.Points {
		p := &rate.Points[i]
		s := p.Summary
		if of(s.Goodput.OutputTokensPerS) > of(best.Summary.Goodput.OutputTokensPerS) {
			best = p
		}
		c.Table.add(p.Value, number(of(s.Throughput.OutputTokensPerS)), number(of(s.Goodput.OutputTokensPerS)),
			percent(of(s.Goodput.Attainment)),
			lasting(of(s.Latency.TTFT.P50)), lasting(of(s.Latency.TTFT.P95)), number(of(s.Concurrency.InSystem.Mean)))
		unsteady := s.Window.Unsettled()
		perRequest := of(rate.Points[0].Summary.Throughput.OutputTokensPerS) / rate.Points[0].load()
		offered.Points = append(offered.Points, chart.Point{X: p.load(), Y: perRequest * p.load()})
		output.Points = append(output.Points,
			chart.Point{X: p.load(), Y: of(s.Throughput.OutputTokensPerS), Hollow: unsteady})
		good.Points = append(good.Points, chart.Point{X: p.load(), Y: of(s.Goodput.OutputTokensPerS), Hollow: unsteady})
		p50.Points = append(p50.Points, chart.Point{X: p.load(), Y: of(s.Latency.TTFT.P50), Hollow: unsteady})
		p95.Points = append(p95.Points, chart.Point{X: p.load(), Y: of(s.Latency.TTFT.P95), Hollow: unsteady})
	}
	at := func(value string) *PointResult { return rate.at(value) }
	x := func(p *PointResult) float64 { return of(p.Summary.Throughput.OutputTokensPerS) }
	g := func(p *PointResult) float64 { return of(p.Summary.Goodput.OutputTokensPerS) }
	c.say("best", best.Value)
	c.say("edge", edge)
	c.say("after", after)
	c.say("over", over)
	c.say("good_best", number(g(best)))
	c.say("good_over", number(g(at(over))))
	c.say("good_edge", number(g(at(edge))))
	c.say("x_over", number(x(at(over))))
	c.say("x_ratio", times(x(at(over))/x(best)))
	for name, value := range map[string]string{"edge": edge, "after": after} {
		c.say("att_"+name, percent(of(at(value).Summary.Goodput.Attainment)))
	}
	c.say("p95_edge", lasting(of(at(edge).Summary.Latency.TTFT.P95)))
	c.say("p50_best", lasting(of(best.Summary.Latency.TTFT.P50)))
	c.say("p50_after", lasting(of(at(after).Summary.Latency.TTFT.P50)))
	c.say("growth", number(of(at(over).Summary.Window.GrowthRequestsPerS)))

	c.claim("the rate with the highest goodput, requests per second", best.load(), between(20, 22))
	c.claim("fraction of requests in time at that rate", of(best.Summary.Goodput.Attainment), atLeast(0.95))
	c.claim("fraction of requests in time at 25 requests per second", of(at(over).Summary.Goodput.Attainment),
		atMost(0.054))
	c.claim("throughput at 25 requests per second / throughput at the highest goodput", x(at(over))/x(best), atLeast(1))
	c.claim("throughput at 30 requests per second / throughput at 25", x(at("30"))/x(at(over)), about(1, 0.02))
	c.claim("growth of the number in the system at 25 requests per second, per second",
		of(at(over).Summary.Window.GrowthRequestsPerS), atLeast(1))
	gate := of(at(edge).Summary.Goodput.GatedOutputTokensPerS)
	c.claim("at 22 requests per second the SLO is missed, and gated goodput is", gate, exactly(0, 0))
	c.claim("but the fraction of requests in time is", of(at(edge).Summary.Goodput.Attainment), atLeast(0.5))

	c.draw("overload", &chart.Lines{
		Title: fmt.Sprintf("Beyond the knee, the work is useless: %s tokens/s at %s requests/s, and %s of them in time",
			number(x(at(over))), over, number(g(at(over)))),
		Caption: "llama-3.1-8b on one H100; prompts of 1,000 tokens and outputs of 250 on average; hollow: no steady " +
			"state",
		Panels: []chart.Panel{{
			X:      chart.Scale{Title: "Requests per second"},
			Y:      chart.Scale{Title: "Output tokens/s"},
			Lines:  []chart.Line{offered, output, good},
			Height: 1.2,
		}, {
			X:     chart.Scale{Title: "Requests per second"},
			Y:     chart.Scale{Title: "Time to first token, log scale", Unit: chart.Milliseconds, Log: true},
			Lines: []chart.Line{p50, p95},
			Rules: []chart.Rule{{At: 1000, Name: "SLO: 95 % within 1 s"}},
		}},
	})
	return nil
}
