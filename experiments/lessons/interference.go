package lessons

import (
	"fmt"

	"clifftop/report/chart"
)

// interference is lesson 3: prompts delay decoding.
func interference(c *class) error {
	budget := c.step("budget")
	cases := []struct {
		key, name string
		*PointResult
	}{
		{"_first", "prompts first", &c.step("prefill-first").Points[0]},
		{"8192", "budget 8,192", budget.at("8192")}, {"2048", "budget 2,048", budget.at("2048")},
		{"512", "budget 512", budget.at("512")},
	}
	w := Stretch{FromS: 100, ToS: 101.5}
	timeline := &chart.Timeline{
		Caption: "llama-3.1-8b on one H100, 4 requests/s with prompts of 4,000 tokens and outputs of 250; each block " +
			"is an iteration",
		Kinds: []string{"decode only", "prefill and decode", "prefill only: decoding stops"}, FromS: w.FromS,
		ToS: w.ToS,
	}
	c.Table.Columns = []string{"", "ITL p50", "ITL p99", "longest gap", "TPOT p50", "TTFT p50", "E2E p50", "tokens/s"}
	var itl, x []float64
	for _, k := range cases {
		l := &k.Summary.Latency
		c.Table.add(k.name, lasting(of(l.ITL.P50)), lasting(of(l.ITL.P99)), lasting(of(l.ITL.Max)),
			lasting(of(l.TPOT.P50)),
			lasting(of(l.TTFT.P50)), lasting(of(l.E2E.P50)), number(of(k.Summary.Throughput.OutputTokensPerS)))
		c.say("itl"+k.key, lasting(of(l.ITL.P99)))
		c.say("ttft"+k.key, lasting(of(l.TTFT.P50)))
		c.say("tpot"+k.key, lasting(of(l.TPOT.P50)))
		c.say("e2e"+k.key, lasting(of(l.E2E.P50)))
		itl = append(itl, of(l.ITL.P99))
		x = append(x, of(k.Summary.Throughput.OutputTokensPerS))
		timeline.Lanes = append(timeline.Lanes, chart.Lane{Name: k.name, Slices: blocks(k.iterations)})
	}
	first, small, large := cases[0].Summary, cases[3].Summary, cases[1].Summary
	c.say("x", number(x[1]))
	c.say("itl_ratio", times(itl[0]/itl[3]))
	c.say("ttft_gain", lasting(of(small.Latency.TTFT.P50)-of(large.Latency.TTFT.P50)))

	// Two outputs, of 10 and of 1,000 tokens, with gaps of 20 ms and 50 ms.
	meanTPOT, meanITL := (20.0+50)/2, (9*20.0+999*50)/(9+999)
	c.say("stream", fmt.Sprintf("%.1f", 0.2+12))
	c.say("mean_tpot", fmt.Sprintf("%.1f ms", meanTPOT))
	c.say("mean_itl", fmt.Sprintf("%.1f ms", meanITL))
	c.claim("mean ITL of the two outputs in the example, in ms", meanITL, exactly(49.732, 3))

	c.rising("ITL p99 grows from chunks of 512 to 2,048, to 8,192 and to prompts first, each time by at least "+
		"this factor", []float64{itl[3], itl[2], itl[1], itl[0]}, 0.3)
	c.claim("ITL p99, prompts first / chunks of 512", itl[0]/itl[3], atLeast(8))
	c.claim("median TTFT, chunks of 512 / chunks of 8,192", of(small.Latency.TTFT.P50)/of(large.Latency.TTFT.P50),
		atLeast(1.2))
	c.claim("median TPOT, prompts first / chunks of 512", of(first.Latency.TPOT.P50)/of(small.Latency.TPOT.P50),
		atMost(2.1))
	c.claim("throughput, highest / lowest of the four", max(x[0], x[1], x[2], x[3])/min(x[0], x[1], x[2], x[3]),
		atMost(1.03))

	timeline.Title = fmt.Sprintf("Long prompts stop decoding: ITL p99 is %s if prompts go first, and %s with "+
		"chunks of 512",
		lasting(itl[0]), lasting(itl[3]))
	c.draw("interference", timeline)
	return nil
}

// blocks converts iterations to the slices of the picture.
func blocks(iterations []iteration) []chart.Slice {
	var out []chart.Slice
	for _, i := range iterations {
		kind := 0
		switch {
		case i.prompt > 0 && i.decodes > 0:
			kind = 1
		case i.prompt > 0:
			kind = 2
		}
		out = append(out, chart.Slice{StartS: i.start.Seconds(), EndS: i.end.Seconds(), Kind: kind})
	}
	return out
}
