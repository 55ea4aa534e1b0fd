package lessons

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/report/chart"
	"clifftop/sim/clock"
)

// little is lesson 9: number = rate × time.
func little(c *class) error {
	office, slower, gpu := &c.step("office").Points[0], &c.step("slower").Points[0], c.step("gpu")
	c.Table.Columns = []string{"", "rate λ", "time W", "λ · W", "in system", "p95", "p99"}
	for _, k := range []struct {
		name string
		p    *PointResult
	}{{"4 per minute, 30 s", office}, {"4 per minute, 34 s", slower}, {"GPU, 10 requests/s", gpu.at("10")},
		{"GPU, 20 requests/s", gpu.at("20")}} {
		s := k.p.Summary
		rate, w := of(s.Throughput.OfferedRequestsPerS), of(s.Latency.E2E.Mean)/1e3
		n := of(s.Concurrency.InSystem.Mean)
		perTime := number(rate*60) + "/min"
		if rate > 1 {
			perTime = number(rate) + "/s"
		}
		c.Table.add(k.name, perTime, lasting(1e3*w), number(rate*w), number(n), number(of(s.Concurrency.InSystem.P95)),
			number(of(s.Concurrency.InSystem.P99)))
		c.claim(k.name+": number in the system / (λ · W)", n/(rate*w), about(1, 0.03))
	}
	n := &office.Summary.Concurrency.InSystem
	poisson := distuv.Poisson{Lambda: 4.0 / 60 * 30}
	above := 1 - poisson.CDF(2)
	headcount := 100 * 0.2 / 300 * 34
	w := func(rate string) float64 { return of(gpu.at(rate).Summary.Latency.E2E.Mean) }
	system := func(rate string) float64 { return of(gpu.at(rate).Summary.Concurrency.InSystem.Mean) }
	c.say("mean", number(of(n.Mean)))
	c.say("p99", number(of(n.P99)))
	c.say("above", percent(above))
	c.say("headcount", fmt.Sprintf("%.2f", headcount))
	c.say("growth", times(system("20")/system("10")))
	c.say("w10", lasting(w("10")))
	c.say("w20", lasting(w("20")))
	busy := gpu.at("20").Summary.Concurrency
	c.say("system", number(of(busy.InSystem.Mean)))
	c.say("running", number(of(busy.Running.Mean)))
	c.say("decoding", number(of(busy.Decoding.Mean)))

	const minutes = 30
	course := numberInSystem(office.lives, clock.Time(minutes*clock.Minute))
	c.claim("4 per minute, 30 s each: average number", of(n.Mean), about(2, 0.03))
	c.claim("4 per minute, 30 s each: p95", of(n.P95), exactly(quantile(poisson, 0.95), 0))
	c.claim("4 per minute, 30 s each: p99", of(n.P99), exactly(quantile(poisson, 0.99), 0))
	c.claim("p99 in theory", quantile(poisson, 0.99), exactly(6, 0))
	c.claim("fraction of time with more than 2, in theory", above, exactly(0.3233, 4))
	c.claim("100 employees, 20 % active, one request in 5 minutes, 34 s", headcount, exactly(2.27, 2))
	c.claim("the same in the simulation", of(slower.Summary.Concurrency.InSystem.Mean), about(headcount, 0.03))
	c.claim("GPU: number in the system, 20 / 10 requests per second", system("20")/system("10"), atLeast(3))

	c.draw("little", &chart.Lines{
		Title: fmt.Sprintf("4 requests per minute, 30 s each: %s at once on average, and capacity for %s is enough "+
			"99 %% of the time",
			fmt.Sprintf("%.1f", of(n.Mean)), number(of(n.P99))),
		Caption: "The first half hour; requests arrive at random",
		Panels: []chart.Panel{{
			X:     chart.Scale{Title: "Time, min", Max: minutes},
			Y:     chart.Scale{Title: "Requests in the system", Max: 8.4},
			Lines: []chart.Line{course},
			Rules: []chart.Rule{{At: of(n.Mean), Name: "mean λ · W"}, {At: of(n.P95), Name: "p95"},
				{At: of(n.P99), Name: "p99"}},
		}},
	})
	return nil
}

// quantile is the smallest number that a variable does not exceed with probability p.
func quantile(d distuv.Poisson, p float64) float64 {
	k := 0.0
	for d.CDF(k) < p {
		k++
	}
	return k
}

// numberInSystem is the number of requests in the system over time, in minutes, until a time.
func numberInSystem(lives []life, until clock.Time) chart.Line {
	type change struct {
		at clock.Time
		by float64
	}
	var changes []change
	for _, l := range lives {
		if l.sent < until {
			changes = append(changes, change{l.sent, 1}, change{l.last, -1})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return int(math.Copysign(1, float64(a.at-b.at))) })
	var l chart.Line
	n := 0.0
	for _, k := range changes {
		if k.at > until {
			break
		}
		at := k.at.Seconds() / 60
		l.Points = append(l.Points, chart.Point{X: at, Y: n})
		n += k.by
		l.Points = append(l.Points, chart.Point{X: at, Y: n})
	}
	return l
}
