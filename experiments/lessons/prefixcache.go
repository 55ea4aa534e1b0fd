package lessons

import (
	"fmt"

	"clifftop/report/chart"
)

// prefixCache is lesson 6: a working set that does not fit in the cache.
func prefixCache(c *class) error {
	cached, off, half := c.step("cached"), c.step("off"), c.step("half")
	total := func(p *PointResult) float64 { return of(p.Summary.Throughput.TotalTokensPerS) }
	hit := func(p *PointResult) float64 { return of(p.Summary.System.PrefixHitRate) }
	c.Table.Columns = []string{"users", "prompt + output tokens/s", "output tokens/s", "hit rate", "TTFT p50",
		"TTFT p99"}
	throughput := func(name string, s *StepResult) chart.Line {
		l := chart.Line{Name: name, Dots: true}
		for i := range s.Points {
			p := &s.Points[i]
			label := p.Value
			if name != "16-bit KV" {
				label += ", " + name
			}
			c.Table.add(label, number(total(p)), number(of(p.Summary.Throughput.OutputTokensPerS)), percent(hit(p)),
				lasting(of(p.Summary.Latency.TTFT.P50)), lasting(of(p.Summary.Latency.TTFT.P99)))
			l.Points = append(l.Points, chart.Point{X: p.load(), Y: total(p)})
		}
		return l
	}
	rate := func(name string, s *StepResult) chart.Line {
		l := chart.Line{Name: name, Dots: true}
		for i := range s.Points {
			l.Points = append(l.Points, chart.Point{X: s.Points[i].load(), Y: hit(&s.Points[i])})
		}
		return l
	}
	tokens := []chart.Line{throughput("16-bit KV", cached), throughput("8-bit KV", half), throughput("no cache", off)}
	hits := []chart.Line{rate("16-bit KV", cached), rate("8-bit KV", half)}

	const perUser = 6400 + 180
	pool := func(s *StepResult) float64 {
		p := &s.Points[0]
		return float64(*p.Summary.System.KVBlocks) * float64(p.setup.Scenario.Engine.BlockSize)
	}
	knee, kneeHalf := pool(cached)/perUser, pool(half)/perUser
	c.say("hit130_half", percent(hit(half.at("130"))))
	for _, users := range []string{"50", "100", "200"} {
		c.say("hit"+users, percent(hit(cached.at(users))))
	}
	possible := hit(cached.at("10"))
	c.say("x50", number(total(cached.at("50"))))
	c.say("x200", number(total(cached.at("200"))))
	c.say("x200_off", number(total(off.at("200"))))
	c.say("out50", number(of(cached.at("50").Summary.Throughput.OutputTokensPerS)))
	c.say("pool", number(pool(cached)))
	c.say("knee", fmt.Sprintf("%.0f", knee))
	c.say("knee_half", fmt.Sprintf("%.0f", kneeHalf))
	missed := 1 - hit(cached.at("85"))/possible
	c.say("miss85", percent(missed))
	c.say("over85", percent(1-knee/85))
	c.say("part100", percent(hit(cached.at("100"))/possible))

	c.claim("50 users: hits / possible hits", hit(cached.at("50"))/possible, atLeast(0.95))
	c.claim("85 users: fraction of lost hits / fraction of users without room", missed/(1-knee/85), atLeast(1.2))
	c.claim("200 users: hit rate", hit(cached.at("200")), atMost(0.01))
	c.claim("200 users: throughput / throughput without a cache", total(cached.at("200"))/total(off.at("200")),
		about(1, 0.02))
	c.claim("throughput, 200 users / 100 users", total(cached.at("200"))/total(cached.at("100")), atMost(0.9))
	c.claim("knee with 8-bit KV / knee with 16-bit KV", kneeHalf/knee, about(2, 0.02))
	c.claim("8-bit KV: throughput, 160 users / 100 users", total(half.at("160"))/total(half.at("100")), atLeast(1))

	c.draw("prefix-cache", &chart.Lines{
		Title: fmt.Sprintf("The cache holds the documents of %.0f users; with 200 users it finds nothing, and "+
			"throughput is as without a cache",
			knee),
		Caption: "llama-3.1-8b on one H100; each user asks many questions about a document of 5,600 tokens",
		Panels: []chart.Panel{{
			Title: "Hit rate",
			X:     chart.Scale{Title: "Users"},
			Y:     chart.Scale{Title: "Prompt tokens found in the cache", Unit: chart.Fraction, Max: 1.04},
			Lines: hits,
			Rules: []chart.Rule{{At: knee, Vertical: true, Name: fmt.Sprintf("room for %.0f", knee)},
				{At: kneeHalf, Vertical: true, Name: fmt.Sprintf("room for %.0f with 8 bits", kneeHalf)}},
		}, {
			Title: "Throughput",
			X:     chart.Scale{Title: "Users"},
			Y:     chart.Scale{Title: "Prompt and output tokens/s"},
			Lines: tokens,
		}},
	})
	return nil
}
