package sim_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"clifftop/internal/testenv"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// Queueing theory knows the exact answer for degenerate engines: an iteration takes a + b·n with n
// sequences running, prefill costs nothing more, and the KV pool is unlimited.

// server is an engine of at most seqs sequences whose iterations take a + b·n seconds.
func server(seqs int, a, b float64) engine.Config {
	return engine.Config{
		Scheduler:  new(sched.VLLM),
		Timer:      simtest.Affine{Base: int64(a * 1e15), PerSeq: int64(b * 1e15)},
		MaxNumSeqs: seqs, MaxNumBatchedTokens: 1 << 20, MaxModelLen: 1 << 22, BlockSize: 16,
	}
}

// open is Poisson traffic with prompts of one token.
func open(rate float64, output workload.LengthsSpec, requests int64) workload.Spec {
	return workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: rate}},
		Input:    fixed(1), Output: output, Requests: requests,
	}
}

func fixed(tokens int32) workload.LengthsSpec {
	return workload.LengthsSpec{Distribution: "fixed", Value: tokens}
}

// exponential is a gamma law of shape 1; with a mean of 1,000 rounding moves no moment by 0.1 %.
func exponential(mean float64) workload.LengthsSpec {
	return workload.LengthsSpec{Distribution: "gamma", Mean: mean, CV: 1}
}

// totals sums what the tests compare, over requests that arrive after the warm-up.
type totals struct {
	quiet
	warmup                clock.Time
	n, residence, waiting float64
	waits                 []float64
	tpots                 []clock.Duration
	level                 event.Levels
	since                 clock.Time
	integral              float64 // ∫ system dt, seconds, from the warm-up on
	histogram             map[int]float64
	completed             int
	lastFinish            clock.Time
}

func (y *totals) Finished(rec *event.Record) {
	y.completed++
	y.lastFinish = rec.Released
	if rec.Request.Arrival < y.warmup {
		return
	}
	y.n++
	w := rec.Scheduled.Sub(rec.Queued).Seconds()
	y.waiting += w
	y.waits = append(y.waits, w)
	y.residence += rec.Released.Sub(rec.Request.Arrival).Seconds()
	if rec.Tokens > 1 {
		y.tpots = append(y.tpots, rec.LastToken.Sub(rec.FirstToken)/clock.Duration(rec.Tokens-1))
	}
}

func (y *totals) Levels(at clock.Time, l *event.Levels) {
	if from := max(y.since, y.warmup); at > from {
		dt := at.Sub(from).Seconds()
		y.integral += float64(y.level.System) * dt
		if y.histogram == nil {
			y.histogram = map[int]float64{}
		}
		y.histogram[y.level.System] += dt
	}
	y.level, y.since = *l, at
}

func simulate(cfg engine.Config, spec workload.Spec, seed uint64, warmup, horizon float64) (*totals, error) {
	src, err := workload.New(spec, seed)
	if err != nil {
		return nil, err
	}
	y := &totals{warmup: clock.Time(clock.FromSeconds(warmup))}
	e, err := sim.New(cfg, src, y)
	if err != nil {
		return nil, err
	}
	if horizon > 0 {
		e.Horizon = clock.Time(clock.FromSeconds(horizon))
	}
	return y, e.Run(context.Background())
}

// seeds is the number of replications of each anchor.
var seeds = testenv.Choose(6, 20)

// replicate runs a scenario under several seeds, side by side.
func replicate(t *testing.T, cfg func() engine.Config, spec workload.Spec, warmup, horizon float64) []*totals {
	t.Helper()
	return runSeeds(t, func(seed uint64) (*totals, error) { return simulate(cfg(), spec, seed, warmup, horizon) })
}

// runSeeds runs something under several seeds, side by side.
func runSeeds(t *testing.T, run func(seed uint64) (*totals, error)) []*totals {
	t.Helper()
	out := make([]*totals, seeds)
	errs := make([]error, seeds)
	var wg sync.WaitGroup
	limit := make(chan struct{}, 2)
	for i := range seeds {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			out[i], errs[i] = run(uint64(i + 1))
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// within checks that the exact value lies in the 99 % confidence interval of the replications' mean,
// widened by the bias of the step length, which must be under a quarter of the interval.
func within(t *testing.T, what string, ys []*totals, value func(*totals) float64, exact, bias float64) {
	t.Helper()
	x := make([]float64, len(ys))
	for i, y := range ys {
		x[i] = value(y)
	}
	near(t, what, x, exact, bias)
}

// near is within for values of replications.
func near(t *testing.T, what string, x []float64, exact, bias float64) {
	t.Helper()
	mean, sd := stat.MeanStdDev(x, nil)
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(len(x) - 1)}.Quantile(0.995) * sd / math.Sqrt(float64(len(x)))
	t.Logf("%s: %.5f ± %.5f, exact %.5f, bias under %.2g", what, mean, half, exact, bias)
	if bias > half/4 {
		t.Errorf("%s: the bias %.3g is over a quarter of the interval ±%.3g", what, bias, half)
	}
	if math.Abs(mean-exact) > half+bias {
		t.Errorf("%s: %.5f ± %.5f, exact %.5f", what, mean, half, exact)
	}
	if half > testenv.Choose(0.2, 0.05)*exact {
		t.Errorf("%s: the interval ±%.3g is too wide to prove %.5g", what, half, exact)
	}
}

func meanResidence(y *totals) float64 { return y.residence / y.n }
func meanWait(y *totals) float64      { return y.waiting / y.n }

func waitQuantile(p float64) func(*totals) float64 {
	return func(y *totals) float64 {
		slices.Sort(y.waits)
		return stat.Quantile(p, stat.LinInterp, y.waits, nil)
	}
}

// M/D/1: one seat and one token.
func TestTheoryMD1(t *testing.T) {
	testenv.NeedsLong(t, "a special case of TestTheoryMG1, 2 s")
	for _, c := range []struct{ rate, w float64 }{{0.5, 1.5}, {0.8, 3}, {0.9, 5.5}} {
		ys := replicate(t, func() engine.Config { return server(1, 1, 0) }, open(c.rate, fixed(1), 60_000), 2000, 0)
		within(t, fmt.Sprintf("W at ρ=%v", c.rate), ys, meanResidence, c.w, 0)
		within(t, fmt.Sprintf("Wq at ρ=%v", c.rate), ys, meanWait, c.w-1, 0)
		if c.rate == 0.8 {
			within(t, "wait p90", ys, waitQuantile(0.90), 5.0115, 0)
			within(t, "wait p95", ys, waitQuantile(0.95), 6.6203, 0)
			within(t, "wait p99", ys, waitQuantile(0.99), 10.3559, 0)
		}
	}
}

// M/M/1: one seat, exponential lengths of mean 1,000 tokens of 1 ms. A request never waits for a step of
// another, so the grid only rounds lengths.
func TestTheoryMM1(t *testing.T) {
	ys := replicate(t, func() engine.Config {
		return server(1, 1e-3, 0)
	}, open(0.8, exponential(1000), 60_000), 2000, 0)
	within(t, "W", ys, meanResidence, 5, 0)
	within(t, "Wq", ys, meanWait, 4, 0)
	within(t, "wait p95", ys, waitQuantile(0.95), 13.8629, 0)
	within(t, "wait p99", ys, waitQuantile(0.99), 21.9101, 0)
}

// M/G/1 by Pollaczek and Khinchine: Wq = λ E[S²] / 2(1-ρ).
func TestTheoryMG1(t *testing.T) {
	bursty := workload.LengthsSpec{Distribution: "gamma", Mean: 1000, CV: 2}
	ys := replicate(t, func() engine.Config { return server(1, 1e-3, 0) }, open(0.8, bursty, 100_000), 2000, 0)
	within(t, "Wq, cv 2", ys, meanWait, 10, 0)
	ys = replicate(t, func() engine.Config { return server(1, 1e-3, 0) }, open(0.7, exponential(1000), 50_000), 2000, 0)
	within(t, "W, cv 1", ys, meanResidence, 1/0.3, 0)
}

// M/G/1 processor sharing: compute-bound iterations. The mean sojourn does not depend on the law of
// lengths. An arrival waits for the rest of an iteration of n·b: half of that for the mean n of 2.33,
// weighted by its length, is under 1.5 ms for b = 0.5 ms.
func TestTheoryPS(t *testing.T) {
	testenv.NeedsLong(t, "processor sharing, 2 s")
	for _, cv := range []float64{0, 1.5} {
		law := fixed(2000)
		if cv > 0 {
			law = workload.LengthsSpec{Distribution: "gamma", Mean: 2000, CV: cv}
		}
		ys := replicate(t, func() engine.Config { return server(1<<15, 0, 0.5e-3) }, open(0.7, law, 50_000), 2000, 0)
		within(t, fmt.Sprintf("E[T], cv %v", cv), ys, meanResidence, 1/0.3, 1.5e-3)
	}
}

// M/G/∞: memory-bound iterations. Residence is the length, and half an iteration's wait to join.
func TestTheoryMGInf(t *testing.T) {
	const step = 1e-3
	ys := replicate(t, func() engine.Config {
		return server(1<<15, step, 0)
	}, open(5, exponential(10_000), 50_000), 200, 6000)
	within(t, "N", ys, func(y *totals) float64 { return y.integral / 5800 }, 50, 5*step)

	// Four requests a minute of 30 s: a Poisson number, of mean 2.
	ys = replicate(t, func() engine.Config { return server(1<<15, 0.01, 0) }, open(4.0/60, fixed(3000), 50_000), 600, 0)
	share := func(of func(n int) bool) func(*totals) float64 {
		return func(y *totals) float64 {
			var in, all float64
			for n, s := range y.histogram {
				all += s
				if of(n) {
					in += s
				}
			}
			return in / all
		}
	}
	within(t, "P(N=0)", ys, share(func(n int) bool { return n == 0 }), 0.135335, 5e-5)
	within(t, "P(N>2)", ys, share(func(n int) bool { return n > 2 }), 0.323324, 1e-4)
	within(t, "P(N≤5)", ys, share(func(n int) bool { return n <= 5 }), 0.983436, 2e-5)
}

// M/M/c by Erlang's C. Who queues takes a seat at the end of an iteration in which one came free.
func TestTheoryMMc(t *testing.T) {
	list := []struct {
		c        int
		load, wq float64
		requests int64
	}{{4, 3.2, 0.745541, 100_000}, {10, 8, 0.204590, 100_000}, {2, 1.6, 1.777778, 100_000},
		{16, 14.4, 0.369590, 200_000}}
	for _, k := range list[:testenv.Choose(3, 4)] {
		const step = 0.25e-3
		ys := replicate(t, func() engine.Config {
			return server(k.c, step, 0)
		}, open(k.load, exponential(1/step), k.requests/testenv.Choose[int64](2, 1)), 1000, 0)
		within(t, fmt.Sprintf("Wq of %d servers", k.c), ys, meanWait, k.wq, step)
	}
}

// closed is a closed loop of users.
func closed(users int32, think workload.Delay, output workload.LengthsSpec, duration float64) workload.Spec {
	return workload.Spec{
		Arrivals: []workload.Phase{{Process: "closed", Users: users, ThinkTime: think}},
		Input:    fixed(1), Output: output, Duration: clock.FromSeconds(duration),
	}
}

// A closed loop without think time: X = N/(a+bN) and TPOT = a+bN, exactly. A request's first token
// takes an iteration of the same length.
func TestTheoryClosedLoop(t *testing.T) {
	for users, rate := range map[int32]float64{10: 909.0909, 50: 3333.33, 100: 5000, 200: 6666.67} {
		y, err := simulate(server(256, 10e-3, 0.1e-3), closed(users, workload.Delay{}, fixed(100), 1000), 1, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := clock.FromSeconds(10e-3 + 0.1e-3*float64(users))
		for _, tpot := range y.tpots {
			if tpot != want {
				t.Fatalf("%d users: TPOT %v, want %v", users, tpot, want)
			}
		}
		if x := float64(y.completed) * 100 / y.lastFinish.Seconds(); math.Abs(x-rate) > 0.005 {
			t.Errorf("%d users: %.4f tokens/s, want %.4f", users, x, rate)
		}
	}
}

// The fluid limit of an open loop: n* = λoa/(1-λob), and half an iteration's wait for each arrival. The
// number fluctuates about it with a relative deviation of about 1/√n, which through the
// convexity of 1/(1-ρ) moves the mean by less than 1/n*.
func TestTheoryFluid(t *testing.T) {
	for rate, n := range map[float64]float64{5: 100, 8: 400} {
		ys := replicate(t, func() engine.Config {
			return server(1<<15, 10e-3, 0.1e-3)
		}, open(rate, fixed(1000), 1<<40), 400, 6000)
		within(t, fmt.Sprintf("N at %v/s", rate), ys, func(y *totals) float64 { return y.integral / 5600 }, n, 0)
	}
}

// A closed loop of a processor-sharing station and exponential thinking, by mean value analysis. The asymptotic
// bounds X ≤ min(N/(D+Z), 1/D) and R ≥ max(D, N·D-Z) are never broken.
func TestTheoryMVA(t *testing.T) {
	const d, z = 1.0, 9.0
	think := workload.Delay{Distribution: "exponential", Mean: clock.FromSeconds(z)}
	for users, x := range map[int32]float64{5: 0.475092, 10: 0.832037, 20: 0.999383} {
		ys := replicate(t, func() engine.Config {
			return server(1<<10, 0, 1e-3)
		}, closed(users, think, exponential(1000), 20_000), 0, 0)
		rate := func(y *totals) float64 { return float64(y.completed) / y.lastFinish.Seconds() }
		within(t, fmt.Sprintf("X of %d users", users), ys, rate, x, 0.5e-3)
		var meanX, meanR float64
		for _, y := range ys {
			meanX += rate(y) / float64(len(ys))
			meanR += meanResidence(y) / float64(len(ys))
		}
		n := float64(users)
		if limit := math.Min(n/(d+z), 1/d); meanX > limit*1.01 {
			t.Errorf("%d users: X = %.4f over its bound %.4f", users, meanX, limit)
		}
		if limit := math.Max(d, n*d-z); meanR < limit*0.99 {
			t.Errorf("%d users: R = %.4f under its bound %.4f", users, meanR, limit)
		}
	}
}
