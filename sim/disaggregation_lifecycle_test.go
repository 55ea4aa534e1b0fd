package sim_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clifftop/sim"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

// runDisaggregated runs a fleet with a lifecycle and returns its log.
func runDisaggregated(t *testing.T, f sim.Fleet, lifecycle sim.Lifecycle, list []workload.Request) *lifecycleLog {
	t.Helper()
	again := slices.Clone(f.Replicas)
	lifecycle.Renew = func(i int) engine.Config {
		cfg := again[i]
		cfg.Scheduler = steady(0).Scheduler
		return cfg
	}
	f.Lifecycle = &lifecycle
	d := new(lifecycleLog)
	e, err := sim.NewFleet(f, simtest.NewRequests(list), d)
	if err == nil {
		err = e.Run(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(d.Records, func(a, b event.Record) int { return int(a.Request.ID - b.Request.ID) })
	return d
}

// TestDisaggregatedLifecycle ends replicas at all points of the way of a prompt of 1000 tokens. It is computed by
// replica 0 up to 100 ms, and comes at 101 ms to replica 1, whose iterations end at 95, 105, 115 ms. That one asks for
// 63 blocks at 105 ms, which are there at 110.3 ms, and found to be there at 115 ms, so that the first token leaves at
// 125 ms. Where the prompt has to be computed again at 115 ms it leaves at 215 ms.
func TestDisaggregatedLifecycle(t *testing.T) {
	const read = "110.284823ms"
	crash := func(replica int, at clock.Duration) sim.Failure {
		return sim.Failure{Kind: sim.Crash, Replica: replica, At: clock.Time(at), For: 50 * milli}
	}
	for _, c := range []struct {
		name    string
		failure sim.Failure
		change  func(f *sim.Fleet, l *sim.Lifecycle)
		ends    string // of the request, with its first token
		states  string
	}{
		{"its KV dies on the way", crash(0, 108*milli), nil, "completed 1/3, first 215ms",
			"0 108ms down, 0 158ms starting, 0 158ms ready"},
		{"and the request with it", crash(0, 108*milli), func(f *sim.Fleet, _ *sim.Lifecycle) {
			f.Replicas[1].Connector.FailLost = true
		},
			"failed 1/0 at 115ms", "0 108ms down, 0 158ms starting, 0 158ms ready"},
		{"it dies while the request is handed over", crash(0, 100500*clock.Microsecond), nil,
			"completed 1/3, first 215ms", "0 100.5ms down, 0 150.5ms starting, 0 150.5ms ready"},
		{"which comes out after the latency", crash(0, 100500*clock.Microsecond), func(f *sim.Fleet, _ *sim.Lifecycle) {
			f.Disaggregation.Latency = 15 * milli
		},
			"completed 1/3, first 225ms", "0 100.5ms down, 0 150.5ms starting, 0 150.5ms ready"},
		{"it dies when the KV has been read", crash(0, 111*milli), nil, "completed 1/3, first 125ms",
			"0 111ms down, 0 161ms starting, 0 161ms ready"},
		{"it dies while the prompt is computed", crash(0, 99*milli), nil, "failed 0/0 at 99ms",
			"0 99ms down, 0 149ms starting, 0 149ms ready"},
		{"the other one dies while it loads", crash(1, 108*milli), nil, "failed 1/0 at 108ms",
			"1 108ms down, 1 158ms starting, 1 158ms ready"},
		{"a drain waits for the read", sim.Failure{Kind: sim.Drain, At: 50 * ms, For: 50 * milli}, nil,
			"completed 1/3, first 125ms",
			"0 50ms draining, 0 " + read + " off, 0 160.284823ms starting, 0 160.284823ms ready"},
		{"but no longer than its grace", sim.Failure{Kind: sim.Drain, At: 50 * ms, For: 50 * milli},
			func(_ *sim.Fleet, l *sim.Lifecycle) {
				l.Grace = 58 * milli
			},
			"completed 1/3, first 215ms", "0 50ms draining, 0 108ms off, 0 158ms starting, 0 158ms ready"},
		{"its link is lost: it cannot say that it is done",
			sim.Failure{Kind: sim.LinkLoss, At: 90 * ms, For: 60 * milli}, nil, "completed 1/3, first 175ms", ""},
		{"it is slow", sim.Failure{Kind: sim.Slow, For: 20 * milli, Permille: 2000}, nil, "completed 1/3, first 225ms",
			""},
	} {
		f := splitFleet(1, 1, 25e9)
		f.Disaggregation.MinTokens = 100 // so that the other request goes to the decode replica
		l := sim.Lifecycle{Failures: []sim.Failure{c.failure}}
		if c.change != nil {
			c.change(&f, &l)
		}
		d := runDisaggregated(t, f, l, []workload.Request{
			{InputTokens: 1000, OutputTokens: 3},
			{Arrival: 5 * ms, InputTokens: 1, OutputTokens: 30},
		})
		r := &d.Records[0]
		got := fmt.Sprintf("%v %d/%d", r.Outcome, r.Replica, r.Tokens)
		if r.Outcome == event.Completed {
			got += fmt.Sprintf(", first %v", r.FirstToken.Sub(0))
		} else {
			got += fmt.Sprintf(" at %v", r.Released.Sub(0))
		}
		if got != c.ends {
			t.Errorf("%s: %s, want %s", c.name, got, c.ends)
		}
		if r.Request.OutputTokens != 3 {
			t.Errorf("%s: the request asks for %d tokens", c.name, r.Request.OutputTokens)
		}
		if got := strings.Join(d.states, ", "); got != c.states && !strings.HasPrefix(c.states, got+",") {
			t.Errorf("%s: states %s, want %s", c.name, got, c.states)
		}
	}
}

// TestLeaseEndsWithReader: replica 0 has room for one prompt. The second one is computed when the KV of the first is
// released, because replica 1, which was loading it, has crashed. Replica 1 is ready again when the second prompt comes
// at 205 ms.
func TestLeaseEndsWithReader(t *testing.T) {
	f := splitFleet(1, 1, 25e9)
	f.Replicas[0].NumGPUBlocks = 64
	d := runDisaggregated(t, f, sim.Lifecycle{Failures: []sim.Failure{{Replica: 1, At: 104 * ms, For: 50 * milli}}},
		[]workload.Request{
			{InputTokens: 1000, OutputTokens: 3}, {InputTokens: 1000, OutputTokens: 3},
		})
	if got, want := outcomes(d), "failed 1/0 at 104ms; completed 1/3 at 240.284823ms"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := d.Records[1].Scheduled; got != 104*ms {
		t.Errorf("the second prompt is computed from %v on, want 104 ms", got)
	}
}

// TestNoPrefillReplica: requests wait for the replica that computes prompts while it is down or, with a limit of the
// backlog, are served by the decode replica alone. Requests that were handed over wait for a decode replica.
func TestNoPrefillReplica(t *testing.T) {
	for _, c := range []struct {
		backlog int64
		replica int
		want    string
	}{
		{0, 0, "completed 1/1 at 316.284823ms"},
		{1, 0, "completed 1/1 at 150ms"},
		{0, 1, "completed 1/1 at 215.284823ms"},
	} {
		f := splitFleet(1, 1, 25e9)
		f.Disaggregation.MaxBacklog = c.backlog
		d := runDisaggregated(t, f, sim.Lifecycle{Failures: []sim.Failure{{Replica: c.replica, For: 200 * milli}}},
			[]workload.Request{{Arrival: 50 * ms, InputTokens: 1000, OutputTokens: 1}})
		if got := outcomes(d); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// loadLog is a policy that logs the load once a second and keeps the number of replicas.
type loadLog struct{ loads []float64 }

func (*loadLog) Validate(int) error { return nil }

func (l *loadLog) Turn(s *autoscale.State) (int, clock.Time) {
	load, _ := s.Load.Mean(s.Now, 0)
	l.loads = append(l.loads, load)
	return s.Wanted, s.Now.Add(clock.Second)
}

// TestScalersOfPrefillAndDecode has three requests wait for the prefill replica, which is down up to 3500 ms, and
// then for the decode replica, down from 3 to 6 s: each scaler counts the requests that its replicas could take.
func TestScalersOfPrefillAndDecode(t *testing.T) {
	prompts, answers := new(loadLog), new(loadLog)
	scaler := func(i int, p *loadLog) sim.Scaler {
		return sim.Scaler{Policy: p, First: i, Last: i, Most: 1, Initial: 1, Scrape: clock.Second, Phase: 500 * milli}
	}
	f := splitFleet(1, 1, 25e9)
	d := runDisaggregated(t, f, sim.Lifecycle{
		Scalers:  []sim.Scaler{scaler(0, prompts), scaler(1, answers)},
		Failures: []sim.Failure{{Replica: 0, For: 3600 * milli}, {Replica: 1, At: 3000 * ms, For: 3 * clock.Second}},
	}, slices.Repeat([]workload.Request{{Arrival: 1200 * ms, InputTokens: 1000, OutputTokens: 1}}, 3))
	if got := outcomes(d); strings.Count(got, "completed") != 3 {
		t.Error(got)
	}
	// Of 500, 1500, 2500 … ms, as known at the second after.
	if want := []float64{0, 0, 3, 3, 3, 0, 0}; !slices.Equal(prompts.loads[:len(want)], want) {
		t.Errorf("prompts: %v, want %v", prompts.loads, want)
	}
	if want := []float64{0, 0, 0, 0, 0, 3, 3}; !slices.Equal(answers.loads[:len(want)], want) {
		t.Errorf("answers: %v, want %v", answers.loads, want)
	}
}

// TestGroupsOfOneKind rejects a scaler for replicas of both kinds, and a group of both.
func TestGroupsOfOneKind(t *testing.T) {
	for want, lifecycle := range map[string]*sim.Lifecycle{
		"scaler 0: replicas 0 to 1 are for both prefill and decode": {Scalers: []sim.Scaler{{Policy: schedule{1},
			Last: 1, Most: 2, Scrape: milli}}},
		"a group has both prefill and decode replicas": {Groups: []int{2}},
	} {
		f := splitFleet(1, 1, 25e9)
		f.Lifecycle, lifecycle.Renew = lifecycle, steady
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
