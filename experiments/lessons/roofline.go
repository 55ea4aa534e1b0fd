package lessons

import (
	"fmt"

	"clifftop/experiments"
	"clifftop/model"
	"clifftop/report/chart"
)

// roofline is lesson 1: the weights are read once for many users.
func roofline(c *class) error {
	crowd := c.step("crowd")
	tpot := func(users string) float64 { return of(crowd.at(users).Summary.Latency.TPOT.P50) }
	speed := func(users string) float64 { return of(crowd.at(users).Summary.Throughput.OutputTokensPerS) }

	c.Table.Columns = []string{"users", "output tokens/s", "TPOT", "tokens/s per user", "MFU", "FLOPs/byte"}
	path := chart.Line{Name: "", Dots: true}
	rate := chart.Line{Name: "simulated", Dots: true}
	free := chart.Line{Name: "proportional", Guide: true}
	var at model.Explanation
	below, above := "", ""
	for i := range crowd.Points {
		p := &crowd.Points[i]
		e, err := p.typicalStep()
		if err != nil {
			return err
		}
		at = e
		if e.Intensity < e.Ridge {
			below = p.Value
		} else if above == "" {
			above = p.Value
		}
		x := speed(p.Value)
		c.Table.add(p.Value, number(x), lasting(tpot(p.Value)), number(1e3/tpot(p.Value)),
			percent(of(p.Summary.System.MFU)), number(e.Intensity))
		path.Points = append(path.Points, chart.Point{X: e.Intensity, Y: e.FLOPs / e.Seconds / 1e12, Label: p.Value})
		rate.Points = append(rate.Points, chart.Point{X: p.load(), Y: x})
		free.Points = append(free.Points, chart.Point{X: p.load(), Y: p.load() * speed("1")})
	}

	for _, users := range []string{"1", "5", "10"} {
		c.say("tpot"+users, lasting(tpot(users)))
	}
	for _, users := range []string{"1", "50"} {
		c.say("x"+users, number(speed(users)))
		c.say("speed"+users, number(1e3/tpot(users)))
	}
	c.say("gain10", times(speed("10")/speed("1")))
	c.say("gain100", times(speed("100")/speed("50")))
	c.say("share50", times(speed("50")/speed("1")))
	c.say("slower50", times(tpot("50")/tpot("1")))
	c.say("below", below)
	c.say("above", above)
	c.say("busy1", percent(of(crowd.at("1").Summary.System.BusyFraction)))
	c.say("mfu1", percent(of(crowd.at("1").Summary.System.MFU)))

	const wordsPerMinute, tokensPerWord = 250, 1.3
	reading := wordsPerMinute * tokensPerWord / 60
	c.say("slow", lasting(1e3/3))
	c.say("fast", lasting(1e3/5))
	c.say("reading", fmt.Sprintf("%.1f", reading))
	c.say("pace", lasting(1e3/reading))
	c.claim("250 words per minute, in tokens per second", reading, exactly(5.417, 3))

	// The flat part and the straight rise beyond it meet at the smallest batch that arithmetic limits.
	slope := (tpot("150") - tpot("100")) / 50
	c.claim("time per token, 10 users / 1 user", tpot("10")/tpot("1"), atMost(1.1))
	c.claim("throughput, 10 users / 1 user", speed("10")/speed("1"), atLeast(9))
	c.claim("time per token, 50 users / 10 users", tpot("50")/tpot("10"), atMost(1.4))
	c.claim("throughput, 100 users / 50 users", speed("100")/speed("50"), atMost(1.5))
	c.claim("number of users at which the flat and the steep part of the time per token meet", tpot("1")/slope,
		about(67, 0.25))

	roof := chart.Roofline(at.PeakFLOPs, at.BytesPerSecond, path)
	roof.Title = "The operating point below the roof, by users"
	c.draw("roofline", &chart.Lines{
		Title: fmt.Sprintf("The first 10 users cost almost nothing: throughput × %s, time per token × %s; from 50 to "+
			"100, throughput × %s",
			ratio(speed("10")/speed("1")), ratio(tpot("10")/tpot("1")), ratio(speed("100")/speed("50"))),
		Caption: "A 70B model with 4-bit weights on one H100; prompts of 150 tokens, outputs of 600",
		Beside:  true,
		Panels: []chart.Panel{roof, {
			Title: "Throughput",
			X:     chart.Scale{Title: "Concurrent users"},
			Y:     chart.Scale{Title: "Output tokens/s, all users"},
			Lines: []chart.Line{free, rate},
		}},
	})
	return nil
}

// typicalStep explains a typical iteration of the run: the average number of decoding sequences, each halfway through
// its output.
func (p *PointResult) typicalStep() (model.Explanation, error) {
	s := p.Summary
	n := max(1, int(of(s.Concurrency.Decoding.Mean)+0.5))
	context := (float64(s.Tokens.Input) + float64(s.Tokens.Output)/2) / float64(s.Requests.Completed)
	e, _, err := experiments.Explain(p.setup, model.Batch{Decodes: n, Context: int64(float64(n) * context), Emit: n})
	return e, err
}
