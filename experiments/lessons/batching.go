package lessons

import (
	"fmt"

	"clifftop/report/chart"
)

// batching is lesson 2: static batching waits for the longest output.
func batching(c *class) error {
	equal, static, continuous, waiting := c.step("equal"), c.step("static"), c.step("continuous"), c.step("waiting")
	speed := func(s *StepResult, value string) float64 { return of(s.at(value).Summary.Throughput.OutputTokensPerS) }

	c.Table.Columns = []string{"seats", "static, tokens/s", "continuous, tokens/s", "ratio", "H(seats)"}
	x := speed(equal, "static")
	c.Table.add("32, equal lengths", number(x), number(speed(equal, "vllm")), number(speed(equal, "vllm")/x), "")
	c.say("equal", number(x))
	c.claim("equal lengths: throughput, continuous / static", speed(equal, "vllm")/x, exactly(1, 3))

	measured := chart.Line{Name: "simulated", Dots: true}
	theory := chart.Line{Name: "H(seats)", Guide: true}
	var ratios []float64
	for i := range static.Points {
		p := &static.Points[i]
		a, b := speed(static, p.Value), speed(continuous, p.Value)
		h := harmonic(int(p.load()))
		c.Table.add(p.Value, number(a), number(b), number(b/a), number(h))
		c.say("ratio"+p.Value, times(b/a))
		c.say("part"+p.Value, percent(a/b))
		c.claim(p.Value+" seats: throughput, continuous / static", b/a, about(h, 0.15))
		measured.Points = append(measured.Points, chart.Point{X: p.load(), Y: b / a})
		theory.Points = append(theory.Points, chart.Point{X: p.load(), Y: h})
		ratios = append(ratios, b/a)
	}
	c.say("h8", number(harmonic(8)))
	c.rising("the ratio grows with the seats, each time by at least this factor", ratios, 0.05)

	seats := of(static.at("32").Summary.Concurrency.Running.Mean)
	c.say("seats", ratio(seats))
	c.claim("static batching: seats in use, of 32", seats, atMost(10))
	ttft := func(policy string) float64 { return of(waiting.at(policy).Summary.Latency.TTFT.P50) }
	c.say("static_ttft", lasting(ttft("static")))
	c.say("continuous_ttft", lasting(ttft("vllm")))
	c.claim("two requests per second: TTFT, static / continuous", ttft("static")/ttft("vllm"), atLeast(20))

	const until = 40 // seconds
	c.draw("batching", &chart.Lines{
		Title: fmt.Sprintf("Static batching waits for the longest output: %s of 32 seats are in use, and continuous "+
			"batching is %s as fast",
			ratio(seats), times(ratios[1])),
		Caption: "llama-3.1-8b on one H100; prompts of 300 tokens, outputs of 250 on average, exponentially " +
			"distributed",
		Beside: true,
		Panels: []chart.Panel{{
			Title: "Seats in use, of 32",
			X:     chart.Scale{Title: "Time, s", Max: until},
			Y:     chart.Scale{Title: "Decoding requests", Max: 36},
			Lines: []chart.Line{seatsAtWork("static", 0.8, static.at("32")),
				seatsAtWork("continuous", 0.5, continuous.at("32"))},
		}, {
			Title: "Continuous / static",
			X:     chart.Scale{Title: "Seats"},
			Y:     chart.Scale{Title: "Ratio of output tokens/s"},
			Lines: []chart.Line{measured, theory},
		}},
	})
	return nil
}

// seatsAtWork is the number of decoding requests over time. part is the position of the name on the line.
func seatsAtWork(name string, part float64, p *PointResult) chart.Line {
	l := chart.Line{Name: name}
	const stride = 0.1 // seconds, between points
	next := 0.0
	for _, i := range p.iterations {
		if at := i.end.Seconds(); at >= next && i.decodes > 0 {
			l.Points = append(l.Points, chart.Point{X: at, Y: float64(i.decodes)})
			next = at + stride
		}
	}
	l.NameAt = int(part * float64(len(l.Points)))
	return l
}

// harmonic is 1 + 1/2 + … + 1/n.
func harmonic(n int) float64 {
	sum := 0.0
	for k := 1; k <= n; k++ {
		sum += 1 / float64(k)
	}
	return sum
}
