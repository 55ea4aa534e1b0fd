package sim_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"clifftop/internal/testenv"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/workload"
)

// Ten single servers of rate 1 behind routers, under Poisson arrivals of rate 8.

// fleetOf is n like replicas behind routers.
func fleetOf(n int, cfg func() engine.Config, scrape clock.Duration, routers ...route.Router) sim.Fleet {
	f := sim.Fleet{Routers: routers, Scrape: scrape}
	for range n {
		f.Replicas = append(f.Replicas, cfg())
	}
	return f
}

func simulateFleet(f sim.Fleet, spec workload.Spec, seed uint64, warmup float64) (*totals, error) {
	src, err := workload.New(spec, seed)
	if err != nil {
		return nil, err
	}
	y := &totals{warmup: clock.Time(clock.FromSeconds(warmup))}
	e, err := sim.NewFleet(f, src, y)
	if err != nil {
		return nil, err
	}
	return y, e.Run(context.Background())
}

// tenServers runs them under several seeds.
func tenServers(t *testing.T, requests int64, scrape clock.Duration,
	routers func(seed uint64) []route.Router) []*totals {
	t.Helper()
	return runSeeds(t, func(seed uint64) (*totals, error) {
		f := fleetOf(10, func() engine.Config { return server(1, 1e-3, 0) }, scrape, routers(seed)...)
		return simulateFleet(f, open(8, exponential(1000), requests), seed, 200)
	})
}

// one makes the one router of a fleet.
func one(router func(id route.Identity) route.Router) func(seed uint64) []route.Router {
	return func(seed uint64) []route.Router { return []route.Router{router(route.Identity{Seed: seed, Of: 1})} }
}

func meanOf(ys []*totals, value func(*totals) float64) (mean float64) {
	for _, y := range ys {
		mean += value(y) / float64(len(ys))
	}
	return mean
}

// A random split makes ten queues M/M/1, round robin makes ten E₁₀/M/1, whose sojourn is 1/(μ(1-σ)) with σ the root of
// σ = A*(μ(1-σ)), and one queue for all is M/M/10. A router that compares two queues,
// or all of them, lies between: never better than one queue, never worse than round robin.
func TestTheoryFleet(t *testing.T) {
	testenv.NeedsLong(t, "ten servers, 3 s")
	random := tenServers(t, 40_000, 0, one(func(id route.Identity) route.Router { return &route.Random{ID: id} }))
	within(t, "W, random split", random, meanResidence, 5, 0)

	sigma := 0.0
	for range 200 {
		sigma = math.Pow(8/(8+1-sigma), 10)
	}
	turns := tenServers(t, 30_000, 0, one(func(route.Identity) route.Router { return new(route.RoundRobin) }))
	within(t, "W, in turn", turns, meanResidence, 1/(1-sigma), 0)

	shared := replicate(t, func() engine.Config {
		return server(10, 0.25e-3, 0)
	}, open(8, exponential(4000), 30_000), 200, 0)
	within(t, "W, one queue", shared, meanResidence, 1.204590, 0.25e-3)

	two := tenServers(t, 20_000, 0, one(func(id route.Identity) route.Router { return &route.PowerOfTwo{ID: id} }))
	shortest := tenServers(t, 20_000, 0, one(func(id route.Identity) route.Router {
		return &route.LeastRequests{ID: id}
	}))
	order := []float64{meanOf(shared, meanResidence), meanOf(shortest, meanResidence), meanOf(two, meanResidence),
		meanOf(turns, meanResidence), meanOf(random, meanResidence)}
	t.Logf("W: one queue %.4f, shortest of all %.4f, shortest of two %.4f, in turn %.4f, random %.4f", order[0],
		order[1], order[2], order[3], order[4])
	for i := range order[1:] {
		if order[i]*1.05 > order[i+1] {
			t.Errorf("the order of %.4f is not clear", order)
		}
	}
}

// A router that uses queue lengths that are two seconds old sends all that arrive between two looks to one server, and
// does worse than one that uses no signal. Counting what it has sent since repairs that, unless many routers do so,
// each by itself.
func TestHerd(t *testing.T) {
	const requests = 10_000
	queue := func(local bool, scrape clock.Duration, routers int) float64 {
		return meanOf(tenServers(t, requests, scrape, func(seed uint64) (all []route.Router) {
			for i := range routers {
				id := route.Identity{Seed: seed, Number: i, Of: routers}
				all = append(all, &route.LeastQueue{ID: id, Running: true, Local: local, Random: true})
			}
			return all
		}), meanResidence)
	}
	turns := meanOf(tenServers(t, requests, 0, one(func(route.Identity) route.Router {
		return new(route.RoundRobin)
	})), meanResidence)
	const old = 2 * clock.Second
	exact, stale, counted, crowd := queue(false, 0, 1), queue(false, old, 1), queue(true, old, 1), queue(true, old, 16)
	t.Logf("W: exact %.3f; %v old: with own counts %.3f, of 16 routers %.3f, without %.3f; in turn %.3f", exact, old,
		counted, crowd, stale, turns)
	for _, c := range []struct {
		what          string
		better, worse float64
	}{
		{"exact queues and stale ones with own counts", exact, counted},
		{"own counts and turns", counted, turns},
		{"turns and stale queues", turns, stale},
		{"own counts of one router and of sixteen", counted, crowd},
	} {
		if c.better*1.05 > c.worse {
			t.Errorf("%s: %.3f and %.3f", c.what, c.better, c.worse)
		}
	}
}

// groupSource send requests at random instants, each with the text of a group drawn at random at the beginning of its
// prompt.
type groupSource struct {
	requests            int64
	rate                float64
	groups              int
	shared, own, answer int32

	rng      *rand.Rand
	contents []*workload.Content
	next     workload.Request
}

// Peek implements [workload.Source].
func (s *groupSource) Peek() (clock.Time, bool) {
	if s.rng == nil {
		s.rng = rand.New(rand.NewPCG(1, 2))
		for g := range s.groups {
			s.contents = append(s.contents,
				&workload.Content{Segments: []workload.Segment{{ID: workload.UniqueID(-1 - int64(g)),
					Tokens: s.shared}}})
		}
		s.draw()
	}
	return s.next.Arrival, s.next.ID < s.requests
}

func (s *groupSource) draw() {
	s.next.Arrival = s.next.Arrival.Add(clock.FromSeconds(s.rng.ExpFloat64() / s.rate))
	s.next.Content = s.contents[s.rng.IntN(s.groups)]
	s.next.InputTokens, s.next.OutputTokens = s.shared+s.own, s.answer
}

// Next implements [workload.Source].
func (s *groupSource) Next() workload.Request {
	r := s.next
	s.next.ID++
	s.draw()
	return r
}

// Done implements [workload.Source].
func (s *groupSource) Done(*workload.Request, workload.End) bool { return false }

// Err implements [workload.Source].
func (s *groupSource) Err() error { return nil }

// cacheHits is what prefix caches spared.
type cacheHits struct {
	quiet
	cached, prompts int64
	served          map[int]int
}

func (h *cacheHits) Finished(rec *event.Record) {
	h.quiet.Finished(rec)
	h.cached += int64(rec.CachedTokens)
	h.prompts += int64(rec.Request.InputTokens)
	if h.served == nil {
		h.served = make(map[int]int)
	}
	h.served[rec.Replica]++
}

// Routers that use prefixes find more of them in the caches than round robin does, where no cache can hold them all,
// and those that also use loads leave no replica idle.
func TestPrefixRoutersHit(t *testing.T) {
	const replicas = 4
	rate := func(router route.Router) float64 {
		src := &groupSource{requests: 4000, rate: 20, groups: 80, shared: 512, own: 128, answer: 64}
		h := new(cacheHits)
		e, err := sim.NewFleet(fleetOf(replicas, func() engine.Config {
			c := chat(true)
			c.NumGPUBlocks = 2000
			return c
		}, 0, router), src, h)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Run(context.Background()); err != nil {
			t.Fatal(err)
		}
		most := 0
		for _, n := range h.served {
			most = max(most, n)
		}
		share := float64(h.cached) / float64(h.prompts)
		t.Logf("%-28s %.3f of prompt tokens cached, busiest replica %.2f of requests", fmt.Sprintf("%T", router), share,
			float64(most)/4000)
		if len(h.served) != replicas || most > 4000*6/10 {
			t.Errorf("%T: requests are spread %v", router, h.served)
		}
		return share
	}
	turns := rate(new(route.RoundRobin))
	byPrefix := route.NewBoundedHash()
	byPrefix.By, byPrefix.PrefixTokens = route.ByPrefix, 512
	llmd, precise, dynamo, approximate := route.NewLLMD(), route.NewLLMD(), route.NewDynamo(), route.NewDynamo()
	precise.Precise, approximate.Approximate = true, true
	dynamo.OverlapWeight, approximate.OverlapWeight = 4, 4 // long prompts, short outputs
	bounded := route.NewPrefix()
	bounded.MaxBlocks = 1000
	for _, r := range []route.Router{
		route.NewPrefix(), bounded, byPrefix, route.NewSGLang(), llmd, precise, dynamo, approximate,
		&route.LeastTokens{Uncached: true},
	} {
		if got := rate(r); got < 1.3*turns {
			t.Errorf("%T: %.3f of prompt tokens cached, %.3f in turn", r, got, turns)
		}
	}
}
