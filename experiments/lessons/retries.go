package lessons

import (
	"fmt"

	"clifftop/report/chart"
)

// retries is lesson 8: work on outputs whose client has left.
func retries(c *class) error {
	emitted := func(p *PointResult) float64 { return of(p.Summary.Throughput.OutputTokensPerS) }
	useful := func(p *PointResult) float64 { return of(p.Summary.Throughput.SuccessfulOutputTokensPerS) }
	good := func(p *PointResult) float64 { return of(p.Summary.Goodput.OutputTokensPerS) }
	c.Table.Columns = []string{"users", "emitted tokens/s", "successful", "in time", "timed out", "rejected",
		"attempts"}

	falls := &chart.Waterfall{
		Caption: "llama-3.1-8b on one H100 with 64 seats, 200 users without think time; in time: within 10 s of the " +
			"first attempt",
		Unit:   "Tokens per second",
		Stages: []string{"emitted", "successful", "in time"},
	}
	var lines []chart.Line
	at := map[string]*PointResult{} // with 200 users
	for _, k := range []struct{ step, key, short, name string }{
		{"patient", "patient", "patient", "patient"},
		{"first token", "first", "first token 2 s", "2 s for the first token, retries"},
		{"told", "told", "6 s, told", "6 s for the output, server told"},
		{"silent", "silent", "6 s, not told", "6 s, retries, server not told"},
		{"door", "door", "not told, rejected", "the same, with rejection"},
	} {
		s := c.step(k.step)
		line := chart.Line{Name: k.name, Dots: true}
		for i := range s.Points {
			p := &s.Points[i]
			r := p.Summary.Requests
			c.Table.add(p.Value+", "+k.short, number(emitted(p)), number(useful(p)), number(good(p)),
				percent(float64(r.TimedOut)/float64(r.Offered)), percent(float64(r.Rejected)/float64(r.Offered)),
				ratio(float64(r.Attempts)/float64(r.Offered)))
			line.Points = append(line.Points, chart.Point{X: p.load(), Y: useful(p)})
		}
		if len(line.Points) > 1 {
			lines = append(lines, line)
		}
		p := s.at("200")
		at[k.key] = p
		falls.Groups = append(falls.Groups,
			chart.WaterfallGroup{Name: k.name, Values: []float64{emitted(p), useful(p), good(p)}})
		c.say("emitted_"+k.key, number(emitted(p)))
		c.say("useful_"+k.key, number(useful(p)))
		c.say("good_"+k.key, number(good(p)))
	}
	told, silent := at["told"].Summary, at["silent"].Summary
	c.say("timed_told", percent(float64(told.Requests.TimedOut)/float64(told.Requests.Offered)))
	door := at["door"].Summary.Requests
	c.say("away", percent(float64(door.Rejected)/float64(door.Offered)))
	c.say("attempts", ratio(float64(silent.Requests.Attempts)/float64(silent.Requests.Offered)))
	product := emitted(at["told"]) * of(told.Goodput.Attainment)
	c.say("product", number(product))

	for _, k := range []struct {
		key, name string
		want      float64
	}{{"patient", "patient users", 6303}, {"first", "2 s for the first token", 6278},
		{"told", "6 s for the output, server told", 2102}} {
		c.claim("200 users, "+k.name+": successful tokens per second", useful(at[k.key]), about(k.want, 0.15))
	}
	c.claim("silent, 200 users: fraction of emitted tokens that are successful",
		useful(at["silent"])/emitted(at["silent"]), atMost(0.01))
	c.claim("silent, 200 users: emitted tokens / emitted tokens with patient users",
		emitted(at["silent"])/emitted(at["patient"]), about(1, 0.05))
	c.claim("with rejection: fraction of emitted tokens that are successful", useful(at["door"])/emitted(at["door"]),
		atLeast(0.8))
	c.claim("200 users who leave after 6 s: throughput × attainment / goodput", product/good(at["told"]), atLeast(1.1))

	falls.Title = fmt.Sprintf("Emitted tokens stay the same; useful tokens fall from %s to %s per second if clients "+
		"leave silently and retry",
		number(useful(at["patient"])), number(useful(at["silent"])))
	c.draw("retries", falls)
	c.draw("retries-by-users", &chart.Lines{
		Title: fmt.Sprintf("Timeouts turn a plateau into a cliff: with 200 users %s useful tokens/s if users are "+
			"patient, %s if the server is not told",
			number(useful(at["patient"])), number(useful(at["silent"]))),
		Caption: "llama-3.1-8b on one H100 with 64 seats",
		Panels: []chart.Panel{{
			X:     chart.Scale{Title: "Users"},
			Y:     chart.Scale{Title: "Successful output tokens/s"},
			Lines: lines,
		}},
	})
	return nil
}
