package sim_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// Policies differ in what theory says they must: by batches that wait for their longest row, by room that is
// reserved, by prompts that pause others.

// trial is what clients and the engine saw of a run.
type trial struct {
	simtest.Recorder
	rate        float64 // output tokens per second
	ttft        float64 // mean, seconds
	gap99       float64 // 99th percentile of inter-token gaps, seconds
	preemptions int
}

// observe runs a load on an engine.
func observe(cfg engine.Config, spec workload.Spec, seed uint64, obs event.Observer) error {
	src, err := workload.New(spec, seed)
	if err != nil {
		return err
	}
	e, err := sim.New(cfg, src, obs)
	if err != nil {
		return err
	}
	return e.Run(context.Background())
}

// try runs a load on an engine.
func try(t *testing.T, cfg engine.Config, spec workload.Spec, seed uint64) *trial {
	t.Helper()
	y := new(trial)
	if err := observe(cfg, spec, seed, &y.Recorder); err != nil {
		t.Fatal(err)
	}
	var tokens int
	for _, rec := range y.Records {
		tokens += int(rec.Tokens)
		y.ttft += rec.FirstToken.Sub(rec.Request.Arrival).Seconds() / float64(len(y.Records))
	}
	y.rate = float64(tokens) / y.Iterations[len(y.Iterations)-1].End.Seconds()
	y.gap99 = y.gapQuantile(0.99)
	y.preemptions = len(y.Preemptions)
	return y
}

// gapQuantile is a quantile of the inter-token gaps.
func (y *trial) gapQuantile(p float64) float64 {
	var all []float64
	last := clock.Time(0)
	for _, it := range y.Iterations {
		for range it.Gaps {
			all = append(all, it.End.Sub(last).Seconds())
		}
		last = it.End
	}
	for _, g := range y.Gapped {
		all = append(all, g.Gap.Seconds())
	}
	slices.Sort(all)
	return all[int(p*float64(len(all)-1))]
}

// gpu is an engine whose iterations take 8 ms, 60 µs for each sequence, and 60 µs for each token of a prompt: about
// those of a model of 8 billion parameters on one GPU.
func gpu(policy sched.Scheduler, seqs, budget, blocks int) engine.Config {
	return engine.Config{
		Scheduler:  policy,
		Timer:      simtest.Affine{Base: 8e12, PerSeq: 6e10, PerToken: 6e10},
		MaxNumSeqs: seqs, MaxNumBatchedTokens: budget, MaxModelLen: 8192, BlockSize: 16, NumGPUBlocks: blocks,
	}
}

// burst is requests that all come at once, with prompts of 200 tokens and outputs of 200 in the mean.
func burst(requests int64) workload.Spec {
	return workload.Spec{
		Arrivals: []workload.Phase{{Process: "all-at-once"}},
		Input:    fixed(200), Output: exponential(200), Requests: requests,
	}
}

// TestThroughputAtSaturation: a batch that waits for its longest row gives less than one that is refilled at every
// iteration, reserved room gives less than room that is taken as needed, and a contiguous pool less than pages.
func TestThroughputAtSaturation(t *testing.T) {
	const seqs, budget, blocks = 96, 8192, 1200
	for seed := range uint64(3) {
		var last *trial
		for _, c := range []struct {
			name       string
			policy     sched.Scheduler
			contiguous bool
		}{
			{"static", new(sched.Static), false},
			{"orca, contiguous", new(sched.Orca), true},
			{"orca, pages", new(sched.Orca), false},
			{"sarathi", &sched.Sarathi{Watermark: 0.01}, false},
		} {
			cfg := gpu(c.policy, seqs, budget, blocks)
			cfg.Contiguous, cfg.MaxTokens = c.contiguous, 400
			y := try(t, cfg, burst(1500), seed)
			t.Logf("seed %d, %s: %.0f tokens/s, %d preemptions", seed, c.name, y.rate, y.preemptions)
			if last != nil && y.rate < last.rate {
				t.Errorf("seed %d: %s gives %.1f tokens/s, less than the one before it, %.1f", seed, c.name, y.rate,
					last.rate)
			}
			last = y
		}
	}
}

// arriving is an open loop of prompts of 1,000 tokens on average.
func arriving(rate float64, requests int64) workload.Spec {
	return workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: rate}},
		Input:    workload.LengthsSpec{Distribution: "gamma", Mean: 1000, CV: 0.5}, Output: fixed(100),
		Requests: requests,
	}
}

// TestPrefillFirst, C4: the policy that schedules whole prompts first has the earliest first tokens and the longest
// gaps after them.
func TestPrefillFirst(t *testing.T) {
	for seed := range uint64(3) {
		first := try(t, gpu(&sched.VLLMV0{Watermark: 0.01}, 256, 8192, 10_000), arriving(9, 600), seed)
		for name, cfg := range map[string]engine.Config{
			"vllm, 8192":   gpu(new(sched.VLLM), 256, 8192, 10_000),
			"vllm, 2048":   gpu(new(sched.VLLM), 256, 2048, 10_000),
			"sarathi, 512": gpu(new(sched.Sarathi), 256, 512, 10_000),
			"orca":         gpu(new(sched.Orca), 256, 8192, 10_000),
		} {
			y := try(t, cfg, arriving(9, 600), seed)
			t.Logf("seed %d, %s: TTFT %.0f ms, gap p99 %.0f ms; prefill-first %.0f, %.0f", seed, name,
				1e3*y.ttft, 1e3*y.gap99, 1e3*first.ttft, 1e3*first.gap99)
			if y.ttft < first.ttft {
				t.Errorf("seed %d: the mean time to first token of %s is %.4f s, better than %.4f s with prompts first",
					seed, name, y.ttft, first.ttft)
			}
			if y.gap99 > first.gap99 {
				t.Errorf("seed %d: the 99th percentile of the gaps of %s is %.4f s, worse than %.4f s with prompts first", seed, name, y.gap99, first.gap99)
			}
		}
	}
}

// TestChunkSize: larger chunks are better for the first token and worse for the gaps, all the way.
func TestChunkSize(t *testing.T) {
	for seed := range uint64(3) {
		var last *trial
		for _, chunk := range []int{256, 512, 1024, 2048} {
			y := try(t, gpu(new(sched.Sarathi), 256, chunk, 10_000), arriving(9, 600), seed)
			t.Logf("seed %d, chunk %d: TTFT %.0f ms, gap p99 %.0f ms", seed, chunk, 1e3*y.ttft, 1e3*y.gap99)
			if last != nil && (y.ttft > last.ttft || y.gap99 < last.gap99) {
				t.Errorf("seed %d: chunks of %d have a TTFT of %.4f s and gaps of %.4f s, half that had %.4f s and %.4f s",
					seed, chunk, y.ttft, y.gap99, last.ttft, last.gap99)
			}
			last = y
		}
	}
}

// TestOversubscription: where the pool holds far fewer than want in, preemption with recomputation loses throughput,
// the more so the more users there are; room that is reserved on admission does not. The model is larger here, so that
// a prompt costs more than its output.
func TestOversubscription(t *testing.T) {
	rate := func(policy func() sched.Scheduler, budget int, users int32) (mean float64) {
		load := closed(users, workload.Delay{Distribution: "exponential", Mean: 20 * clock.Second}, fixed(250), 400)
		load.Input = workload.LengthsSpec{Distribution: "lognormal", Mean: 1000, CV: 1, Max: 6000}
		const seeds = 3
		for seed := range uint64(seeds) {
			cfg := gpu(policy(), 256, budget, 2800)
			cfg.Timer = simtest.Affine{Base: 15e12, PerSeq: 1e11, PerToken: 22e10}
			y := try(t, cfg, load, seed)
			mean += y.rate / seeds
		}
		t.Logf("%T, %d users: %.0f tokens/s", policy(), users, mean)
		return mean
	}
	first := func() sched.Scheduler { return &sched.VLLM{Admission: sched.FirstChunk} }
	few, many := rate(first, 2048, 60), rate(first, 2048, 200)
	if many > 0.93*few {
		t.Errorf("recomputation: %.0f tokens/s with 60 users, %.0f with 200; it should lose", few, many)
	}
	reserving := func() sched.Scheduler { return new(sched.Orca) }
	if few, many = rate(reserving, 8192, 60), rate(reserving, 8192, 200); many < 1.1*few {
		t.Errorf("reservation: %.0f tokens/s with 60 users, %.0f with 200; it should gain", few, many)
	}
	if v0 := rate(func() sched.Scheduler { return new(sched.VLLMV0) }, 8192, 200); v0 > 0.9*many {
		t.Errorf("200 users: %.0f tokens/s with recomputation, %.0f with reservation; the former should be less", v0,
			many)
	}
}

// replications are the values of several seeds, found two at a time.
func replications[T any](value func(seed uint64) T) []T {
	x := make([]T, seeds)
	var wg sync.WaitGroup
	for half := range 2 {
		wg.Go(func() {
			for i := half; i < len(x); i += 2 {
				x[i] = value(uint64(i + 1))
			}
		})
	}
	wg.Wait()
	return x
}

// refusals counts the requests that the engine was too busy for.
type refusals struct {
	quiet
	warmup        clock.Time
	sent, refused float64
}

func (y *refusals) Finished(rec *event.Record) {
	if rec.Request.Arrival < y.warmup {
		return
	}
	y.sent++
	if rec.Refusal == event.Busy {
		y.refused++
	}
}

// blocking is the fraction of requests that a queue of limited length refuses.
func blocking(t *testing.T, cfg engine.Config, spec workload.Spec, seed uint64) float64 {
	t.Helper()
	y := &refusals{warmup: clock.Time(clock.FromSeconds(500))}
	if err := observe(cfg, spec, seed, y); err != nil {
		t.Error(err)
	}
	return y.refused / y.sent
}

// M/G/c/c: ten seats and no queue lose what Erlang's formula B says, with any distribution of lengths. A request that
// comes during an iteration keeps its seat for half of one more, in the mean.
func TestTheoryErlangB(t *testing.T) {
	const step = 0.5e-3
	for _, law := range []workload.LengthsSpec{fixed(2000), exponential(2000)} {
		x := replications(func(seed uint64) float64 {
			cfg := server(10, step, 0)
			cfg.MaxQueuedRequests = 10
			return blocking(t, cfg, open(8, law, 20_000), seed)
		})
		near(t, "B(10, 8) of "+law.Distribution, x, 0.121661, 8*step/2*0.03)
	}
}

// M/M/1/K: one seat and a queue of four.
func TestTheoryLimitedQueue(t *testing.T) {
	for rate, exact := range map[float64]float64{0.8: 0.0888195, 1.2: 0.2505881} {
		x := replications(func(seed uint64) float64 {
			cfg := server(1, 1e-3, 0)
			cfg.MaxQueuedRequests = 5
			return blocking(t, cfg, open(rate, exponential(1000), 10_000), seed)
		})
		near(t, fmt.Sprintf("loss at ρ=%v", rate), x, exact, 1e-5)
	}
}

// completions counts what comes out of an engine.
type completions struct {
	quiet
	tokens float64
	end    clock.Time
}

func (y *completions) Span(s *event.Span) {
	y.quiet.Span(s)
	y.tokens += float64(s.N * (s.Decodes + s.FirstTokens))
	y.end = s.End(s.N)
}

func flowOf(t *testing.T, cfg engine.Config, spec workload.Spec, seed uint64) *completions {
	t.Helper()
	y := new(completions)
	if err := observe(cfg, spec, seed, y); err != nil {
		t.Error(err)
	}
	return y
}

// static is an engine of static batches, whose iterations all take 1 ms.
func static(rows int) engine.Config {
	cfg := server(rows, 1e-3, 0)
	cfg.Scheduler, cfg.MaxNumBatchedTokens, cfg.MaxModelLen = new(sched.Static), 1<<20, 1<<20
	return cfg
}

// saturated is requests of one token each that all wait from the beginning.
func saturated(requests int, output workload.LengthsSpec) workload.Spec {
	return workload.Spec{
		Arrivals: []workload.Phase{{Process: "all-at-once"}},
		Input:    fixed(1), Output: output, Requests: int64(requests),
	}
}

// The longest of B exponential outputs is H_B = 1 + 1/2 + … + 1/B times as long as the mean, so that a static batch of
// B uses 1/H_B of its rows, and a batch that is refilled is H_B times faster. It empties slowly in the end: for
// H_B-1 times a mean output.
func TestTheoryStaticBatch(t *testing.T) {
	for rows, exact := range map[int]float64{8: 0.368, 32: 0.246, 64: 0.211, 128: 0.184} {
		batches := 30 + 400/rows
		load := saturated(rows*batches, exponential(1000))
		var efficiency, ratio []float64
		for _, y := range replications(func(seed uint64) [2]*completions {
			refilled := static(rows)
			refilled.Scheduler = new(sched.Orca)
			return [2]*completions{flowOf(t, static(rows), load, seed), flowOf(t, refilled, load, seed)}
		}) {
			efficiency = append(efficiency, y[0].tokens/float64(rows*y[0].iterations))
			ratio = append(ratio, float64(y[0].iterations)/float64(y[1].iterations))
		}
		harmonic := 0.0
		for k := 1; k <= rows; k++ {
			harmonic += 1 / float64(k)
		}
		if math.Abs(1/harmonic-exact) > 5e-4 {
			t.Fatalf("1/H_%d is %v, want %v", rows, 1/harmonic, exact)
		}
		near(t, fmt.Sprintf("efficiency of %d rows", rows), efficiency, 1/harmonic, 5e-4)
		near(t, fmt.Sprintf("refilling %d rows", rows), ratio, harmonic*float64(batches)/(float64(batches)+harmonic-1),
			harmonic*3e-3)
	}
}

// Bulk service: batches of up to B outputs of equal length D serve B/D at full load, exactly, and are stable below it.
// Batches that are refilled are no faster then.
func TestTheoryBulkService(t *testing.T) {
	const rows, steps = 8, 500
	const full = rows / (steps * 1e-3)
	y := flowOf(t, static(rows), saturated(rows*40, fixed(steps)), 1)
	if y.end != 40*steps*clock.Time(clock.Millisecond) {
		t.Errorf("40 batches of %d iterations of 1 ms take %v", steps, y.end)
	}
	refilled := static(rows)
	refilled.Scheduler = new(sched.Orca)
	if z := flowOf(t, refilled, saturated(rows*40, fixed(steps)), 1); z.end != y.end {
		t.Errorf("refilled batches end at %v, others at %v", z.end, y.end)
	}
	queue := func(load float64) float64 { // that is left after 2,000 s
		sys, err := simulate(static(rows), open(load*full, fixed(steps), 1<<40), 1, 0, 2000)
		if err != nil {
			t.Fatal(err)
		}
		return float64(sys.level.System)
	}
	if n := queue(0.9); n > 200 {
		t.Errorf("at 0.9 of full load %v requests are in the system in the end", n)
	}
	if n, want := queue(1.1), 0.1*full*2000; math.Abs(n-want) > 0.2*want {
		t.Errorf("at 1.1 of full load %v requests are in the system in the end, want about %v", n, want)
	}
}
