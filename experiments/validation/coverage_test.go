package validation

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestBarsHoldWhatTheyClaim draws errors of cells whose centres differ, and wants the bars from some cells to hold the
// runs of others as often as they claim.
func TestBarsHoldWhatTheyClaim(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var half, p90 float64
	const rounds = 200
	for range rounds {
		var cells []*errorCell
		for range 40 {
			c := &errorCell{kind: "kind", family: "family"}
			centre := random.NormFloat64() * 0.2
			for range 1 + random.IntN(9) {
				c.logs = append(c.logs, centre+random.NormFloat64()*0.05)
			}
			cells = append(cells, c)
		}
		m := covered("x", cells, func(*errorCell) bool { return true })
		half, p90 = half+m.HalfShare/rounds, p90+m.P90Share/rounds
	}
	// The bars are conservative by at most one cell of 40 at both ends.
	if half < 0.49 || half > 0.55 || p90 < 0.89 || p90 > 0.95 {
		t.Errorf("the bars hold %.3f and %.3f of the runs, want 0.5 and 0.9, and at most 0.05 more", half, p90)
	}
}

// TestBarsFallBack wants a kind of few cells to take the bars of its family, or of all, widened to hold its own errors.
func TestBarsFallBack(t *testing.T) {
	var cells []*errorCell
	for i := range 19 {
		cells = append(cells, &errorCell{kind: "many", family: "a", logs: []float64{float64(i-9) / 100}})
	}
	cells = append(cells, &errorCell{kind: "few", family: "a", logs: []float64{1}},
		&errorCell{kind: "alone", family: "b", logs: []float64{-2}})
	for _, c := range []struct {
		kind, family, basis string
		low, high           float64
	}{
		{"many", "a", "kind", -0.09, 0.09},
		{"few", "a", "family", -0.09, 1},
		{"alone", "b", "all", -2, 1},
	} {
		_, p90, basis := barsFor(c.kind, c.family, cells)
		if basis != c.basis || math.Abs(math.Log1p(p90[0])-c.low) > 1e-9 || math.Abs(math.Log1p(p90[1])-c.high) > 1e-9 {
			t.Errorf("%s: %v of %s, want %v to %v of %s", c.kind, p90, basis, math.Expm1(c.low), math.Expm1(c.high), c.basis)
		}
	}
}

// TestInSample wants models to be left out only on the GPUs to whose runs constants were fitted.
func TestInSample(t *testing.T) {
	for _, c := range []struct {
		llm, gpu string
		want     bool
	}{{"llama-3.1-8b", "h100-sxm", true}, {"qwen2.5-7b", "h100-sxm", false}, {"minimax-m2.5", "b300-sxm", true},
		{"deepseek-r1", "b200-sxm", false}} {
		if got := inSample(c.llm, c.gpu); got != c.want {
			t.Errorf("%s on %s: %t, want %t", c.llm, c.gpu, got, c.want)
		}
	}
}
