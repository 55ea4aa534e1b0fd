package lessons

import (
	"fmt"
	"math"

	"clifftop/report/chart"
)

// tail is lesson 7: the slowest requests.
func tail(c *class) error {
	rate := c.step("rate")
	c.Table.Columns = []string{"requests/s", "TTFT mean", "p50", "p95", "p99", "p99 / p50", "later than 1 s"}
	var curves []chart.Line
	late := map[string]float64{}
	for i := range rate.Points {
		p := &rate.Points[i]
		d := &p.Summary.Latency.TTFT
		waits := p.firstWaits()
		over := 0
		for _, ms := range waits {
			if ms > 1000 {
				over++
			}
		}
		late[p.Value] = float64(over) / float64(len(waits))
		c.Table.add(p.Value, lasting(of(d.Mean)), lasting(of(d.P50)), lasting(of(d.P95)), lasting(of(d.P99)),
			number(of(d.P99)/of(d.P50)), percent(late[p.Value]))
		c.say("p99_"+p.Value, lasting(of(d.P99)))
		c.say("spread"+p.Value, number(of(d.P99)/of(d.P50)))
		curves = append(curves, chart.Distribution(p.Value+" requests/s", waits))
	}
	for i, percent := range []int{75, 90, 60, 75} { // where there is room
		curves[i].NameAt = len(curves[i].Points) * percent / 100
	}
	before, now, overloaded := &rate.at("20").Summary.Latency.TTFT, &rate.at("22").Summary.Latency.TTFT,
		&rate.at("25").Summary.Latency.TTFT
	c.say("more50", lasting(of(now.P50)-of(before.P50)))
	c.say("ratio99", times(of(now.P99)/of(before.P99)))
	c.say("late22", percent(late["22"]))

	const requests = 10
	unlucky := 1 - math.Pow(0.99, requests)
	met := unluckyUsers(rate.at("20").firstWaits(), requests, of(before.P99))
	root := math.Pow(0.5, 1.0/5)
	c.say("unlucky", fmt.Sprintf("%.1f %%", 100*unlucky))
	c.say("met", fmt.Sprintf("%.1f %%", 100*met))
	c.say("root", fmt.Sprintf("%.2f", root))
	c.say("rootp", fmt.Sprintf("%.0f", 100*root))

	c.claim("increase of the median TTFT from 20 to 22 requests per second, in ms", of(now.P50)-of(before.P50),
		atMost(300))
	c.claim("TTFT p99, 22 / 20 requests per second", of(now.P99)/of(before.P99), atLeast(2.5))
	c.claim("growth of p99 / p50, as a factor", of(now.P99)/of(now.P50)/(of(before.P99)/of(before.P50)), atLeast(2))
	c.claim("p99 / p50 in overload", of(overloaded.P99)/of(overloaded.P50), atMost(3))
	c.claim("users with at least one of the 1 % bad requests among 10, in percent", 100*unlucky, exactly(9.6, 1))
	c.claim("the same in the simulation, in percent", 100*met, about(100*unlucky, 0.15))

	c.draw("tail", &chart.Lines{
		Title: fmt.Sprintf("A tenth more load: the median TTFT grows by %s, the p99 to %s its value",
			lasting(of(now.P50)-of(before.P50)), times(of(now.P99)/of(before.P99))),
		Caption: "llama-3.1-8b on one H100, the chat of lesson 4; 25 requests/s is beyond the limit",
		Panels: []chart.Panel{{
			X:     chart.Scale{Title: "Time to first token (log scale)", Unit: chart.Milliseconds, Log: true},
			Y:     chart.Scale{Title: "Fraction of requests with this TTFT or less", Unit: chart.Fraction, Max: 1.04},
			Lines: curves,
			Rules: []chart.Rule{{At: 1000, Vertical: true, Name: "limit 1 s"}, {At: 0.95, Name: "p95"}},
		}},
	})
	return nil
}

// unluckyUsers is the fraction of users with at least one wait above the limit. Each user has the given number of
// requests, with equal and largest possible distances.
func unluckyUsers(waits []float64, each int, limit float64) float64 {
	users := len(waits) / each
	unlucky := 0
	for u := range users {
		for k := range each {
			if waits[u+k*users] > limit {
				unlucky++
				break
			}
		}
	}
	return float64(unlucky) / float64(users)
}
