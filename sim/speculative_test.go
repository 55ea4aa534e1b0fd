package sim_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/engine"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// drafting is an engine with speculative decoding on which one request at a time takes iterations of a second.
func drafting(p engine.Speculative) engine.Config {
	cfg := server(1, 1, 0)
	cfg.Speculative = p
	return cfg
}

// perIteration is the mean number of tokens that a decode iteration produces.
func perIteration(t *testing.T, p engine.Speculative) (tokens, accepted, drafts float64) {
	t.Helper()
	requests := make([]workload.Request, 50)
	for i := range requests {
		requests[i] = workload.Request{InputTokens: 1, OutputTokens: 4000}
	}
	var recorder simtest.Recorder
	e, err := sim.New(drafting(p), simtest.NewRequests(requests), &recorder)
	if err == nil {
		err = e.Run(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0.0
	for _, it := range recorder.Iterations {
		if it.Decodes > 0 && it.Discarded == 0 {
			n++
			tokens += float64(1 + it.Accepted)
			accepted, drafts = accepted+float64(it.Accepted), drafts+float64(it.Drafts)
		}
	}
	return tokens / n, accepted, drafts
}

// TestTheorySpeculative expects (1-a^(K+1))/(1-a) tokens in an iteration where drafts are accepted with probability a
// each, and the sum of the products of the probabilities where they differ by place.
func TestTheorySpeculative(t *testing.T) {
	testenv.NeedsLong(t, "many draft lengths, 2 s")
	for _, c := range []struct {
		k          int32
		acceptance []float64
	}{{1, []float64{0.7}}, {3, []float64{0.7}}, {5, []float64{0.9}}, {4, []float64{0.9, 0.6, 0.3, 0.1}},
		{6, []float64{0.8, 0.5}}, {3, []float64{0}}, {3, []float64{1}}} {
		want, product := 1.0, 1.0
		for k := range int(c.k) {
			product *= c.acceptance[min(k, len(c.acceptance)-1)]
			want += product
		}
		if a := c.acceptance[0]; len(c.acceptance) == 1 && a < 1 {
			if law := (1 - math.Pow(a, float64(c.k)+1)) / (1 - a); math.Abs(law-want) > 1e-9 {
				t.Fatalf("the law says %v, the sum %v", law, want)
			}
		}
		got, _, _ := perIteration(t, engine.Speculative{Tokens: c.k, Method: engine.EAGLE, Acceptance: c.acceptance,
			Seed: 1})
		if math.Abs(got-want) > 0.015*want { // some 10⁵ iterations
			t.Errorf("%d drafts, accepted with %v: %.4f tokens in an iteration, want %.4f", c.k, c.acceptance, got,
				want)
		}
	}
}

// TestNGramMatchProbability checks that a lookup finds drafts as often as configured.
func TestNGramMatchProbability(t *testing.T) {
	tokens, accepted, drafts := perIteration(t,
		engine.Speculative{Tokens: 3, Method: engine.NGram, Acceptance: []float64{0.5}, Match: 0.25, Seed: 1})
	if want := 1 + 0.25*0.875; math.Abs(tokens-want) > 0.01*want {
		t.Errorf("%.4f tokens in an iteration, want %.4f", tokens, want)
	}
	if want := 0.875 / 3; math.Abs(accepted/drafts-want) > 0.015*want {
		t.Errorf("%.4f of the drafts are accepted, want %.4f", accepted/drafts, want)
	}
}

// TestSpeculativeIsChecked checks what cannot be combined with speculative decoding.
func TestSpeculativeIsChecked(t *testing.T) {
	for want, change := range map[string]func(c *engine.Config){
		"slots: 64 is not allowed": func(c *engine.Config) { c.Speculative.Slots, c.MaxNumBatchedTokens = 64, 64 },
		"speculative: acceptance: there is none": func(c *engine.Config) {
			c.Speculative.Acceptance = nil
		},
		"acceptance: 1.5 is not a probability": func(c *engine.Config) {
			c.Speculative.Acceptance = []float64{0.5, 1.5}
		},
		"match: NaN is not a probability": func(c *engine.Config) {
			c.Speculative.Match = math.NaN()
		},
		"method eagle: it does not go with prefix caching of chunked local attention": func(c *engine.Config) {
			c.Speculative.Method, c.PrefixCaching, c.NumGPUBlocks = engine.EAGLE, true, 100
			c.Groups = model.KVGroups{{Kind: model.FullAttention, Layers: 1, TokenBytes: 1},
				{Kind: model.ChunkedLocalAttention, Layers: 1, Window: 64, TokenBytes: 1}}
		},
		"num_speculative_tokens: -1 is negative": func(c *engine.Config) { c.Speculative.Tokens = -1 },
		"swap space: sequences with drafts":      func(c *engine.Config) { c.HostBlocks = 1 },
	} {
		cfg := drafting(engine.Speculative{Tokens: 3, Acceptance: []float64{0.7}, Match: 1})
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
