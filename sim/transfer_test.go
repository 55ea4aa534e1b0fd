package sim_test

import (
	"cmp"
	"context"
	"slices"
	"testing"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// proxy is the source of an external router: it sends each request with one output token to a prefill replica, and when
// that has answered, after a hop, as it is to a decode replica. Replicas take turns.
type proxy struct {
	list              []workload.Request
	hop               clock.Duration
	prefills, decodes int
	pending           []workload.Request
	turns             int
	of                map[int64]workload.Request // requests by the ID of their prefill
}

func newProxy(f *sim.Fleet, list []workload.Request) *proxy {
	n := f.Disaggregation.Prefills
	p := &proxy{list: list, hop: f.Disaggregation.Hop, prefills: n, decodes: len(f.Replicas) - n,
		of: make(map[int64]workload.Request)}
	for i, r := range list {
		r.ID = int64(i)
		p.of[r.ID] = r
		r.OutputTokens, r.Replica, r.Transfer = 1, int32(1+i%n), &workload.Transfer{Keeps: true}
		p.send(r)
	}
	return p
}

func (p *proxy) send(r workload.Request) {
	p.pending = append(p.pending, r)
	slices.SortStableFunc(p.pending, func(a, b workload.Request) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.ID, b.ID))
	})
}

func (p *proxy) Peek() (clock.Time, bool) {
	if len(p.pending) == 0 {
		return 0, false
	}
	return p.pending[0].Arrival, true
}

func (p *proxy) Next() workload.Request {
	r := p.pending[0]
	p.pending = p.pending[1:]
	return r
}

func (p *proxy) Done(r *workload.Request, end workload.End) bool {
	again, ok := p.of[r.ID]
	if !ok || end.How != workload.Answered {
		return false
	}
	again.ID += int64(len(p.list))
	again.Arrival, again.Replica = end.At.Add(p.hop), int32(1+p.prefills+p.turns%p.decodes)
	again.Transfer = &workload.Transfer{From: r.Replica, Of: r.ID}
	p.turns++
	p.send(again)
	return false
}

func (p *proxy) Err() error { return nil }

// TestExternalDisaggregation: with an external router every request has the instants that it has when the simulator
// hands it over itself.
func TestExternalDisaggregation(t *testing.T) {
	var list []workload.Request
	for i := range 400 {
		r := workload.Request{Arrival: clock.Time(i) * 23 * ms, InputTokens: int32(20 + i*37%1900),
			OutputTokens: int32(1 + i%40)}
		if i%2 == 0 {
			r.Content = &workload.Content{Segments: []workload.Segment{{ID: uint64(i % 3), Tokens: r.InputTokens}}}
		}
		list = append(list, r)
	}
	for _, bandwidth := range []int64{25e9, 2e9} {
		fleet := func() sim.Fleet {
			f := splitFleet(2, 3, bandwidth)
			for i := range f.Replicas {
				f.Replicas[i].NumGPUBlocks, f.Replicas[i].PrefixCaching = 300, i%2 == 0
			}
			return f
		}
		inside := runFleet(t, fleet(), list)
		f, obs := fleet(), &recorder{of: map[int64]event.Record{}}
		e, err := sim.NewFleet(f, newProxy(&f, list), obs)
		if err == nil {
			err = e.Run(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		pulled := 0
		for id, want := range inside {
			first, got := obs.of[id], obs.of[id+int64(len(list))]
			if first.Queued != want.Queued || first.Scheduled != want.Scheduled || first.Replica != want.PrefilledBy ||
				got.Replica != want.Replica || got.FirstToken != want.FirstToken || got.LastToken != want.LastToken ||
				got.Released != want.Released || got.Tokens != want.Tokens || got.PulledTokens != want.PulledTokens {
				t.Fatalf("%d bytes/s, request %d: %+v\nand %+v\nwant %+v", bandwidth, id, first, got, want)
			}
			pulled += int(got.PulledTokens)
		}
		if len(obs.of) != 2*len(list) || pulled < 100_000 {
			t.Errorf("%d records, %d tokens pulled", len(obs.of), pulled)
		}
	}
}

// TestTransfers: what becomes of KV that is kept, read and not read. A prompt of 1000 tokens takes 100 ms. Its 63
// blocks of 2 MiB take 5.28 ms over 25 GB/s, and the replica finds only then that the KV is not there.
func TestTransfers(t *testing.T) {
	const failed = 105_284 * clock.Microsecond
	keep, load := &workload.Transfer{Keeps: true}, &workload.Transfer{From: 1}
	for _, c := range []struct {
		name     string
		first    workload.Request // at 0
		second   workload.Request // at 200 ms
		pulled   int32
		computed clock.Duration // until the first token of the second request
	}{
		{"loaded", workload.Request{Replica: 1, Transfer: keep}, workload.Request{Replica: 2, Transfer: load}, 999, 0},
		{"not kept", workload.Request{Replica: 1}, workload.Request{Replica: 2, Transfer: load}, 0, failed},
		{"of another request", workload.Request{Replica: 1, Transfer: keep},
			workload.Request{Replica: 2, Transfer: &workload.Transfer{From: 1, Of: 9}}, 0, failed},
		{"not asked for", workload.Request{Replica: 1, Transfer: keep}, workload.Request{Replica: 2}, 0, 100 * milli},
		{"a decode replica keeps nothing", workload.Request{Replica: 2, Transfer: keep},
			workload.Request{Replica: 2, Transfer: &workload.Transfer{From: 2}}, 0, 100 * milli},
		{"a prefill replica loads nothing", workload.Request{Replica: 1, Transfer: keep},
			workload.Request{Replica: 1, Transfer: load}, 0, 100 * milli},
		{"a shorter prompt was computed", workload.Request{Replica: 1, InputTokens: 500, Transfer: keep},
			workload.Request{Replica: 2, Transfer: load}, 512, 0},
	} {
		f := splitFleet(1, 1, 25e9)
		f.Disaggregation.Lease = 500 * clock.Millisecond
		for i, r := range []*workload.Request{&c.first, &c.second} {
			if r.OutputTokens, r.Arrival = 1, clock.Time(i)*200*ms; r.InputTokens == 0 {
				r.InputTokens = 1000
			}
		}
		of := runFleet(t, f, []workload.Request{c.first, c.second})
		got := of[1]
		took := got.FirstToken.Sub(got.Request.Arrival) / clock.Microsecond * clock.Microsecond
		if got.PulledTokens != c.pulled || c.computed > 0 && took != c.computed {
			t.Errorf("%s: %d tokens pulled, the first token after %v; want %d, %v", c.name, got.PulledTokens, took, c.pulled,
				c.computed)
		}
		if of[0].Tokens != 1 || of[0].HandedOver || got.HandedOver {
			t.Errorf("%s: %+v", c.name, of[0])
		}
	}
}

// TestTransferReleases: the prefill replica has room for one prompt of 1000 tokens. Its KV is free for the next one
// when it has been read, when the client of the request that would read it has left, and when the lease ends.
func TestTransferReleases(t *testing.T) {
	prompt := func(at clock.Time) workload.Request {
		return workload.Request{Arrival: at, InputTokens: 1000, OutputTokens: 1, Replica: 1,
			Transfer: &workload.Transfer{Keeps: true}}
	}
	reader := workload.Request{Arrival: 200 * ms, InputTokens: 1000, OutputTokens: 1, Replica: 2,
		Transfer: &workload.Transfer{From: 1}}
	impatient := reader
	impatient.Client = &workload.Client{Timeout: 20 * milli}
	busy := workload.Request{Arrival: 199 * ms, InputTokens: 1000, OutputTokens: 40, Replica: 2} // fills the replica
	for _, c := range []struct {
		name      string
		others    []workload.Request
		from, to  clock.Time // when the second prompt is scheduled
		seats     int
		completes int
	}{
		{"read", []workload.Request{reader}, 200 * ms, 220 * ms, 8, 3},
		{"left", []workload.Request{busy, impatient}, 220 * ms, 400 * ms, 1, 3},
		{"lease", nil, 600 * ms, 620 * ms, 8, 2},
		{"no lease", nil, 480_100 * ms, 480_120 * ms, 8, 2},
	} {
		f := splitFleet(1, 1, 25e9)
		if c.name != "no lease" {
			f.Disaggregation.Lease = 500 * clock.Millisecond
		}
		f.Replicas[0].NumGPUBlocks, f.Replicas[1].MaxNumSeqs = 80, c.seats
		list := append([]workload.Request{prompt(0), prompt(150 * ms)}, c.others...)
		if c.others == nil {
			list[1].Transfer = nil
		}
		of := runFleet(t, f, list)
		completed := 0
		for _, rec := range of {
			if rec.Outcome == event.Completed {
				completed++
			}
		}
		if at := of[1].Scheduled; at < c.from || at > c.to || completed != c.completes {
			t.Errorf("%s: the second prompt is scheduled at %v, want %v to %v; %d completed", c.name, at, c.from, c.to,
				completed)
		}
	}
}
