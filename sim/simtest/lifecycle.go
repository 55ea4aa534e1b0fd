package simtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/autoscale"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

// VerifyLifecycle runs a policy on random fleets whose replicas crash, drain, are slow, lose their link, and are scaled
// at random. It checks that each engine of a replica does what a new naive engine does with the same requests until it
// stops, and that no request is lost.
func VerifyLifecycle(t testing.TB, p Policy, router func(route.Identity) route.Router) {
	t.Helper()
	verifyLifecycle(t, p.Draw, router)
}

// VerifyPipelineLifecycle is [VerifyLifecycle] for engines with several pipeline stages.
func VerifyPipelineLifecycle(t testing.TB, p Policy, router func(route.Identity) route.Router) {
	t.Helper()
	verifyLifecycle(t, p.DrawPipeline, router)
}

// VerifyTierLifecycle is [VerifyLifecycle] for engines that keep KV in tiers, some of which outlive them.
func VerifyTierLifecycle(t testing.TB, p Policy, router func(route.Identity) route.Router) {
	t.Helper()
	verifyLifecycle(t, p.DrawTiers, router)
}

func verifyLifecycle(t testing.TB, draw func(*rapid.T) Case, router func(route.Identity) route.Router) {
	t.Helper()
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		d := drawer{t}
		c := draw(t)
		replicas := d.between("replicas", 1, 4)
		alone := !d.once("clients react", 4)
		if alone { // what a replica does must not change what its clients ask for
			c.users, c.retries, c.config.NetworkIn = 0, Retries{}, 0
		}
		lifecycle := d.lifecycle(replicas, d.together(replicas), c.step())
		lifecycle.Renew = func(int) engine.Config {
			cfg := c.Config()
			cfg.Check = true
			return cfg
		}
		sentBy := &recordingRouter{Bound: route.Bind(router(route.Identity{Seed: 5, Of: 1})),
			sent: make(map[int64]clock.Time)}
		f := sim.Fleet{Routers: []route.Router{sentBy}, Lifecycle: lifecycle}
		for range replicas {
			f.Replicas = append(f.Replicas, lifecycle.Renew(0))
			f.Replicas[len(f.Replicas)-1].MaxSpan = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "max span")
		}
		src, obs := c.Source(), newLifecycleRecorder(replicas)
		e, err := sim.NewFleet(f, src, obs)
		if err == nil {
			err = e.Run(context.Background())
		}
		describe := func() string { return fmt.Sprintf("%d replicas, %+v\n%v", replicas, *lifecycle, c) }
		if err != nil {
			t.Fatalf("%v\n%v", err, describe())
		}
		if err := checkConserved(&obs.Recorder, src); err != nil {
			t.Fatalf("%v\n%v", err, describe())
		}
		count(seen, &obs.Recorder)
		if !alone {
			return
		}
		for i := range obs.instances {
			var tiers []*naive.Tier
			if c.config.Connector != nil {
				tiers = make([]*naive.Tier, len(c.config.Connector.Tiers))
			}
			for k, l := range obs.instances[i] {
				if d := l.compare(&c, i, lifecycle, src, sentBy.sent, tiers); d != "" {
					t.Fatalf("engine %d of replica %d, alone and in the fleet: %s\n%v", k, i, d, describe())
				}
				if len(l.recording.Records) > 0 {
					seen[fmt.Sprintf("engines %d that served", min(k, 2))]++
				}
				for _, tier := range tiers {
					if tier != nil {
						seen["tiers that outlive"]++
						seen["torn chunks"] += len(tier.Torn)
					}
				}
			}
		}
	})
	t.Log(seen)
}

// together draws groups of replicas that share a lifecycle, or none.
func (d drawer) together(replicas int) (sizes []int) {
	if d.once("each alone", 2) {
		return nil
	}
	for left := replicas; left > 0; left -= sizes[len(sizes)-1] {
		sizes = append(sizes, d.between("together", 1, left))
	}
	return sizes
}

// lifecycle draws failures and scalers of replicas, some of which may be in groups. step is their unit of time.
func (d drawer) lifecycle(replicas int, together []int, step clock.Duration) *sim.Lifecycle {
	var lead []int // by replica: the first one of its group
	for _, n := range together {
		lead = append(lead, slices.Repeat([]int{len(lead)}, n)...)
	}
	groups := len(together)
	for together == nil && groups < replicas {
		lead = append(lead, groups)
		groups++
	}
	some := func(name string, most int) clock.Duration {
		return step * clock.Duration(d.between(name, 0, 4*most)) / 4
	}
	l := &sim.Lifecycle{Groups: together, Seed: 1, RouterQueue: d.one("hold", 0, 0, 0, 3, -1)}
	l.ColdStart = workload.Delay{Mean: some("cold start", 10)}
	if d.once("random cold start", 3) {
		l.ColdStart.Distribution = "exponential"
	}
	if d.once("grace", 2) {
		l.Grace = 1 + some("grace", 20)
	}
	if d.once("probe", 2) {
		l.Probe = 1 + some("probe", 8)
	}
	until := make(map[[2]int]clock.Time) // of slowness and lost links
	for range d.between("failures", 0, 8) {
		f := sim.Failure{
			Kind: sim.FailureKind(d.of("kind", 5)), Replica: d.of("replica", replicas), At: clock.Time(some("at", 40)),
			For: some("for", 20), Permille: int64(1000 + 500*d.of("slowness", 8)),
		}
		switch f.Kind {
		case sim.Slow, sim.LinkLoss:
			f.For++
			key := [2]int{int(f.Kind), lead[f.Replica]}
			f.At = max(f.At, until[key])
			until[key] = f.At.Add(f.For)
		case sim.Restart:
			f.Last = f.Replica + d.of("last", replicas-f.Replica)
		default:
			if lead[f.Replica] == 0 { // one replica must remain
				f.For++
			}
		}
		l.Failures = append(l.Failures, f)
	}
	if d.once("autoscaler", 2) {
		l.Scalers = []sim.Scaler{{
			Policy: &randomAutoscaler{step: step/4 + 1 + some("turn", 10), seed: uint64(d.between("mood", 0, 1000)),
				most: groups},
			Last: replicas - 1, Most: groups, Initial: d.between("initial", 0, groups),
			Scrape: step/4 + 1 + some("scrape", 10), Metric: autoscale.Metric(d.of("metric", len(autoscale.Metrics()))),
		}}
	}
	return l
}

// randomAutoscaler is an autoscaler that wants any number of replicas, until it tires of it.
type randomAutoscaler struct {
	step  clock.Duration
	seed  uint64
	most  int
	turns int
}

// Validate implements [autoscale.Policy].
func (m *randomAutoscaler) Validate(int) error { return nil }

// Turn implements [autoscale.Policy].
func (m *randomAutoscaler) Turn(s *autoscale.State) (int, clock.Time) {
	if m.turns++; m.turns > 40 { // or some replica might never have the time to start
		return m.most, s.Now.Add(m.step)
	}
	load, _ := s.Load.Mean(s.Now, 0)
	d := hasher{m.seed}
	d.add(int64(s.Now), int64(s.Wanted), int64(s.Ready), int64(load*8))
	return int(d.sum % uint64(m.most+1)), s.Now.Add(m.step)
}

// recordingRouter is a router that notes when it sent requests.
type recordingRouter struct {
	route.Bound
	sent map[int64]clock.Time
}

// Route implements [route.Router].
func (s *recordingRouter) Route(v route.View, r *workload.Request) int {
	s.sent[r.ID] = v.Now()
	return s.Router.Route(v, r)
}

// checkConserved asserts that every request that was sent has ended once, that its source was told of it once, and that
// none is left.
func checkConserved(t *Recorder, src *Requests) error {
	c := checker{t: t}
	open := make(map[int64]bool)
	for _, a := range t.Arrivals {
		c.want(!open[a.Request.ID], "request %d: sent twice", a.Request.ID)
		open[a.Request.ID] = true
	}
	told := make(map[int64]Ended)
	for _, e := range src.Ended {
		_, twice := told[e.Request]
		c.want(!twice, "request %d: done twice", e.Request)
		told[e.Request] = e
	}
	delivered, dropped, produced := 0, 0, 0
	for i := range t.Records {
		rec := &t.Records[i]
		c.want(open[rec.Request.ID], "request %d: ended twice, or was never sent", rec.Request.ID)
		delete(open, rec.Request.ID)
		e := told[rec.Request.ID]
		c.want(e.How == rec.Ending && e.Again == rec.Again &&
			(rec.Outcome == event.Failed) == (rec.Ending == workload.Disconnected),
			"request %d: source got %+v, record %+v", rec.Request.ID, e, rec)
		c.want(e.How == workload.Answered || e.Tokens <= rec.Tokens, "request %d: source got %+v, record %+v",
			rec.Request.ID, e, rec)
		delivered += int(rec.Tokens)
	}
	c.want(len(open) == 0 && len(told) == len(t.Records), "%d of %d requests have not ended, and %d are done",
		len(open), len(t.Arrivals), len(told))
	for _, d := range t.Drops {
		dropped += d.Tokens
	}
	for _, it := range t.Iterations {
		produced += it.Decodes + it.FirstTokens + it.Accepted - it.Discarded
	}
	c.want(produced == delivered+dropped, "tokens: %d produced, %d delivered, %d dropped", produced, delivered, dropped)
	if n := len(t.Changes); n > 0 {
		c.want(t.Changes[n-1].Levels == event.Levels{}, "levels at the end: %+v", t.Changes[n-1].Levels)
	}
	return errors.Join(c.faults...)
}

// lifecycleRecorder is a recording of a fleet, with a recording of each engine of each replica.
type lifecycleRecorder struct {
	Recorder
	at        []*currentInstance
	instances [][]*instance
}

// instance is one engine of a replica, between a start and a stop.
type instance struct {
	recording Recorder
	begins    clock.Time
	ready     clock.Time // at the earliest
	drain     clock.Time // when it began to drain, or was given up before it was ready
	crash     clock.Time
}

// currentInstance is the recorder of the current engine, or nil.
type currentInstance struct{ *Recorder }

var (
	_ event.FleetObserver     = (*lifecycleRecorder)(nil)
	_ event.LifecycleObserver = (*lifecycleRecorder)(nil)
)

func newLifecycleRecorder(replicas int) *lifecycleRecorder {
	t := &lifecycleRecorder{instances: make([][]*instance, replicas)}
	for i := range replicas {
		t.at = append(t.at, new(currentInstance))
		t.begin(i)
	}
	return t
}

func (t *lifecycleRecorder) begin(i int) *instance {
	l := &instance{drain: clock.Never, crash: clock.Never}
	t.instances[i] = append(t.instances[i], l)
	t.at[i].Recorder = &l.recording
	return l
}

// OfReplica implements [event.FleetObserver].
func (t *lifecycleRecorder) OfReplica(i int) event.Observer { return t.at[i] }

// ReplicaState implements [event.LifecycleObserver].
func (t *lifecycleRecorder) ReplicaState(at clock.Time, i int, s event.State) {
	l := t.instances[i][len(t.instances[i])-1]
	switch s {
	case event.Starting:
		l := t.begin(i)
		l.begins, l.ready = at, clock.Never
		return
	case event.Ready:
		l.ready = at
		return
	case event.Draining:
		l.drain = at
		return
	case event.Down:
		l.crash = at
	case event.Off:
		if l.crash == clock.Never {
			l.drain = min(l.drain, at)
		}
	}
	t.at[i].Recorder = new(Recorder) // what is sent there now fails
}

// compare describes how an engine differs from the naive engine, which gets the same requests at the instants when the
// router sent them, and finds in persistent tiers what the engines before have left there.
func (l *instance) compare(c *Case, replica int, lifecycle *sim.Lifecycle, src *Requests, sent map[int64]clock.Time,
	tiers []*naive.Tier) string {
	if l.drain != clock.Never && lifecycle.Grace > 0 {
		l.crash = min(l.crash, l.drain.Add(lifecycle.Grace))
	}
	lifetime, linkLost := naive.Lifetime{Crash: l.crash, Tiers: tiers, Slow: slowdowns(lifecycle, replica)},
		losesLink(lifecycle, replica)
	if linkLost && slices.ContainsFunc(c.requests, func(r workload.Request) bool { return r.Client != nil }) {
		return "" // clients that would have stayed leave
	}
	unsent := make(map[int64]bool) // what failed on the way
	for i := range l.recording.Records {
		rec := &l.recording.Records[i]
		if (rec.Outcome == event.Failed || rec.Released == l.crash) && rec.Queued == clock.Never &&
			rec.Released == sent[rec.Request.ID] {
			unsent[rec.Request.ID] = true
		}
	}
	l.recording.Arrivals = slices.DeleteFunc(l.recording.Arrivals, func(a Arrival) bool { return unsent[a.Request.ID] })
	l.recording.Records = slices.DeleteFunc(l.recording.Records, func(r event.Record) bool {
		return unsent[r.Request.ID]
	})
	again, alone := newReplay(l.recording.Arrivals, src), new(StepRecorder)
	again.sent = sent
	if err := naive.RunLifetime(c.Config(), again, alone, lifetime); err != nil {
		return err.Error()
	}
	return l.diff(&alone.Recorder, replica, linkLost)
}

// slowdowns are the times at which a replica is slow.
func slowdowns(lifecycle *sim.Lifecycle, replica int) (list []naive.Slowdown) {
	for _, f := range lifecycle.Failures {
		if f.Kind == sim.Slow && concerns(lifecycle, &f, replica) {
			list = append(list, naive.Slowdown{From: f.At, To: f.At.Add(f.For), Permille: f.Permille})
		}
	}
	return list
}

// losesLink reports whether a replica loses its link at some time.
func losesLink(lifecycle *sim.Lifecycle, replica int) bool {
	return slices.ContainsFunc(lifecycle.Failures, func(f sim.Failure) bool {
		return f.Kind == sim.LinkLoss && concerns(lifecycle, &f, replica)
	})
}

// concerns reports whether a failure is of a replica or of another one in its group.
func concerns(lifecycle *sim.Lifecycle, f *sim.Failure, replica int) bool {
	first := 0
	for _, n := range lifecycle.Groups {
		if first <= min(f.Replica, replica) && max(f.Replica, replica) < first+n {
			return true
		}
		first += n
	}
	return f.Replica == replica
}

// diff describes how an engine differs from an engine alone. A lost link delays what clients see.
func (l *instance) diff(alone *Recorder, replica int, linkLost bool) string {
	for k := range alone.Moves {
		alone.Moves[k].Replica = replica
	}
	for _, t := range []*Recorder{alone, &l.recording} {
		for k := range t.Records {
			rec := &t.Records[k]
			rec.Replica = replica
			if linkLost {
				rec.ClientFirst, rec.ClientLast = 0, 0
			}
		}
		if l.drain != clock.Never { // copies end with the replica, and not with its last iteration
			t.Links = slices.DeleteFunc(t.Links, func(c LinkChange) bool { return c.At >= t.lastRelease() })
		}
	}
	return Diff(alone, &l.recording)
}
