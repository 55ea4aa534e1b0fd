package experiments_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"testing"

	"clifftop/experiments/scenario"
	"clifftop/experiments/traces"
	"clifftop/report/inspect"
	"clifftop/workload"
	"clifftop/workload/trace"
)

// TestGeneratedTrafficMatchesItsPreset writes the traffic of presets as traces and inspects them: lengths follow
// the preset's laws (Kolmogorov-Smirnov), and arrivals are as bursty as the trace that the preset was fitted to.
func TestGeneratedTrafficMatchesItsPreset(t *testing.T) {
	for _, c := range []struct {
		preset string
		// ranges of the gaps' CV and of the dispersion of counts in 1, 10 and 60 s; the traces have 1.09 and 1.39,
		// 3.9, 16 (chat), and 13.2 and 13.2, 72, 167 (code)
		cv         [2]float64
		dispersion [3][2]float64
	}{
		{"chat-azure23", [2]float64{1.03, 1.15}, [3][2]float64{{1.2, 1.6}, {2.8, 5.2}, {10, 24}}},
		{"code-azure23", [2]float64{8, 22}, [3][2]float64{{7, 16}, {35, 95}, {90, 260}}},
	} {
		const n = 60_000
		s, err := scenario.Parse("generated",
			fmt.Appendf(nil, "workload: {preset: %s}\nrun: {requests: %d, seed: 5}\n", c.preset, n))
		if err != nil {
			t.Fatal(err)
		}
		setup, err := s.Resolve()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if rows, err := traces.Generate(context.Background(), setup, &b, true); err != nil || rows != n {
			t.Fatalf("%d rows, %v", rows, err)
		}
		f, err := trace.Open(&b, c.preset, trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		inputs, outputs := map[int32]int{}, map[int32]int{}
		x, err := inspect.Trace(&counting{f, inputs, outputs}, 0, f.Classes)
		if err != nil {
			t.Fatal(err)
		}
		preset, err := workload.FindPreset(c.preset)
		if err != nil {
			t.Fatal(err)
		}
		input := preset.Spec.Input
		// Answers depend on prompts; alone they follow the law of the preset's answers, as well as its coarser table of
		// tenths lets them.
		for _, l := range []struct {
			what   string
			counts map[int32]int
			law    workload.LengthsSpec
			most   float64
		}{{"prompts", inputs, input, 1.95 / math.Sqrt(n)}, {"answers", outputs, preset.Independent, 0.06}} {
			law, err := l.law.Lengths(l.what)
			if err != nil {
				t.Fatal(err)
			}
			if d := distance(l.counts, n, law); d > l.most {
				t.Errorf("%s: %s are %.4f from their law, want at most %.4f", c.preset, l.what, d, l.most)
			}
		}
		within := func(what string, v *float64, limits [2]float64) {
			if v == nil || *v < limits[0] || *v > limits[1] {
				t.Errorf("%s: %s %v, want %v", c.preset, what, *v, limits)
			}
		}
		within("CV of the gaps", x.Arrivals.GapCV, c.cv)
		for i, d := range x.Arrivals.Dispersion {
			within(fmt.Sprintf("dispersion in %v s", d.WindowS), d.Index, c.dispersion[i])
		}
	}
}

// counting counts the lengths of the rows that pass.
type counting struct {
	trace.Reader
	inputs, outputs map[int32]int
}

func (c *counting) Next() (trace.Row, error) {
	r, err := c.Reader.Next()
	if err == nil {
		c.inputs[r.InputTokens]++
		c.outputs[r.OutputTokens]++
	}
	return r, err
}

// distance is the greatest between the shares of n lengths above any value and those of a law.
func distance(counts map[int32]int, n float64, law workload.Lengths) float64 {
	longest := int32(0)
	for tokens := range counts {
		longest = max(longest, tokens)
	}
	most, upTo := 0.0, 0
	for tokens := range longest + 1 {
		upTo += counts[tokens]
		most = max(most, math.Abs(1-float64(upTo)/n-law.Exceeds(tokens)))
	}
	return most
}
