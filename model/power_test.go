package model_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/model/catalog"
)

// TestStepPower computes the power of a decode of llama-3.1-8b on an H100 by hand: 64 sequences of 1,000 tokens in
// 10 ms. 15 GB of weights and 64,000 tokens of 131,072 bytes are read: 23.4 GB, 70 % of what the memory moves in that
// time. The arithmetic takes 2 · 7.5e9 · 64 / 989e12 s, 9.7 %, and a little for attention.
func TestStepPower(t *testing.T) {
	d := deploy(t, "llama-3.1-8b", "h100", model.Options{})
	p := model.NewStepPower(d)
	x := model.Iterations{First: 10e12, N: 1, Tokens: 64, Decodes: 64, Emit: 64, Context: 64_000}
	c := d.GPU.Power
	want := c.Watts(0.1+4*4096*64_000*32/989e12/0.01, 23.4e9/3.35e12/0.01)
	if got := p.Of(&x).Peak; math.Abs(got/want-1) > 0.01 {
		t.Errorf("%g W, want %g", got, want)
	}
	// Sums give the same energy: power times time.
	s := model.Sums{Seconds: 0.01, BusySeconds: 0.01, Iterations: 1, Tokens: 64, Decodes: 64, Emit: 64, Context: 64_000,
		Energy: p.Of(&x)}
	if got, want := p.Joules(&s), p.Of(&x).Peak*0.01; math.Abs(got/want-1) > 1e-6 {
		t.Errorf("%g J, want %g", got, want)
	}
	// A cap holds: in 2 ms the same work would need more than the design power.
	x.First = 2e12
	s.Energy = p.Of(&x)
	s.Seconds, s.BusySeconds = 1, 0.002
	if got, want := p.Joules(&s), 0.998*c.Idle+0.002*c.Cap; math.Abs(got/want-1) > 1e-6 || s.Peak != c.Cap {
		t.Errorf("%g J at %g W, want %g J", got, s.Peak, want)
	}
	// Experts are read once for all tokens: twice the tokens take less than twice the energy.
	moe := model.NewStepPower(deploy(t, "gpt-oss-120b", "h100", model.Options{}))
	one := moe.Of(&model.Iterations{First: 10e12, N: 1, Tokens: 16}).Rest.Lo
	if two := moe.Of(&model.Iterations{First: 10e12, N: 2, Tokens: 32}).Rest.Lo; two <= 2*one || two >= 4*one {
		t.Errorf("experts take %d and %d nJ", one, two)
	}
	if model.NewStepPower(deploy(t, "llama-3.1-8b", "tpu-v5e", model.Options{})) != nil {
		t.Error("a GPU without design power has a power")
	}
}

// TestMeanDraftedPower compares two iterations of mean drafts, of which every draft is accepted, with the iteration of
// two rows per sequence that they stand for: the same energy in the same time.
func TestMeanDraftedPower(t *testing.T) {
	for _, name := range []string{"llama-3.1-8b", "gpt-oss-120b"} {
		d := deploy(t, name, "h100", model.Options{})
		mean, exact := model.NewMeanDraftedPower(d, 1, []float64{1}), model.NewStepPower(d)
		two := model.Iterations{First: 20e12, N: 2, Tokens: 64, Decodes: 64, Emit: 64, Context: 64_000}
		one := model.Iterations{First: 40e12, N: 1, Tokens: 128, Decodes: 64, Emit: 128, Context: 64_000}
		half, whole, plain := mean.Of(&two).Peak, exact.Of(&one).Peak, exact.Of(&two).Peak
		if math.Abs(half/whole-1) > 0.03 {
			t.Errorf("%s: %g W in the mean, %g W exactly", name, half, whole)
		}
		if plain < 1.1*half {
			t.Errorf("%s: %g W without the drafts, %g W with them: the iterations read the weights twice", name, plain, half)
		}
	}
}

// TestBelow demands that iterations which Below leaves out would not have changed the energy, and that it leaves out
// most that draw much less than the highest power.
func TestBelow(t *testing.T) {
	p := model.NewStepPower(deploy(t, "llama-3.1-8b", "h100", model.Options{}))
	rng := rand.New(rand.NewPCG(1, 2))
	low, left := 0, 0
	for range 20_000 {
		draw := func() *model.Iterations {
			decodes := rng.Int64N(300)
			return &model.Iterations{First: 1e12 + rng.Int64N(4e13), Slope: rng.Int64N(1e9), N: 1 + rng.Int64N(200),
				Decodes: decodes, Tokens: decodes + rng.Int64N(2000), Emit: decodes,
				Context: decodes * rng.Int64N(2000)}
		}
		e, x := p.Of(draw()), draw()
		after := e
		p.Count(&after, x)
		if p.Of(x).Peak < 0.7*e.Peak {
			low++
		}
		if p.Below(e.Peak, x.Tokens, x.Context+(x.N-1)*x.Decodes, x.First) {
			if left++; after != e {
				t.Fatalf("%+v is left out, but changes %+v to %+v", *x, e, after)
			}
		}
	}
	if low < 1000 || left < low/2 {
		t.Errorf("%d of %d iterations that draw little are left out", left, low)
	}
	windows := model.NewStepPower(deploy(t, "gpt-oss-20b", "h100", model.Options{}))
	if windows.Below(1e9, 1, 1, 1e15) {
		t.Error("sums do not tell the energy of windows")
	}
}

// TestEnergyOfSpans demands that the energy of a run of iterations is the sum of its parts, above the cap too.
func TestEnergyOfSpans(t *testing.T) {
	full := model.NewStepPower(deploy(t, "llama-3.1-8b", "h100", model.Options{}))
	window := model.NewStepPower(deploy(t, "gpt-oss-20b", "h100", model.Options{}))
	rapid.Check(t, func(t *rapid.T) {
		p := full
		if rapid.Bool().Draw(t, "windows") {
			p = window
		}
		x := model.Iterations{
			First: rapid.Int64Range(1, 3e13).Draw(t, "first"), Slope: rapid.Int64Range(0, 1e9).Draw(t, "slope"),
			N: rapid.Int64Range(2, 5000).Draw(t, "n"), Decodes: rapid.Int64Range(0, 500).Draw(t, "decodes"),
			Context: rapid.Int64Range(0, 1e6).Draw(t, "context"),
		}
		x.Tokens, x.Emit = x.Decodes, x.Decodes
		cut := rapid.Int64Range(1, x.N-1).Draw(t, "cut")
		head, tail := x, x
		head.N = cut
		tail.N, tail.First, tail.Context = x.N-cut, x.First+cut*x.Slope, x.Context+cut*x.Decodes
		all, a, b := p.Of(&x), p.Of(&head), p.Of(&tail)
		if all.Excess != a.Excess.Add(b.Excess) || all.Rest != a.Rest.Add(b.Rest) || all.Peak != max(a.Peak, b.Peak) {
			t.Fatalf("%+v, want %+v and %+v", all, a, b)
		}
	})
}

// TestPowerLimit limits an H100 to 60 % of the way from idle to design power: the clock falls to the cube root of it.
func TestPowerLimit(t *testing.T) {
	g, err := catalog.GPU("h100")
	if err != nil {
		t.Fatal(err)
	}
	limit := g.Power.Idle + 0.6*(g.Power.Cap-g.Power.Idle)
	limited, err := g.Limited(limit)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := limited.BF16FLOPs/g.BF16FLOPs, math.Cbrt(0.6); math.Abs(got-want) > 1e-12 {
		t.Errorf("arithmetic at %g, want %g", got, want)
	}
	if limited.HBMBytesPerSecond != g.HBMBytesPerSecond {
		t.Errorf("memory slows down to %g", limited.HBMBytesPerSecond/g.HBMBytesPerSecond)
	}
	speed := [2]float64{1, 1}
	for watts := g.Power.Cap; watts > g.Power.Idle+1; watts -= 10 {
		l, err := g.Limited(watts)
		if err != nil {
			t.Fatal(err)
		}
		if most := l.Power.Base + l.Power.Memory*0.8; most > watts*1.08 && most > l.Power.Base*1.01 {
			t.Errorf("%g W: memory-bound iterations draw %g W", watts, most)
		}
		now := [2]float64{l.BF16FLOPs / g.BF16FLOPs, l.HBMBytesPerSecond / g.HBMBytesPerSecond}
		if now[0] > speed[0]+1e-9 || now[1] > speed[1]+1e-9 || now[0] <= 0 {
			t.Errorf("%g W: speeds %v after %v", watts, now, speed)
		}
		speed = now
	}
	for watts, want := range map[float64]string{
		100:        "100 W is outside the power of h100-sxm (want more than the 105 W that it draws idle, and at most the design power of 700 W)",
		701:        "701 W is outside the power",
		math.NaN(): "NaN W is outside the power",
	} {
		if _, err := g.Limited(watts); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%g W: %v", watts, err)
		}
	}
	if _, err := (model.GPU{Name: "x"}).Limited(100); err == nil ||
		err.Error() != "100 W: the design power of x is not known (want no limit, or a GPU record with tdp_w)" {
		t.Error(err)
	}
}

// TestReleases slows kernels down by the release of an engine.
func TestReleases(t *testing.T) {
	g, err := catalog.GPU("mi355x")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"": 1, "vllm-0.15": 1, "sglang-0.4": 1.3, "sglang-0.5.2": 1.3, "sglang-0.5.4.post1": 1.3, "sglang-0.5.6.post1": 0.96,
		"sglang-0.5.9": 1, "sglang-0.5.12": 0.81, "sglang-0.6": 0.81, "trtllm-1.1.0": 1.15, "trtllm-1.2.0": 1,
	} {
		r := g.ForRelease(name, true)
		if got := r.Kernels.Common.MLADecodeLaunch / g.Kernels.Common.MLADecodeLaunch; math.Abs(got-want) > 1e-9 {
			t.Errorf("%q: %g times as long, want %g", name, got, want)
		}
		if err := r.Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	if r := g.ForRelease("trtllm-1.1.0", false); r.Kernels.Common.MLADecodeLaunch != g.Kernels.Common.MLADecodeLaunch {
		t.Error("TensorRT-LLM 1.1 is slower without latent attention")
	}
}
