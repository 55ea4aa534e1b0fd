package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"clifftop/sim"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/sched"
	"clifftop/sim/simtest"
	"clifftop/workload"
)

const milli = clock.Millisecond

// steady is an engine whose iterations last 10 milli.
func steady(int) engine.Config {
	return engine.Config{
		Scheduler: new(sched.VLLM), Timer: simtest.Affine{Base: 1e13}, Check: true,
		MaxNumSeqs: 8, MaxNumBatchedTokens: 64, MaxModelLen: 1000, BlockSize: 16,
	}
}

// lifecycleLog records the states of replicas in addition to a recording.
type lifecycleLog struct {
	simtest.Recorder
	states []string
}

func (d *lifecycleLog) ReplicaState(at clock.Time, i int, s event.State) {
	d.states = append(d.states, fmt.Sprintf("%d %v %v", i, at.Sub(0), s))
}

// runLifecycle runs requests, each sent at an instant with a prompt of one token, on replicas with a lifecycle.
func runLifecycle(t *testing.T, replicas int, lifecycle sim.Lifecycle, requests ...workload.Request) *lifecycleLog {
	t.Helper()
	d, err := tryLifecycle(replicas, lifecycle, requests...)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func tryLifecycle(replicas int, lifecycle sim.Lifecycle, requests ...workload.Request) (*lifecycleLog, error) {
	lifecycle.Renew = steady
	f := sim.Fleet{Lifecycle: &lifecycle, Routers: []route.Router{new(route.RoundRobin)}}
	for range replicas {
		f.Replicas = append(f.Replicas, steady(0))
	}
	d := new(lifecycleLog)
	e, err := sim.NewFleet(f, simtest.NewRequests(requests), d)
	if err == nil {
		err = e.Run(context.Background())
	}
	slices.SortFunc(d.Records, func(a, b event.Record) int { return int(a.Request.ID - b.Request.ID) })
	return d, err
}

// asks is a request for some tokens, sent at an instant.
func asks(at clock.Duration, tokens int32) workload.Request {
	return workload.Request{Arrival: clock.Time(at), InputTokens: 1, OutputTokens: tokens}
}

// outcomes describes how requests ended, and what they were given.
func outcomes(d *lifecycleLog) string {
	var list []string
	for i := range d.Records {
		r := &d.Records[i]
		s := fmt.Sprintf("%v %d/%d at %v", r.Outcome, r.Replica, r.Tokens, r.Released.Sub(0))
		if r.Refusal != event.NotRefused {
			s += " (" + r.Refusal.String() + ")"
		}
		list = append(list, s)
	}
	return strings.Join(list, "; ")
}

// TestLifecycle walks through what happens to replicas and their requests.
func TestLifecycle(t *testing.T) {
	impatient := asks(0, 5)
	impatient.Client = &workload.Client{FirstTimeout: 40 * milli}
	for _, k := range []struct {
		name         string
		replicas     int
		lifecycle    sim.Lifecycle
		requests     []workload.Request
		ends, states string
	}{
		{"a crash drops the token in flight; the next request waits for the replica", 1,
			sim.Lifecycle{ColdStart: workload.Delay{Mean: clock.Second},
				Failures: []sim.Failure{{Kind: sim.Crash, At: clock.Time(25 * milli), For: 100 * milli}}},
			[]workload.Request{asks(0, 5), asks(50*milli, 1)},
			"failed 0/2 at 25ms; completed 0/1 at 1.135s",
			"0 25ms down, 0 125ms starting, 0 1.125s ready"},
		{"an iteration that ends with the crash has not ended", 1,
			sim.Lifecycle{Failures: []sim.Failure{{Kind: sim.Crash, At: clock.Time(20 * milli), For: 100 * milli}}},
			[]workload.Request{asks(0, 5)}, "failed 0/1 at 20ms", "0 20ms down"},
		{"what the GPU was given is counted before it starts again", 1,
			sim.Lifecycle{Failures: []sim.Failure{{Kind: sim.Crash, At: clock.Time(11 * milli), For: 1 * milli}}},
			[]workload.Request{asks(0, 5), asks(15*milli, 1)}, "failed 0/1 at 11ms; completed 0/1 at 30ms",
			"0 11ms down, 0 20ms starting, 0 20ms ready"},
		{"until a health check requests go to the dead", 2,
			sim.Lifecycle{Probe: clock.Second,
				Failures: []sim.Failure{{Kind: sim.Crash, At: clock.Time(500 * milli), For: 10 * clock.Second}}},
			[]workload.Request{asks(600*milli, 1), asks(700*milli, 1), asks(800*milli, 1), asks(1000*milli, 1),
				asks(1001*milli, 1)},
			"failed 0/0 at 600ms; completed 1/1 at 710ms; failed 0/0 at 800ms; completed 1/1 at 1.01s; completed 1/1 at 1.02s", "0 500ms down"},
		{"a drain lets requests end, and sends new ones to another replica", 2,
			sim.Lifecycle{Failures: []sim.Failure{{Kind: sim.Drain, At: clock.Time(15 * milli)}}},
			[]workload.Request{asks(0, 5), asks(20*milli, 1), asks(21*milli, 1)},
			"completed 0/5 at 50ms; completed 1/1 at 30ms; completed 1/1 at 40ms", "0 15ms draining, 0 50ms off"},
		{"or kills them after a grace", 1,
			sim.Lifecycle{Grace: 20 * milli,
				Failures: []sim.Failure{{Kind: sim.Drain, At: clock.Time(15 * milli), For: 100 * milli}}},
			[]workload.Request{asks(0, 5), asks(20*milli, 1)},
			"failed 0/3 at 35ms; completed 0/1 at 150ms",
			"0 15ms draining, 0 40ms off, 0 140ms starting, 0 140ms ready"},
		{"a rolling restart has one replica away at a time", 3,
			sim.Lifecycle{ColdStart: workload.Delay{Mean: 30 * milli},
				Failures: []sim.Failure{{Kind: sim.Restart, At: clock.Time(5 * milli), Last: 2}}},
			[]workload.Request{asks(0, 2), asks(200*milli, 1)},
			"completed 0/2 at 20ms; completed 0/1 at 210ms",
			"0 5ms draining, 0 20ms off, 0 20ms starting, 0 50ms ready, 1 50ms draining, 1 50ms off, 1 50ms starting, 1 80ms ready, 2 80ms draining, 2 80ms off, 2 80ms starting, 2 110ms ready"},
		{"some may wait at the router, others are refused", 1,
			sim.Lifecycle{RouterQueue: 1, Failures: []sim.Failure{{Kind: sim.Crash, For: 100 * milli}}},
			[]workload.Request{asks(10*milli, 1), asks(20*milli, 1)},
			"completed 0/1 at 110ms; rejected -1/0 at 20ms (not ready)", "0 0s down, 0 100ms starting, 0 100ms ready"},
		{"or none", 1,
			sim.Lifecycle{RouterQueue: -1, Failures: []sim.Failure{{Kind: sim.Crash, For: 100 * milli}}},
			[]workload.Request{asks(10*milli, 1), asks(120*milli, 1)},
			"rejected -1/0 at 10ms (not ready); completed 0/1 at 130ms", "0 0s down, 0 100ms starting, 0 100ms ready"},
		{"a lost link: clients with a timeout leave, others get their output late", 2,
			sim.Lifecycle{Probe: 50 * milli,
				Failures: []sim.Failure{{Kind: sim.LinkLoss, At: clock.Time(5 * milli), For: 100 * milli}}},
			[]workload.Request{impatient, asks(0, 5), asks(6*milli, 1), asks(7*milli, 1), asks(60*milli, 2)},
			"timed_out 0/5 at 50ms; completed 1/5 at 50ms; failed 0/0 at 6ms; completed 1/1 at 20ms; completed 1/2 at 80ms", ""},
	} {
		d := runLifecycle(t, k.replicas, k.lifecycle, k.requests...)
		if got := outcomes(d); got != k.ends {
			t.Errorf("%s:\nends   %s\nwanted %s", k.name, got, k.ends)
		}
		if got := strings.Join(d.states, ", "); got != k.states {
			t.Errorf("%s:\nstates %s\nwanted %s", k.name, got, k.states)
		}
	}
}

// TestLostLink looks at what clients see of a replica that cannot be reached from 15 to 115 milli.
func TestLostLink(t *testing.T) {
	client := func(r workload.Request, c workload.Client) workload.Request { r.Client = &c; return r }
	d := runLifecycle(t, 1, sim.Lifecycle{Failures: []sim.Failure{{Kind: sim.LinkLoss, At: clock.Time(15 * milli),
		For: 100 * milli}}},
		asks(0, 4), // its first token came before
		// leaves with one token; the server has long ended it
		client(asks(0, 4), workload.Client{Timeout: 90 * milli}),
		client(asks(0, 4), workload.Client{Timeout: 116 * milli}), // just waits long enough
		// leaves at 50 milli; the server hears it when the link is back
		client(asks(0, 30), workload.Client{Timeout: 50 * milli}),
		asks(12*milli, 4), // sees nothing before
		// leaves without any
		client(asks(12*milli, 4), workload.Client{FirstTimeout: 60 * milli, Timeout: clock.Second}),
		// its first token comes in time
		client(asks(12*milli, 4), workload.Client{FirstTimeout: 103 * milli}),
	)
	want := []string{
		"answered: first 10ms, last 115ms, released 40ms, 4 tokens",
		"timeout: first 10ms, last never, released 40ms, 4 tokens",
		"answered: first 10ms, last 115ms, released 40ms, 4 tokens",
		"timeout: first 10ms, last never, released 120ms, 11 tokens",
		"answered: first 115ms, last 115ms, released 60ms, 4 tokens",
		"ttft timeout: first never, last never, released 60ms, 4 tokens",
		"answered: first 115ms, last 115ms, released 60ms, 4 tokens",
	}
	at := func(t clock.Time) string {
		if t == clock.Never {
			return "never"
		}
		return t.Sub(0).String()
	}
	for i := range d.Records {
		r := &d.Records[i]
		got := fmt.Sprintf("%v: first %s, last %s, released %s, %d tokens", r.Ending, at(r.ClientFirst),
			at(r.ClientLast), at(r.Released), r.Tokens)
		if got != want[i] {
			t.Errorf("request %d: %s\nwanted     %s", i, got, want[i])
		}
	}
}

// TestSlowReplica stretches the iterations that are composed from 15 to 45 milli by half.
func TestSlowReplica(t *testing.T) {
	slow := sim.Failure{Kind: sim.Slow, At: clock.Time(15 * milli), For: 30 * milli, Permille: 1500}
	d := runLifecycle(t, 1, sim.Lifecycle{Failures: []sim.Failure{slow}}, asks(0, 6))
	var last []clock.Duration
	for _, it := range d.Iterations {
		last = append(last, it.End.Sub(0)/milli)
	}
	if want := []clock.Duration{10, 20, 35, 50, 60, 70}; !slices.Equal(last, want) {
		t.Errorf("iterations end at %d milli, want %d", last, want)
	}
}

// TestTooSlow refuses an iteration of 30 s that is made to last 8 hours.
func TestTooSlow(t *testing.T) {
	slow := func(int) engine.Config {
		c := steady(0)
		c.Timer = simtest.Affine{Base: 3e16}
		return c
	}
	e, err := sim.NewFleet(sim.Fleet{Replicas: []engine.Config{slow(0)}, Lifecycle: &sim.Lifecycle{
		Renew: slow, Failures: []sim.Failure{{Kind: sim.Slow, For: clock.Hour, Permille: 1_000_000}},
	}}, simtest.NewRequests([]workload.Request{asks(milli, 5)}), new(lifecycleLog))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("%v, want an iteration that is too long", err)
	}
}

// TestStranded expects an error when no replica will become ready.
func TestStranded(t *testing.T) {
	_, err := tryLifecycle(1, sim.Lifecycle{Failures: []sim.Failure{{Kind: sim.Crash, At: clock.Time(5 * milli)}}},
		asks(0, 5), asks(20*milli, 1))
	if !errors.Is(err, sim.ErrStranded) {
		t.Errorf("%v, want %v", err, sim.ErrStranded)
	}
}

// TestScaleUpLag is D-06 of the scheduling notes: a spike at 0 is scraped every 15 s, polled every 15 s, and seen by a
// loop that runs every 15 s. With a cold start of 120 s there is more capacity after 120 to 165 s, whatever the
// phases.
func TestScaleUpLag(t *testing.T) {
	spike := make([]workload.Request, 40)
	for i := range spike {
		spike[i] = asks(0, 990)
	}
	spike = append(spike, asks(200*clock.Second, 1))
	var least, most clock.Duration
	for i := range 64 {
		phase := func(k int) clock.Duration { return clock.Duration(i>>(2*k)&3)*5*clock.Second + clock.Nanosecond }
		p := autoscale.NewKEDA(5)
		p.Poll, p.PollPhase, p.Phase = 15*clock.Second, phase(1), phase(2)
		s := sim.Scaler{Policy: p, Last: 3, Least: 1, Most: 4, Initial: 1, Scrape: 15 * clock.Second, Phase: phase(0)}
		d := runLifecycle(t, 4, sim.Lifecycle{ColdStart: workload.Delay{Mean: 120 * clock.Second}, Scalers: []sim.Scaler{s}},
			spike...)
		var up clock.Duration
		for _, state := range d.states {
			var at, what string
			if fmt.Sscanf(state, "1 %s %s", &at, &what); what == "ready" {
				up = mustParse(t, at)
				break
			}
		}
		if up < 120*clock.Second || up > 165*clock.Second {
			t.Fatalf("phases %d: up after %v: %v", i, up, d.states)
		}
		if most = max(most, up); least == 0 || up < least {
			least = up
		}
	}
	if least > 121*clock.Second || most < 150*clock.Second {
		t.Errorf("from %v to %v, want almost all of 120 to 165 s", least, most)
	}
}

func mustParse(t *testing.T, s string) clock.Duration {
	t.Helper()
	d, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	return clock.Duration(d.Nanoseconds()) * clock.Nanosecond
}

// schedule wants numbers of replicas, one a second.
type schedule []int

func (c schedule) Validate(int) error { return nil }

func (c schedule) Turn(s *autoscale.State) (int, clock.Time) {
	k := min(int(s.Now.Seconds()), len(c)-1)
	return c[k], s.Now.Add(clock.Second)
}

// TestScaleDownOrder removes those that are not ready first, of each the one with the highest number.
func TestScaleDownOrder(t *testing.T) {
	s := sim.Scaler{Policy: schedule{2, 4, 2, 1, 3, 3, 3, 3, 3, 3, 0, 0, 1}, Last: 3, Most: 4, Initial: 2,
		Scrape: clock.Second}
	d := runLifecycle(t, 4, sim.Lifecycle{ColdStart: workload.Delay{Mean: 1500 * milli}, Scalers: []sim.Scaler{s}},
		asks(0, 1), asks(11*clock.Second, 1))
	want := "2 0s off, 3 0s off, 2 1s starting, 3 1s starting, 3 2s off, 2 2s off, 1 3s draining, 1 3s off, " +
		"1 4s starting, 2 4s starting, 1 5.5s ready, 2 5.5s ready, " +
		"2 10s draining, 1 10s draining, 0 10s draining, 0 10s off, 1 10s off, 2 10s off, 0 12s starting, 0 13.5s ready"
	if got := strings.Join(d.states, ", "); got != want {
		t.Errorf("states %s\nwanted %s", got, want)
	}
	if got := outcomes(d); got != "completed 0/1 at 10ms; completed 0/1 at 13.51s" {
		t.Error(got)
	}
}

// TestRanksShareLifecycle has two deployments of two ranks each: 0 and 1, and 2 and 3. Whether the ranks iterate in
// lock step or not, what happens to one of them happens to both.
func TestRanksShareLifecycle(t *testing.T) {
	for _, k := range []struct {
		name         string
		lifecycle    sim.Lifecycle
		requests     []workload.Request
		ends, states string
	}{
		{"a crash of one", sim.Lifecycle{ColdStart: workload.Delay{Mean: clock.Second, Distribution: "exponential"},
			Failures: []sim.Failure{{Replica: 1, At: clock.Time(25 * milli), For: 100 * milli}}},
			[]workload.Request{asks(0, 5), asks(0, 5), asks(0, 5), asks(0, 5), asks(60*milli, 1), asks(60*milli, 1)},
			"failed 0/2 at 25ms; failed 1/2 at 25ms; completed 2/5 at 50ms; completed 3/5 at 50ms; completed 2/1 at 70ms; completed 3/1 at 70ms",
			"0 25ms down, 1 25ms down"},
		{"a drain ends when both have served",
			sim.Lifecycle{Failures: []sim.Failure{{Kind: sim.Drain, Replica: 1, At: clock.Time(15 * milli)}}},
			[]workload.Request{asks(0, 3), asks(0, 5), asks(0, 9)},
			"completed 0/3 at 30ms; completed 1/5 at 50ms; completed 2/9 at 90ms",
			// in lock step when the dummy batch has ended that began then
			"0 15ms draining, 1 15ms draining, 0 50ms off, 1 50ms off"},
		{"slowness", sim.Lifecycle{Failures: []sim.Failure{{Kind: sim.Slow, Replica: 2, For: 35 * milli,
			Permille: 2000}}},
			[]workload.Request{asks(0, 3), asks(0, 3), asks(0, 3), asks(0, 3)},
			"completed 0/3 at 30ms; completed 1/3 at 30ms; completed 2/3 at 50ms; completed 3/3 at 50ms", ""},
		{"a rolling restart has one deployment away at a time",
			sim.Lifecycle{ColdStart: workload.Delay{Mean: 30 * milli},
				Failures: []sim.Failure{{Kind: sim.Restart, At: clock.Time(5 * milli), Last: 3}}},
			[]workload.Request{asks(200*milli, 1)}, "completed 0/1 at 210ms",
			"0 5ms draining, 1 5ms draining, 0 5ms off, 1 5ms off, 0 5ms starting, 1 5ms starting, 0 35ms ready, 1 35ms ready, " +
				"2 35ms draining, 3 35ms draining, 2 35ms off, 3 35ms off, 2 35ms starting, 3 35ms starting, 2 65ms ready, 3 65ms ready"},
		{"a scaler counts deployments", sim.Lifecycle{ColdStart: workload.Delay{Mean: 500 * milli},
			Scalers: []sim.Scaler{{Policy: schedule{1, 2, 1, 1}, Last: 3, Most: 2, Initial: 1, Scrape: clock.Second}}},
			[]workload.Request{asks(2500*milli, 1)}, "completed 0/1 at 2.51s",
			"2 0s off, 3 0s off, 2 1s starting, 3 1s starting, 2 1.5s ready, 3 1.5s ready, 2 2s draining, 3 2s draining, 2 2s off, 3 2s off"},
	} {
		for _, lockstep := range [][]int{nil, {2, 2}} {
			lifecycle := k.lifecycle
			lifecycle.Groups, lifecycle.Renew = []int{2, 2}, steady
			f := sim.Fleet{Lifecycle: &lifecycle, Lockstep: lockstep, Routers: []route.Router{new(route.RoundRobin)}}
			for range 4 {
				f.Replicas = append(f.Replicas, steady(0))
			}
			d := new(lifecycleLog)
			e, err := sim.NewFleet(f, simtest.NewRequests(k.requests), d)
			if err == nil {
				err = e.Run(context.Background())
			}
			if err != nil {
				t.Fatalf("%s: %v", k.name, err)
			}
			slices.SortFunc(d.Records, func(a, b event.Record) int { return int(a.Request.ID - b.Request.ID) })
			if got := outcomes(d); got != k.ends {
				t.Errorf("%s, lock step %v:\nends   %s\nwanted %s", k.name, lockstep, got, k.ends)
			}
			got := strings.Join(d.states, ", ")
			if lockstep != nil {
				got = strings.ReplaceAll(got, "60ms off", "50ms off")
			}
			if !strings.HasPrefix(got, k.states) {
				t.Errorf("%s, lock step %v:\nstates %s\nwanted %s", k.name, lockstep, got, k.states)
			}
		}
	}
}

// TestValidateLifecycle checks lifecycles that are rejected.
func TestValidateLifecycle(t *testing.T) {
	for want, lifecycle := range map[string]sim.Lifecycle{
		"failure 0: there is no replica 2 of 2": {Failures: []sim.Failure{{Replica: 2}}},
		"failure 0: slow without end": {Failures: []sim.Failure{{Kind: sim.Slow,
			Permille: 2000}}},
		"failure 0: step times times 500/1000": {Failures: []sim.Failure{{Kind: sim.Slow,
			For: milli, Permille: 500}}},
		"failures 0 and 1: link of replica 0 twice at a time": {Failures: []sim.Failure{{Kind: sim.LinkLoss,
			For: milli}, {Kind: sim.LinkLoss, For: milli}}},
		"failure 0: there are no replicas 0 to 2 of 2": {Failures: []sim.Failure{{Kind: sim.Restart, Last: 2}}},
		"scaler 0: 1 to 3 of 2 replicas": {Scalers: []sim.Scaler{{Policy: schedule{},
			Last: 1, Least: 1, Most: 3, Scrape: milli}}},
		"lifecycle: groups of [2 1] are not the 2 replicas": {Groups: []int{2, 1}},
		"scaler 0: replicas 0 to 0 are no whole groups": {Groups: []int{2},
			Scalers: []sim.Scaler{{Policy: schedule{}, Scrape: milli}}},
		"failures 0 and 1: slow of replica 1 twice at a time": {Groups: []int{2},
			Failures: []sim.Failure{{Kind: sim.Slow, For: milli, Permille: 2000},
				{Kind: sim.Slow, Replica: 1, For: milli, Permille: 2000}}},
		"scaler 1: replica 1 has another one": {Scalers: []sim.Scaler{{Policy: schedule{},
			Last: 1, Scrape: milli}, {Policy: schedule{}, First: 1, Last: 1, Scrape: milli}}},
		"hpa: it cannot scale to zero (want min 1 or more, or keda or knat": {Scalers: []sim.Scaler{{Policy: autoscale.NewHPA(1), Scrape: milli}}},
	} {
		if _, err := tryLifecycle(2, lifecycle); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
