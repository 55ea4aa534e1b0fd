package sim_test

import (
	"context"
	"fmt"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// quiet observes nothing but the counts.
type quiet struct{ iterations, spans, finished, preempted int }

func (q *quiet) Edge(clock.Time) clock.Time            { return clock.Never }
func (q *quiet) Arrived(clock.Time, *workload.Request) {}
func (q *quiet) Levels(clock.Time, *event.Levels)      {}
func (q *quiet) Span(s *event.Span)                    { q.spans++; q.iterations += s.N }
func (q *quiet) Gap(clock.Time, clock.Duration, int)   {}
func (q *quiet) Preempted(clock.Time)                  { q.preempted++ }
func (q *quiet) Dropped(at clock.Time, tokens int)     {}
func (q *quiet) Finished(*event.Record)                { q.finished++ }

// chat is the engine of the benchmarks: about Llama-3.1-8B on one H100, with an affine step time.
func chat(caching bool) engine.Config {
	return engine.Config{
		Scheduler:  new(sched.VLLM),
		Timer:      simtest.Affine{Base: 6.6e12, PerSeq: 1.2e10, PerContext: 4.2e7, PerToken: 1.7e10, PerPair: 8e5},
		MaxNumSeqs: 256, MaxNumBatchedTokens: 8192, MaxModelLen: 131072,
		BlockSize: 16, NumGPUBlocks: 28000, PrefixCaching: caching, AsyncScheduling: true,
		Frontend: 4200 * clock.Microsecond, FrontendPerToken: 2800 * clock.Nanosecond,
		StreamPerSequence: 48 * clock.Microsecond,
	}
}

// BenchmarkIteration is the cost of an iteration that is stepped singly: 64 users request long outputs.
func BenchmarkIteration(b *testing.B) {
	src, err := workload.New(workload.Spec{
		Arrivals: []workload.Phase{{Process: "closed", Users: 64}},
		Input:    fixed(512), Output: fixed(100_000), Duration: clock.Hour,
	}, 1)
	if err != nil {
		b.Fatal(err)
	}
	cfg := chat(false)
	cfg.NumGPUBlocks, cfg.MaxSpan = 0, 1
	q := &bounded{limit: b.N}
	e, err := sim.New(cfg, src, q)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	q.cancel = cancel
	b.ReportAllocs()
	b.ResetTimer()
	e.Run(ctx)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(q.iterations), "ns/iteration")
}

// bounded ends a run after some iterations.
type bounded struct {
	quiet
	limit  int
	cancel func()
}

func (q *bounded) Span(s *event.Span) {
	if q.quiet.Span(s); q.iterations >= q.limit {
		q.cancel()
	}
}

// BenchmarkRequest is the cost of a request, from drawing it to forgetting it, without metrics.
func BenchmarkRequest(b *testing.B) {
	for _, rate := range []float64{10, 28, 50} {
		for _, caching := range []bool{false, true} {
			b.Run(fmt.Sprintf("rate=%v/caching=%v", rate, caching), func(b *testing.B) {
				src, err := workload.New(workload.Spec{
					Arrivals: []workload.Phase{{Process: "poisson", Rate: rate}},
					Input:    workload.LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8},
					Output:   workload.LengthsSpec{Distribution: "lognormal", Mean: 256, CV: 0.8},
					Requests: int64(b.N),
				}, 1)
				if err != nil {
					b.Fatal(err)
				}
				q := new(quiet)
				e, err := sim.New(chat(caching), src, q)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				b.ResetTimer()
				if err := e.Run(context.Background()); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(q.spans)/float64(b.N), "spans/op")
				b.ReportMetric(float64(q.iterations)/float64(b.N), "iterations/op")
			})
		}
	}
}
