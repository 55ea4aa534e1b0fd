package sim_test

import (
	"context"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/route"
	"clifftop/workload"
)

// BenchmarkFleet is the cost of a request to a fleet of 64 replicas, from drawing it to forgetting it, without metrics.
// Prompts are unique for the routers that do not look at them, and have the text of one of 500 groups for the others.
func BenchmarkFleet(b *testing.B) {
	const replicas = 64
	run := func(b *testing.B, src workload.Source, caching bool, scrape clock.Duration, router route.Router) {
		q := new(quiet)
		e, err := sim.NewFleet(fleetOf(replicas, func() engine.Config { return chat(caching) }, scrape, router), src, q)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.ResetTimer()
		if err := e.Run(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
		b.ReportMetric(float64(q.spans)/float64(b.N), "spans/op")
	}
	unique := func(b *testing.B) workload.Source {
		src, err := workload.New(workload.Spec{
			Arrivals: []workload.Phase{{Process: "poisson", Rate: 28 * replicas}},
			Input:    workload.LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8},
			Output:   workload.LengthsSpec{Distribution: "lognormal", Mean: 256, CV: 0.8},
			Requests: int64(b.N),
		}, 1)
		if err != nil {
			b.Fatal(err)
		}
		return src
	}
	id := route.Identity{Seed: 1, Of: 1}
	for _, c := range []struct {
		name   string
		scrape clock.Duration
		router route.Router
	}{
		{"round-robin", 0, new(route.RoundRobin)},
		{"random", 0, &route.Random{ID: id}},
		{"power-of-two", 0, &route.PowerOfTwo{ID: id}},
		{"least-requests", 0, &route.LeastRequests{ID: id}},
		{"least-tokens", 0, &route.LeastTokens{ID: id}},
		{"least-kv-exact", 0, &route.LeastKV{ID: id}},
		{"vllm-dp", 100 * clock.Millisecond, &route.VLLMDP{ID: id}},
		{"bounded-hash-prefix", 0, &route.BoundedHash{By: route.ByPrefix, PrefixTokens: 100, Factor: 1.25}},
	} {
		b.Run(c.name, func(b *testing.B) { run(b, unique(b), false, c.scrape, c.router) })
	}
	sharing := func(b *testing.B) workload.Source {
		return &groupSource{requests: int64(b.N), rate: 28 * replicas, groups: 500, shared: 400, own: 112, answer: 256}
	}
	approximate := route.NewDynamo()
	approximate.Approximate = true
	for _, c := range []struct {
		name   string
		router route.Router
	}{
		{"round-robin", new(route.RoundRobin)},
		{"least-tokens-uncached", &route.LeastTokens{ID: id, Uncached: true}},
		{"prefix", route.NewPrefix()},
		{"sglang", route.NewSGLang()},
		{"llm-d", route.NewLLMD()},
		{"dynamo", route.NewDynamo()},
		{"dynamo-approximate", approximate},
	} {
		b.Run("sharing/"+c.name, func(b *testing.B) { run(b, sharing(b), true, 50*clock.Millisecond, c.router) })
	}
}
