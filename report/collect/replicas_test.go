package collect

import (
	"context"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// besides is the collector of a fleet, with a whole collector for each replica beside its part.
type besides struct {
	*Collector
	alone []*Collector
}

func (o besides) OfReplica(i int) event.Observer { return event.Join(o.parts[i], o.alone[i]) }

// TestPartsAreCollectors demands that what is measured of a replica is what a collector of its own would measure, and
// that the fleet's sums are those of its replicas.
func TestPartsAreCollectors(t *testing.T) {
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(append(simtest.Policies(), simtest.FuzzPolicy)).Draw(t, "policy").Draw(t)
		replicas := rapid.IntRange(1, 4).Draw(t, "replicas")
		cfg := config(&k)
		opts, width := drawOptions(t, &cfg)
		opts.Stages, opts.Replicas, opts.GPUs = nil, replicas, 0
		fleet := sim.Fleet{Routers: []route.Router{new(route.RoundRobin)}}
		alone := make([]*Collector, replicas)
		for i := range replicas {
			each := ReplicaOptions{GPUs: i + 1, MaxNumSeqs: cfg.MaxNumSeqs, UsableBlocks: int64(cfg.UsableBlocks()),
				Work: opts.Work, Power: opts.Power}
			opts.Fleet = append(opts.Fleet, each)
			opts.GPUs += each.GPUs
			fleet.Replicas = append(fleet.Replicas, config(&k))
			alone[i] = New(Options{GPUs: each.GPUs, MaxNumSeqs: each.MaxNumSeqs, UsableBlocks: each.UsableBlocks,
				Work: each.Work, Power: each.Power, Facility: opts.Facility, End: opts.End})
			alone[i].line = newTimeline(width, maxBuckets, true)
		}
		opts.UsableBlocks *= int64(replicas)
		c := New(opts)
		c.line, c.parts = newTimeline(width, maxBuckets, true), newParts(c.opts, width)
		e, err := sim.NewFleet(fleet, k.Source(), besides{c, alone})
		if err == nil {
			err = e.Run(context.Background())
		}
		if err != nil {
			t.Fatalf("%v\n%v", err, k)
		}
		if err := c.Check(); err != nil {
			t.Fatalf("%v\n%v", err, k)
		}
		s := c.Summary()
		w := c.window(&report.Summary{})
		for i, one := range alone {
			one.settleAt(c.runEnd())
			for one.line.width < c.line.width {
				one.line.halve()
			}
			one.line.find(one.line.start(len(c.line.buckets) - 1))
			got := s.Replicas[i]
			if a, b := marshal(t, comparable(got)), marshal(t, comparable(one.asReplica(&w, i))); a != b {
				t.Fatalf("replica %d of %d: %s\n%v", i, replicas, differing(a, b), k)
			}
			if got.Requests.Completed > 0 {
				seen["replicas that served"]++
			}
			if got.Latency.ITL.N > 0 {
				seen["with gaps"]++
			}
			if got.System.KVUsage.Max != nil {
				seen["with limited pools"]++
			}
		}
		if len(s.Replicas) > 1 && w.end > w.start {
			g := s.System.GPUSeconds
			idle := *g.IdleByCause.NoRequests + *g.IdleByCause.Elsewhere + *g.IdleByCause.FrontEnd
			if math.Abs(idle-*g.Idle) > 1e-9**g.Idle {
				t.Fatalf("causes of idling add up to %v of %v s", idle, *g.Idle)
			}
		}
	})
	t.Log(seen)
}

// asReplica is what a whole collector of a replica has of what is told of one.
func (c *Collector) asReplica(w *window, i int) report.Replica {
	sum, d := c.line.total(w.from, min(w.to, len(c.line.buckets)))
	var s report.Summary
	summariser{c}.rates(&s, w, &sum)
	summariser{c}.latencies(&s, w, &sum, d)
	summariser{c}.concurrency(&s, d)
	summariser{c}.system(&s, w, &sum, d)
	energy := summariser{c}.energy(&s, w, &sum, summariser{c}.units(w, &sum, d))
	if energy != nil {
		energy.SystemWatts.Max = nil
	}
	for _, l := range []*report.Level{&s.Concurrency.InSystem, &s.Concurrency.Running, &s.Concurrency.Decoding,
		&s.Concurrency.QueueDepth} {
		l.P95, l.P99 = nil, nil
	}
	t, all, l := &c.totals, c.line.whole(), &s.Latency
	return report.Replica{
		Index: i, GPUs: c.opts.GPUs, Throughput: s.Throughput, Concurrency: s.Concurrency, System: s.System,
		Energy: energy,
		Latency: report.ReplicaLatency{TTFT: l.TTFT, TPOT: l.TPOT,
			ITL: report.Distribution{N: l.ITL.N, Mean: l.ITL.Mean}, E2E: l.E2E, Queue: l.Queue},
		Tokens: report.ReplicaTokens{Input: t.input, CachedInput: t.cached, Output: all.output,
			Recomputed: all.recomputed},
		Requests: report.ReplicaRequests{Sent: t.attempts, InSystemAtEnd: t.attempts - t.recorded},
	}
}

// comparable leaves out what a collector counts by logical requests, and a replica by attempts.
func comparable(r report.Replica) report.Replica {
	r.Requests = report.ReplicaRequests{Sent: r.Requests.Sent, InSystemAtEnd: r.Requests.InSystemAtEnd}
	r.Throughput.OfferedRequestsPerS, r.System.ErrorRate = nil, nil
	return r
}

// differing shows the lines that are not in both.
func differing(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	var out []string
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			out = append(out, strings.Join(x[max(0, i-3):i], "")+x[i]+" and "+y[i])
		}
	}
	return strings.Join(out, "\n")
}

// TestReplicasOfManyRequests wants the latencies of replicas when not all samples are kept.
func TestReplicasOfManyRequests(t *testing.T) {
	c := New(Options{Replicas: 2, Fleet: make([]ReplicaOptions, 2)})
	c.exact = 10
	for i := range int64(100) {
		rec := served(i, float64(i*10), float64(i*10+1), float64(i*10+3), 5)
		rec.Replica = int(i % 4 / 3)
		c.Arrived(rec.Request.Arrival, &rec.Request)
		c.OfReplica(rec.Replica).Arrived(rec.Request.Arrival, &rec.Request)
		c.Finished(rec)
		c.OfReplica(rec.Replica).Finished(rec)
	}
	s := c.Summary()
	for i, want := range []int64{75, 25} {
		if r := s.Replicas[i]; r.Latency.TTFT.N != want || r.Requests.Completed != want ||
			*r.Latency.TTFT.P50 != *s.Latency.TTFT.P50 {
			t.Errorf("replica %d: %s", i, marshal(t, r))
		}
	}
	if m := s.Imbalance; *m.Requests != 1.5 || m.Busy != nil {
		t.Errorf("imbalance: %s", marshal(t, m))
	}
}

// TestFleetsPool wants that replications of a fleet pool its replicas, without intervals.
func TestFleetsPool(t *testing.T) {
	run := func(seed uint64, busy float64) *report.Summary {
		s := &report.Summary{Seed: seed, Window: report.Window{EndS: 10},
			Replicas: []report.Replica{{Pool: "a", Index: 0, GPUs: 2}, {Pool: "a", Index: 1, GPUs: 2}}}
		blocks := int64(100)
		for i := range s.Replicas {
			r := &s.Replicas[i]
			r.Requests.Sent = 5
			r.System.BusyFraction, r.System.KVUsage.Max, r.System.KVBlocks = stats.Finite(busy), stats.Finite(busy/2),
				&blocks
			r.System.GPUSeconds.Useful = stats.Finite(busy)
		}
		return s
	}
	s := report.Pool([]*report.Summary{run(1, .4), run(2, .6)})
	r := s.Replicas[1]
	if r.Pool != "a" || r.Index != 1 || r.GPUs != 2 || r.Requests.Sent != 10 || *r.System.BusyFraction != .5 ||
		*r.System.KVUsage.Max != .3 || *r.System.KVBlocks != 100 || *r.System.GPUSeconds.Useful != 1 {
		t.Errorf("pooled %s", marshal(t, r))
	}
	for path := range s.CI95 {
		if strings.HasPrefix(path, "replicas.") {
			t.Errorf("%s has an interval", path)
		}
	}
}

// A fleet of many replicas, and each of them, has fewer buckets of time.
func TestBucketsOfManyReplicas(t *testing.T) {
	for _, n := range []int{manyReplicas, manyReplicas + 1} {
		c := New(Options{Fleet: make([]ReplicaOptions, n)})
		for at := clock.Time(0); at < clock.Time(clock.Hour); at += clock.Time(clock.Second) {
			c.Arrived(at, &workload.Request{Arrival: at, InputTokens: 1, OutputTokens: 1})
			c.parts[n-1].Arrived(at, &workload.Request{Arrival: at, InputTokens: 1, OutputTokens: 1})
		}
		var all, part int64
		for i := range c.line.buckets {
			all += c.line.buckets[i].arrivals
		}
		for i := range c.parts[n-1].line.buckets {
			part += c.parts[n-1].line.buckets[i].arrivals
		}
		most := mostBuckets(n)
		if got := len(c.line.buckets); all != 3600 || part != 3600 || got > most || 2*got < most ||
			len(c.parts[n-1].line.buckets) != got {
			t.Errorf("%d replicas: %d and %d arrivals in %d and %d buckets (want 3600 in up to %d)", n, all, part, got,
				len(c.parts[n-1].line.buckets), most)
		}
	}
}
