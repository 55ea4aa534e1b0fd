package simtest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest/naive"
)

// Verify runs a policy on random engines and loads. It checks what holds in every run (see [CheckRecording]); that
// every request is served in the end; and that the naive engine, the real one without spans, with spans of full length
// and in detail, and a second run of it all give equal results, token for token.
func Verify(t testing.TB, p Policy) {
	t.Helper()
	verify(t, p.Draw)
}

// VerifyPipeline is [Verify] for engines with several pipeline stages, as far as the policy supports them.
func VerifyPipeline(t testing.TB, p Policy) {
	t.Helper()
	verify(t, p.DrawPipeline)
}

func verify(t testing.TB, draw func(t *rapid.T) Case) {
	t.Helper()
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		c := draw(t)
		reference, told := c.runNaive(t, nil)
		count(seen, &reference.Recorder)
		// A look at the queue refreshes a radix tree; and the vLLM reference only knows V1.
		if v, ok := c.policy.New(c.knobs).(*sched.VLLM); ok && !c.config.Radix && c.config.Connector == nil &&
			!v.Swap && v.Admission != sched.FullLength {
			vllm, _ := c.runNaive(t, naive.VLLMReference(v))
			if d := Diff(&reference.Recorder, &vllm.Recorder); d != "" {
				t.Fatalf("policy and vLLM reference differ: %s\n%v", d, c)
			}
		}
		cut := clock.Duration(rapid.Int64Range(0, 3).Draw(t, "edges")) * 17 * clock.Millisecond
		for _, maxSpan := range []int{1, 3, 0, 0} {
			recorder := &Recorder{Cut: cut}
			c.compare(t, fmt.Sprint("spans of ", maxSpan), &reference.Recorder, told, recorder, recorder, maxSpan)
		}
		general := c
		general.config.DisablePlain = true
		recorder := &Recorder{Cut: cut}
		general.compare(t, "general cycle only", &reference.Recorder, told, recorder, recorder, 0)
		detail := new(StepRecorder)
		c.compare(t, "detailed steps", &reference.Recorder, told, detail, &detail.Recorder, 0)
		chunks := new(ChunkRecorder)
		c.compare(t, "chunks", &reference.Recorder, told, chunks, &chunks.Recorder, 0)
		if err := chunks.Check(); err != nil {
			t.Fatalf("%v\n%v", err, c)
		}
	})
	t.Log(seen)
}

// runNaive runs a case on the naive engine, and returns what clients got. other, if not nil, replaces the scheduler.
func (c *Case) runNaive(t *rapid.T, other sched.Scheduler) (*StepRecorder, []Ended) {
	cfg, src, recorder := c.Config(), c.Source(), new(StepRecorder)
	if other != nil {
		cfg.Scheduler = other
	}
	if err := naive.Run(cfg, src, recorder); err != nil {
		t.Fatalf("naive: %v\n%v", err, c)
	}
	if err := CheckRecording(&cfg, &recorder.Recorder); err != nil {
		t.Fatalf("naive: %v\n%v", err, c)
	}
	if err := checkEnded(&cfg, &recorder.Recorder, src.Ended); err != nil {
		t.Fatalf("naive: %v\n%v", err, c)
	}
	return recorder, src.Ended
}

// compare runs a case on the real engine and compares it with the naive one.
func (c *Case) compare(t *rapid.T, how string, naive *Recorder, told []Ended, obs event.Observer, recorder *Recorder,
	maxSpan int) {
	cfg, src := c.Config(), c.Source()
	cfg.MaxSpan, cfg.Check = maxSpan, true
	e, err := sim.New(cfg, src, obs)
	if err == nil {
		err = e.Run(context.Background())
	}
	d := Diff(naive, recorder)
	switch {
	case err != nil:
		t.Fatalf("%s: %v\ndifference: %s\n%v", how, err, d, c)
	case d != "":
		t.Fatalf("naive and %s differ: %s\n%v", how, d, c)
	case !slices.Equal(src.Ended, told):
		t.Fatalf("%s: clients get %v, naive %v\n%v", how, src.Ended, told, c)
	}
}

// count notes what kinds of things happened in a run.
func count(seen map[string]int, recorder *Recorder) {
	did := make(map[string]bool)
	for i := range recorder.Records {
		rec := &recorder.Records[i]
		did[rec.Outcome.String()] = true
		did["silent"] = did["silent"] || rec.Ending.GaveUp() && rec.LastToken != clock.Never
		did["again"] = did["again"] || rec.Again
		did[rec.Ending.String()] = true
		did["busy"] = did["busy"] || rec.Refusal == event.Busy
		did["loaded"] = did["loaded"] || rec.LoadedTokens > 0
		did["waited for a load"] = did["waited for a load"] || rec.Loading > 0
		did["hit"] = did["hit"] || rec.CachedTokens > 0
		did["recomputed"] = did["recomputed"] || rec.RecomputedTokens > 0
		did["lost by the cache"] = did["lost by the cache"] || rec.LostTokens > 0
		did["unpredicted end"] = did["unpredicted end"] || rec.LastToken < rec.Released
	}
	for i := range recorder.Iterations {
		it := &recorder.Iterations[i]
		did["swapped"] = did["swapped"] || it.SwappedBlocks > 0
		did["padded"] = did["padded"] || it.PaddedRows+it.PaddedTokens > 0
		did["drafts"] = did["drafts"] || it.Drafts > 0
		did["wrong drafts"] = did["wrong drafts"] || it.Accepted < it.Drafts
		did["held"] = did["held"] || it.Gaps < it.Decodes && it.Passages == ""
	}
	for n := range recorder.together() {
		did[fmt.Sprint("in flight: ", n)] = true
	}
	for _, m := range recorder.Moves {
		did["stored"] = did["stored"] || m.Stored
		did["fetched"] = did["fetched"] || !m.Stored
	}
	did["preempted"] = len(recorder.Preemptions) > 0
	did["dropped"] = len(recorder.Drops) > 0
	for _, c := range recorder.Changes {
		if c.Levels.Blocked != 0 {
			did["blocked: "+c.Levels.Blocked.String()] = true
		}
	}
	seen["runs"]++
	seen["iterations"] += len(recorder.Iterations)
	seen["requests"] += len(recorder.Records)
	for what, yes := range did {
		if yes {
			seen[what]++
		}
	}
}
