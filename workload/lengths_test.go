package workload

import (
	"math"
	"math/rand/v2"
	"testing"
)

// laws are one of each kind, with the closed form of the mean before rounding, or 0.
var laws = map[string]struct {
	spec LengthsSpec
	mean float64
}{
	"fixed":        {LengthsSpec{Distribution: "fixed", Value: 247}, 247},
	"uniform":      {LengthsSpec{Distribution: "uniform", Min: 10, Max: 99}, 54.5},
	"lognormal":    {LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8}, 512},
	"lognormal mu": {LengthsSpec{Distribution: "lognormal", Mu: 5, Sigma: 0.5}, math.Exp(5.125)},
	"gamma":        {LengthsSpec{Distribution: "gamma", Mean: 300, CV: 1.5}, 0},
	"gamma even":   {LengthsSpec{Distribution: "gamma", Mean: 900, CV: 0.3}, 900},
	"weibull":      {LengthsSpec{Distribution: "weibull", Mean: 400, Shape: 1.5}, 400},
	"heavy":        {LengthsSpec{Distribution: "weibull", Mean: 2000, Shape: 0.42, Max: 30000}, 0},
	"clipped":      {LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 2, Min: 100, Max: 1000}, 0},
	"mixture": {LengthsSpec{Distribution: "mixture", Parts: []PartSpec{
		{Weight: 3, LengthsSpec: LengthsSpec{Distribution: "fixed", Value: 100}},
		{Weight: 1, LengthsSpec: LengthsSpec{Distribution: "uniform", Min: 200, Max: 400}},
	}}, 150},
	"quantiles": {LengthsSpec{Distribution: "quantiles", P: []float64{0, 0.5, 0.7, 1},
		Q: []float64{10, 100, 100, 1100}}, 0.5*55 + 0.2*100 + 0.3*600},
}

// TestLengths draws from each law and compares the sample with the law's own tail (Kolmogorov–Smirnov
// at every length), its mean with the closed form, and checks that all randomness comes from the stream.
func TestLengths(t *testing.T) {
	for name, c := range laws {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			law, err := c.spec.Lengths("workload.input")
			if err != nil {
				t.Fatal(err)
			}
			const n = 200_000
			src := NewRNG(7, name)
			count := map[int32]int{}
			sum := 0.0
			for k := range n {
				src.Seek(0, uint64(k))
				x := law.Sample(src)
				if x < 1 || x > MaxTokens {
					t.Fatalf("length %d", x)
				}
				count[x]++
				sum += float64(x)
				src.Seek(0, uint64(k))
				if y := law.Sample(src); y != x {
					t.Fatalf("draw %d gives %d, then %d: randomness from elsewhere", k, x, y)
				}
			}
			if ks := distance(count, n, law); ks > 1.95/math.Sqrt(n) { // exceeded once in 1000
				t.Errorf("KS distance %.5f from the law", ks)
			}
			mean := Mean(law)
			if c.mean > 0 && math.Abs(mean-c.mean) > 0.001*c.mean {
				t.Errorf("mean %.4f, want %.4f", mean, c.mean)
			}
			if got := sum / n; math.Abs(got-mean) > 0.03*mean {
				t.Errorf("sample mean %.2f, mean %.2f", got, mean)
			}
		})
	}
}

// distance returns the greatest difference between the tails of a sample and of a law.
func distance(count map[int32]int, n int, law Lengths) float64 {
	var top int32
	for x := range count {
		top = max(top, x)
	}
	above, worst := n, 0.0
	for x := range top + 1 {
		above -= count[x]
		worst = max(worst, math.Abs(float64(above)/float64(n)-law.Exceeds(x)))
	}
	return worst
}

// TestMeanExact compares Mean with the plain sum of tails.
func TestMeanExact(t *testing.T) {
	for name, c := range laws {
		law, err := c.spec.Lengths("k")
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for n := int32(0); n < 400_000; n++ {
			e := law.Exceeds(n)
			sum += e
			if e < 1e-13 {
				break
			}
		}
		if mean := Mean(law); math.Abs(mean-sum) > 2e-4*sum {
			t.Errorf("%s: Mean %.6f, sum of tails %.6f", name, mean, sum)
		}
	}
}

// TestParameters checks moments against the meaning of the parameters, where gonum's differ.
func TestParameters(t *testing.T) {
	src := NewRNG(3, "moments")
	moments := func(law Lengths) (mean, cv float64) {
		const n = 400_000
		var s, s2 float64
		for k := range n {
			src.Seek(1, uint64(k))
			x := float64(law.Sample(src))
			s += x
			s2 += x * x
		}
		mean = s / n
		return mean, math.Sqrt(s2/n-mean*mean) / mean
	}
	for _, c := range []struct {
		name     string
		law      Lengths
		mean, cv float64
	}{
		{"lognormal", LognormalOf(1000, 0.5), 1000, 0.5},
		{"gamma", gamma{Mean: 1000, CV: 0.5}, 1000, 0.5},
		{"gamma above 1", gamma{Mean: 5000, CV: 1.3}, 5000, 1.3},
		{"weibull", weibullOf(1000, 2), 1000, 0.5227232},
	} {
		mean, cv := moments(c.law)
		if math.Abs(mean/c.mean-1) > 0.01 || math.Abs(cv/c.cv-1) > 0.01 {
			t.Errorf("%s: mean %.2f, cv %.4f, want %.2f, %.4f", c.name, mean, cv, c.mean, c.cv)
		}
	}
	if w := weibullOf(2.94, 0.419); math.Abs(w.Scale-1) > 0.01 {
		t.Errorf("weibull scale %.4f for mean 2.94, want 1", w.Scale)
	}
}

// TestRounding: rounding is half up, at least 1.
func TestRounding(t *testing.T) {
	for x, want := range map[float64]int32{-3: 1, 0: 1, 0.49: 1, 1.49: 1, 1.5: 2, 2.4999: 2, 1e12: MaxTokens,
		math.Inf(1): MaxTokens, math.NaN(): 1} {
		if got := tokens(x); got != want {
			t.Errorf("tokens(%v) = %d, want %d", x, got, want)
		}
	}
}

func TestGivenInput(t *testing.T) {
	s := LengthsSpec{
		Distribution: "given-input", Edges: []int32{10, 100, 1000}, P: []float64{0, 1},
		Rows: [][]float64{{1, 9}, {50, 90}}, Max: 80,
	}
	var f fieldFaults
	g := s.givenInput("k", &f)
	if err := f.Err(); err != nil {
		t.Fatal(err)
	}
	src := rand.NewPCG(1, 2)
	for _, c := range []struct{ input, low, high int32 }{{1, 1, 9}, {99, 1, 9}, {100, 50, 80}, {5000, 50, 80}} {
		for range 200 {
			if out := g.SampleGiven(c.input, src); out < c.low || out > c.high {
				t.Fatalf("input %d gives output %d, want %d to %d", c.input, out, c.low, c.high)
			}
		}
	}
	m := Mean(g.Marginal(uniformLengths{Min: 50, Max: 149})) // half the prompts in either row
	if want := (Mean(g.Rows[0]) + Mean(g.Rows[1])) / 2; math.Abs(m-want) > 1e-3 {
		t.Errorf("marginal mean %.4f, want %.4f", m, want)
	}
}
