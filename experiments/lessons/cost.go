package lessons

import (
	"fmt"

	"clifftop/report/chart"
)

// cost is lesson 10: all tokens of an hour share its price.
func cost(c *class) error {
	crowd, day, faster := c.step("crowd"), c.step("day"), &c.step("faster").Points[0]
	const mid = "1.46"
	speed := func(p *PointResult) float64 { return of(p.Summary.Throughput.OutputTokensPerS) }
	price := func(p *PointResult) float64 { return of(p.Summary.Cost.USDPerMillionOutputAtLoad) }

	capacity := 0.0
	for i := range crowd.Points {
		capacity = max(capacity, speed(&crowd.Points[i]))
	}
	c.Table.Columns = []string{"", "tokens/s", "of capacity", "$/M", "TTFT p95"}
	row := func(name string, p *PointResult) {
		c.Table.add(name, number(speed(p)), percent(speed(p)/capacity), dollars(price(p)),
			lasting(of(p.Summary.Latency.TTFT.P95)))
	}
	for i := range crowd.Points {
		p := &crowd.Points[i]
		row(plural(p.Value, "user"), p)
		c.say("cost"+p.Value, dollars(price(p)))
	}
	measured := chart.Line{Name: "", Dots: true}
	floor := 3 / (capacity * 3600) * 1e6
	for i := range day.Points {
		p := &day.Points[i]
		row(p.Value+" requests/s", p)
		measured.Points = append(measured.Points,
			chart.Point{X: speed(p) / capacity, Y: price(p), Label: p.Value + "/s"})
	}
	row(mid+" requests/s, faster GPU", faster)

	top := &day.Points[len(day.Points)-1]
	load := speed(day.at(mid)) / capacity
	c.say("load30", percent(load))
	c.say("dear", times(price(day.at(mid))/floor))
	c.say("top", top.Value)
	c.say("ttft_top", lasting(of(top.Summary.Latency.TTFT.P95)))
	c.say("ttft_mid", lasting(of(day.at(mid).Summary.Latency.TTFT.P95)))
	c.say("x_mid", number(speed(day.at(mid))))
	c.say("x_faster", number(speed(faster)))
	c.say("cost_mid", dollars(price(day.at(mid))))
	c.say("cost_faster", dollars(price(faster)))
	perThousand := 10 / (10_000 * 3600.0) * 1000
	seed := 3 / (4000 * 3600.0) * 1e6
	c.say("right1k", fmt.Sprintf("$%.6f", perThousand))
	c.say("right1m", fmt.Sprintf("$%.3f", 1000*perThousand))
	c.say("seed", fmt.Sprintf("$%.3f", seed))
	c.say("seed_third", fmt.Sprintf("$%.3f", 3*seed))

	c.claim("10 users: dollars per million tokens", price(crowd.at("10")), about(1.39, 0.15))
	c.claim("100 users: dollars per million tokens", price(crowd.at("100")), about(0.294, 0.15))
	c.claim("price of a token, at 30 % of the capacity / at capacity", price(day.at(mid))/floor, about(1/0.3, 0.05))
	c.claim("price of a token at the same rate, faster GPU / other GPU", price(faster)/price(day.at(mid)),
		about(1, 0.02))
	c.claim("TTFT p95, faster GPU / other GPU",
		of(faster.Summary.Latency.TTFT.P95)/of(day.at(mid).Summary.Latency.TTFT.P95), atMost(0.999))
	c.claim("$3 an hour at 4,000 tokens per second: dollars per million", seed, exactly(0.208, 3))
	c.claim("$10 an hour at 10,000 tokens per second: dollars per thousand", perThousand, exactly(0.000278, 6))

	c.draw("cost", &chart.Lines{
		Title: fmt.Sprintf("Idle hours are paid too: at %s of the capacity, a token costs %s as much as at full load",
			percent(load), times(price(day.at(mid))/floor)),
		Caption: "A 70B model with 4-bit weights on one H100 for $3 an hour; by requests per second",
		Panels: []chart.Panel{{
			X:     chart.Scale{Title: "Load, as a fraction of the capacity", Unit: chart.Fraction, Max: 1.04},
			Y:     chart.Scale{Title: "Dollars per million output tokens", Unit: chart.Dollars},
			Lines: []chart.Line{measured},
			Rules: []chart.Rule{{At: floor, Name: "at capacity " + dollars(floor)}},
		}},
	})
	return nil
}
