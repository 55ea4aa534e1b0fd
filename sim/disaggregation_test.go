package sim_test

import (
	"context"
	"slices"
	"testing"

	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// phases takes 100 ms for a prefill of 1000 tokens, and 10 ms for other iterations.
type phases struct{}

// Span implements [model.StepTimer].
func (phases) Span(b *model.Batch) (first, slope int64, n int) {
	for _, c := range b.Chunks {
		if c.New > 1 {
			return 100e12 * int64(c.New) / 1000, 0, 1
		}
	}
	return 10e12, 0, 1 << 20
}

// splitFleet is a fleet of prefill and decode replicas, with links of these bandwidths in bytes per second.
func splitFleet(prefills, decodes int, bandwidth int64) sim.Fleet {
	f := sim.Fleet{
		Routers: []route.Router{new(route.RoundRobin)},
		Disaggregation: &sim.Disaggregation{Prefills: prefills, Decoders: []route.Router{new(route.RoundRobin)},
			Hop: clock.Millisecond},
	}
	d := f.Disaggregation
	for i := range prefills + decodes {
		f.Replicas = append(f.Replicas, engine.Config{
			Scheduler: new(sched.VLLM), Timer: phases{}, MaxNumSeqs: 64, MaxNumBatchedTokens: 8192, MaxModelLen: 4096,
			BlockSize: 16, NumGPUBlocks: 1001, Connector: &engine.Connector{BlockBytes: 16 << 17}, Check: true,
		})
		if i < prefills {
			d.Egress = append(d.Egress, bandwidth)
		} else {
			d.Ingress = append(d.Ingress, bandwidth)
		}
	}
	return f
}

// recorder keeps records by request, and the largest number of blocks in use by replica.
type recorder struct {
	quiet
	of map[int64]event.Record
}

func (r *recorder) Finished(rec *event.Record) { r.of[rec.Request.ID] = *rec }

func runFleet(t *testing.T, f sim.Fleet, list []workload.Request) map[int64]event.Record {
	t.Helper()
	obs := &recorder{of: map[int64]event.Record{}}
	e, err := sim.NewFleet(f, simtest.NewRequests(list), obs)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(obs.of) != len(list) {
		t.Fatalf("%d of %d requests ended", len(obs.of), len(list))
	}
	return obs.of
}

// TestDisaggregated follows a prompt of 1000 tokens, 128 KiB each. It is computed in 100 ms and, after a hop of 1 ms,
// comes at 101 ms to a replica whose iterations end at 95, 105, 115 ms. That one asks for the KV at 105 ms; over 25
// GB/s it is there within the next iteration, so that the first token leaves at 125 ms, and if it takes 12 ms at 135
// ms.
func TestDisaggregated(t *testing.T) {
	for _, c := range []struct {
		bandwidth, first int64
	}{{25e9, 125}, {11e9, 135}} {
		f := splitFleet(1, 1, c.bandwidth)
		f.Disaggregation.MinTokens = 100 // so that the other request goes to the decode replica
		rec := runFleet(t, f, []workload.Request{
			{InputTokens: 1000, OutputTokens: 3},
			{Arrival: 5 * ms, InputTokens: 1, OutputTokens: 30},
		})[0]
		if rec.FirstToken != clock.Time(c.first)*ms || rec.LastToken != rec.FirstToken+20*ms {
			t.Errorf("%d bytes/s: tokens from %v to %v, want the first at %d ms", c.bandwidth, rec.FirstToken,
				rec.LastToken, c.first)
		}
		if !rec.HandedOver || rec.PrefilledBy != 0 || rec.Replica != 1 || rec.Between != clock.Millisecond ||
			rec.Tokens != 3 ||
			rec.RecomputedTokens != 1 || rec.PulledTokens != 999 || rec.Scheduled != 0 ||
			rec.Request.OutputTokens != 3 {
			t.Errorf("record %+v", rec)
		}
	}
}

// TestDisaggregatedOutage: the link is down from 106 to 156 ms, while the KV of the test above is in flight from 105
// ms on. It stands still, comes at 160.3 ms, and is seen at 165 ms. A lease of 30 ms has ended then, so that the prompt
// is computed again, or the request fails.
func TestDisaggregatedOutage(t *testing.T) {
	for _, c := range []struct {
		replica int
		lease   clock.Duration
		fails   bool
		first   clock.Time
	}{
		{0, 0, false, 175 * ms},
		{1, 0, false, 175 * ms},
		{0, 30 * clock.Millisecond, false, 265 * ms},
		{1, 30 * clock.Millisecond, true, clock.Never},
	} {
		f := splitFleet(1, 1, 25e9)
		f.Disaggregation.MinTokens, f.Disaggregation.Lease = 100, c.lease
		f.Disaggregation.Outages = []sim.Outage{{Replica: c.replica, At: 106 * ms, For: 50 * clock.Millisecond}}
		f.Replicas[1].Connector.FailLost = c.fails
		rec := runFleet(t, f, []workload.Request{
			{InputTokens: 1000, OutputTokens: 3},
			{Arrival: 5 * ms, InputTokens: 1, OutputTokens: 30},
		})[0]
		if rec.FirstToken != c.first || (rec.Outcome == event.Failed) != c.fails || c.fails && rec.Released != 165*ms {
			t.Errorf("%+v: %v, the first token at %v, released at %v", c, rec.Outcome, rec.FirstToken, rec.Released)
		}
	}
}

// A replica that computes prompts keeps the KV until it has been read, and takes no further prompts without room for
// them.
func TestDisaggregatedBackPressure(t *testing.T) {
	var list []workload.Request
	for range 4 {
		list = append(list, workload.Request{InputTokens: 1000, OutputTokens: 2})
	}
	f := splitFleet(1, 1, 100e6)     // 1.32 s for 63 blocks
	f.Replicas[0].NumGPUBlocks = 127 // room for two
	f.Replicas[0].MaxNumSeqs = 1
	of := runFleet(t, f, list)
	var scheduled []clock.Time
	for id := range int64(len(list)) {
		scheduled = append(scheduled, of[id].Scheduled)
	}
	// The transfer of a prompt, alone on the link, takes 1.32 s; two share it from 200 ms on.
	if scheduled[1] != 100*ms || scheduled[2] < 1300*ms || scheduled[3] < scheduled[2]+100*ms {
		t.Errorf("prompts are scheduled at %v", scheduled)
	}
	for id, rec := range of {
		if rec.Outcome != event.Completed {
			t.Errorf("request %d: %v", id, rec.Outcome)
		}
	}
}

// TestDisaggregationLosesNothing sends more requests than fit, with clients that leave at any time.
func TestDisaggregationLosesNothing(t *testing.T) {
	for _, lease := range []clock.Duration{0, 400 * clock.Millisecond} {
		var list []workload.Request
		for i := range 300 {
			r := workload.Request{Arrival: clock.Time(i) * 20 * ms, InputTokens: int32(20 + i*37%1900),
				OutputTokens: int32(1 + i%40)}
			if i%3 == 0 {
				r.Client = &workload.Client{Timeout: clock.Duration(1+i%200) * 20 * clock.Millisecond}
			}
			list = append(list, r)
		}
		f := splitFleet(2, 2, 2e9)
		f.Disaggregation.Lease, f.Disaggregation.MinTokens = lease, 64
		f.Disaggregation.MaxBacklog = 20000
		for i := range f.Replicas {
			f.Replicas[i].NumGPUBlocks, f.Replicas[i].PrefixCaching = 200, i%2 == 0
		}
		of := runFleet(t, f, list)
		outcomes, handed := map[event.Outcome]int{}, 0
		for id, rec := range of {
			outcomes[rec.Outcome]++
			if rec.HandedOver {
				handed++
			}
			if rec.Outcome == event.Completed && rec.Tokens != rec.Request.OutputTokens {
				t.Errorf("request %d: %d tokens of %d", id, rec.Tokens, rec.Request.OutputTokens)
			}
			if rec.Between < 0 || rec.Queued != clock.Never && rec.Released < rec.Queued.Add(rec.Between) {
				t.Errorf("request %d: %+v", id, rec)
			}
		}
		if outcomes[event.Completed]+outcomes[event.TimedOut] != len(list) || outcomes[event.TimedOut] == 0 ||
			handed < 50 {
			t.Errorf("lease %v: %v, %d handed over", lease, outcomes, handed)
		}
	}
}

// TestDisaggregationRepeats wants the same however many iterations are taken at once.
func TestDisaggregationRepeats(t *testing.T) {
	var want map[int64]event.Record
	for _, span := range []int{1, 3, 0} {
		var list []workload.Request
		for i := range 200 {
			list = append(list, workload.Request{Arrival: clock.Time(i) * 31 * ms, InputTokens: int32(100 + i*61%1500),
				OutputTokens: int32(1 + i*7%90)})
		}
		f := splitFleet(2, 3, 3e9)
		for i := range f.Replicas {
			f.Replicas[i].MaxSpan = span
		}
		of := runFleet(t, f, list)
		if want == nil {
			want = of
			continue
		}
		for id := range of {
			if a, b := of[id], want[id]; a.FirstToken != b.FirstToken || a.LastToken != b.LastToken ||
				a.Between != b.Between || a.GPU != b.GPU {
				t.Fatalf("spans of %d: request %d: %+v, stepped %+v", span, id, a, b)
			}
		}
	}
}

// TestValidateDisaggregation checks configurations that are rejected.
func TestValidateDisaggregation(t *testing.T) {
	for _, change := range []func(f *sim.Fleet){
		func(f *sim.Fleet) { f.Disaggregation.Prefills = 0 },
		func(f *sim.Fleet) { f.Disaggregation.Prefills = 2 },
		func(f *sim.Fleet) { f.Disaggregation.Decoders = nil },
		func(f *sim.Fleet) { f.Disaggregation.Egress = nil },
		func(f *sim.Fleet) { f.Disaggregation.Ingress = []int64{0} },
		func(f *sim.Fleet) { f.Disaggregation.Hop = -1 },
		func(f *sim.Fleet) { f.Disaggregation.Outages = []sim.Outage{{Replica: 2, For: 1}} },
		func(f *sim.Fleet) { f.Disaggregation.Outages = []sim.Outage{{At: 1}} },
		func(f *sim.Fleet) { f.Disaggregation.Outages = []sim.Outage{{At: 1, For: 5}, {At: 4, For: 5}} },
		func(f *sim.Fleet) { f.Replicas[1].Connector = nil },
		func(f *sim.Fleet) { f.Replicas[0].MaxTokens = 5 },
		func(f *sim.Fleet) { f.Replicas[0].BlockSize = 32 },
	} {
		f := splitFleet(1, 1, 1e9)
		f.Replicas = slices.Clone(f.Replicas)
		change(&f)
		if f.Validate() == nil {
			t.Errorf("no fault found in %+v", f.Disaggregation)
		}
	}
}
