package sim_test

import (
	"context"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// BenchmarkRetries is the cost of an attempt in a system that is overloaded twofold, where most attempts end by a
// timeout and are made again: of single requests, and of conversations that meet in the prefix cache.
func BenchmarkRetries(b *testing.B) {
	impatient := workload.ClientSpec{
		FirstTimeout: 5 * clock.Second, Timeout: 20 * clock.Second, Retries: 3, RetryOn: workload.Retryable,
		Backoff: workload.Backoff{Base: 500 * clock.Millisecond, Cap: 8 * clock.Second, Factor: 2, Jitter: "full"},
	}
	single := workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: 100}},
		Input:    workload.LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8},
		Output:   workload.LengthsSpec{Distribution: "lognormal", Mean: 256, CV: 0.8},
	}
	conversations := single
	conversations.Arrivals = []workload.Phase{{Process: "poisson", Rate: 50}} // of conversations, of four turns each
	conversations.Input = workload.LengthsSpec{}
	conversations.Sessions = &workload.SessionSpec{
		Turns: fixed(4), FirstPrompt: single.Input, LaterUserTokens: fixed(60),
		ThinkTime: workload.Delay{Distribution: "exponential", Mean: 10 * clock.Second},
	}
	for _, load := range []struct {
		name string
		spec workload.Spec
	}{{"single", single}, {"sessions", conversations}} {
		b.Run(load.name, func(b *testing.B) {
			load.spec.Requests = int64(b.N)
			src, err := workload.New(load.spec, 1)
			if err == nil {
				src, err = workload.NewClients(src, 1, impatient)
			}
			if err != nil {
				b.Fatal(err)
			}
			q := new(quiet)
			e, err := sim.New(chat(true), src, q)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			if err := e.Run(context.Background()); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(q.finished)/float64(b.N), "attempts/op")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(q.finished), "ns/attempt")
		})
	}
}
