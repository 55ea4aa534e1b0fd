package simtest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/event"
	"clifftop/sim/route"
	"clifftop/sim/simtest/naive"
)

// VerifyDisaggregated runs a policy on random fleets with disaggregated prefill and decode, whose replicas are always
// ready, or crash, drain, are slow, lose their link and are scaled. It checks that no request is lost. If no client
// leaves, it also checks that every engine of every replica does what the naive engine does, with consistent leases and
// loads, and all transfers on one network.
func VerifyDisaggregated(t testing.TB, p Policy) {
	t.Helper()
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		d := drawer{t}
		c := p.DrawTiers(t)
		f := d.disaggregated(&c)
		alone := !d.once("clients react", 4)
		if alone { // what a replica does must not change the requests of its clients
			c.users, c.retries = 0, Retries{}
			for i := range c.requests {
				c.requests[i].Client = nil
			}
			for i := range f.Replicas {
				f.Replicas[i].NetworkIn = 0
			}
		}
		n := len(f.Replicas)
		again := slices.Clone(f.Replicas)
		config := func(i int) engine.Config {
			cfg := again[i]
			cfg.Scheduler = c.Config().Scheduler
			return cfg
		}
		if d.once("lifecycle", 4) {
			f.Lifecycle = nil
		} else {
			f.Lifecycle.Renew = config
		}
		for i := range f.Replicas {
			f.Replicas[i] = config(i)
			f.Replicas[i].MaxSpan = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "max span")
		}
		w := &disaggregatedRecorder{lifecycleRecorder: newLifecycleRecorder(n), prompts: newRecordingRouter(),
			answers: newRecordingRouter()}
		f.Routers, f.Disaggregation.Decoders = []route.Router{w.prompts}, []route.Router{w.answers}
		src := c.Source()
		e, err := sim.NewFleet(f, src, w)
		if err == nil {
			err = e.Run(context.Background())
		}
		if err == nil {
			err = checkConserved(&w.Recorder, src)
		}
		if err != nil {
			t.Fatalf("%v\n%v", err, describe(&f, &c))
		}
		count(seen, &w.Recorder)
		for i := range w.Records {
			rec := &w.Records[i]
			if asked := src.list[src.origin[src.sent[rec.Request.ID]]].OutputTokens; rec.Request.OutputTokens != asked {
				t.Fatalf("request %d: asks for %d tokens, and not for %d\n%v", rec.Request.ID, rec.Request.OutputTokens,
					asked, describe(&f, &c))
			}
			if rec.HandedOver {
				seen["handed over, "+rec.Outcome.String()]++
			}
		}
		if !alone {
			return
		}
		if diff := w.compare(&f, src, config, seen); diff != "" {
			t.Fatalf("%s\n%v", diff, describe(&f, &c))
		}
	})
	t.Log(seen)
}

func describe(f *sim.Fleet, c *Case) string {
	connector := f.Replicas[0].Connector
	return fmt.Sprintf("%+v\n%+v\ntiers %+v, pull %d, fails %v, block of %d bytes\n%v", *f.Disaggregation, f.Lifecycle,
		connector.Tiers, connector.PullPercent, connector.FailLost, connector.BlockBytes, *c)
}

// disaggregated draws a fleet with disaggregated prefill and decode for a case, and its lifecycle.
func (d drawer) disaggregated(c *Case) (f sim.Fleet) {
	step := c.step()
	some := func(name string, most int) clock.Duration {
		return step * clock.Duration(d.between(name, 0, 4*most)) / 4
	}
	prefills, decodes := d.between("prefills", 1, 3), d.between("decodes", 1, 3)
	x := &sim.Disaggregation{
		Prefills: prefills, Hop: 1 + some("hop", 3), Latency: clock.Duration(d.one("latency", 0, 0, 1, 9)) * step / 4,
		Layers: int64(d.one("layers", 0, 4)), MinTokens: int32(d.one("min tokens", 0, 0, 20)),
		MaxBacklog: int64(d.one("backlog", 0, 0, 200)),
	}
	if d.once("lease", 2) {
		x.Lease = 1 + some("lease", 40)
	}
	if d.once("no tiers", 2) {
		c.config.Connector.Tiers = nil
	}
	connector := *c.config.Connector
	links := connector.Links
	connector.Handoff, connector.Links = nil, nil
	for i := range prefills + decodes {
		cfg := c.config
		cfg.Connector, cfg.Check = &connector, true
		link := links[d.of("link", len(links))]
		if i < prefills {
			x.Egress, cfg.MaxTokens = append(x.Egress, link), 0
		} else {
			x.Ingress = append(x.Ingress, link)
		}
		f.Replicas = append(f.Replicas, cfg)
	}
	f.Disaggregation, f.Lifecycle = x, d.lifecycle(prefills+decodes, nil, step)
	for i := range f.Lifecycle.Failures {
		// one replica must remain to decode
		if k := &f.Lifecycle.Failures[i]; k.Replica == prefills && k.Kind <= sim.Drain {
			k.For++
		}
	}
	if s := f.Lifecycle.Scalers; s != nil {
		one, other := s[0], s[0]
		one.Last, one.Most, one.Initial = prefills-1, prefills, min(one.Initial, prefills)
		other.First, other.Most, other.Initial = prefills, decodes, min(other.Initial, decodes)
		scaler := *one.Policy.(*randomAutoscaler)
		one.Policy, scaler.most = &randomAutoscaler{step: scaler.step, seed: scaler.seed, most: prefills}, decodes
		other.Policy = &scaler
		f.Lifecycle.Scalers = []sim.Scaler{one, other}
	}
	return f
}

// disaggregatedRecorder is a recording of a disaggregated fleet, with its routers.
type disaggregatedRecorder struct {
	*lifecycleRecorder
	prompts, answers *recordingRouter
}

func newRecordingRouter() *recordingRouter {
	return &recordingRouter{Bound: route.Bind(new(route.RoundRobin)), sent: make(map[int64]clock.Time)}
}

// compare describes how the engines of replicas differ from naive engines that get the same requests.
func (w *disaggregatedRecorder) compare(f *sim.Fleet, src *Requests, config func(int) engine.Config,
	seen map[string]int) string {
	d := naive.NewDisaggregated(*f.Disaggregation)
	tiers := make([][]*naive.Tier, len(f.Replicas))
	for i := range f.Replicas {
		tiers[i] = make([]*naive.Tier, len(f.Replicas[i].Connector.Tiers))
		for _, l := range w.instances[i] {
			w.addInstance(d, f, i, l)
		}
	}
	d.Released = w.unservedHandovers(d.Prefills)
	recorders := make(map[*naive.Instance]*StepRecorder)
	begin := func(p *naive.Instance) {
		lifetime := naive.Lifetime{Crash: clock.Never, Tiers: tiers[p.Replica]}
		if f.Lifecycle != nil {
			lifetime.Slow = slowdowns(f.Lifecycle, p.Replica)
		}
		l := w.instances[p.Replica][slices.Index(d.Instances[p.Replica], p)]
		list := newReplay(l.recording.Arrivals, src)
		list.sent = w.sentTo(p)
		recorders[p] = new(StepRecorder)
		p.Start(config(p.Replica), list.list, list, recorders[p], lifetime)
	}
	if err := d.Run(begin); err != nil {
		return err.Error()
	}
	for i := range d.Instances {
		linkLost := f.Lifecycle != nil && losesLink(f.Lifecycle, i)
		for k, p := range d.Instances[i] {
			l := w.instances[i][k]
			if !p.Begun() {
				return fmt.Sprintf("engine %d of replica %d has not started", k, i)
			}
			recorder := &recorders[p].Recorder
			for k := range recorder.Arrivals {
				if r := &recorder.Arrivals[k].Request; p.Prefills() {
					r.OutputTokens = p.Outputs[r.ID]
				}
			}
			if diff := l.diff(recorder, i, linkLost); diff != "" {
				return fmt.Sprintf("engine %d of replica %d of %d, naive and in the fleet: %s", k, i,
					len(d.Instances), diff)
			}
			if len(l.recording.Iterations) > 0 {
				seen[fmt.Sprintf("engines %d that served", min(k, 2))]++
			}
			seen["cut off"] += p.Cut
		}
	}
	return ""
}

// addInstance adds an engine to the naive fleet, and removes from its recording what the naive engine never saw.
func (w *disaggregatedRecorder) addInstance(d *naive.Disaggregated, f *sim.Fleet, i int, l *instance) {
	ends := l.crash
	if f.Lifecycle != nil && f.Lifecycle.Grace > 0 && l.drain != clock.Never {
		ends = min(ends, l.drain.Add(f.Lifecycle.Grace))
	}
	p := d.AddInstance(i, l.begins, l.drain, ends)
	gone := make(map[int64]bool)
	l.recording.Records = slices.DeleteFunc(l.recording.Records, func(rec event.Record) bool {
		id := rec.Request.ID
		at := w.sentTo(p)[id]
		gone[id] = gone[id] || rec.Outcome == event.Failed && rec.Released == at &&
			(at == l.crash || at < l.ready || unreachable(f.Lifecycle, i, at))
		return gone[id] || p.Prefills() && rec.HandedOver // and ended at the router
	})
	l.recording.Arrivals = slices.DeleteFunc(l.recording.Arrivals, func(a Arrival) bool { return gone[a.Request.ID] })
}

// sentTo is when requests were sent to replicas of the kind of p.
func (w *disaggregatedRecorder) sentTo(p *naive.Instance) map[int64]clock.Time {
	if p.Prefills() {
		return w.prompts.sent
	}
	return w.answers.sent
}

// unreachable reports whether a replica that runs cannot be reached at an instant.
func unreachable(lifecycle *sim.Lifecycle, replica int, at clock.Time) bool {
	return lifecycle != nil && slices.ContainsFunc(lifecycle.Failures, func(f sim.Failure) bool {
		return f.Kind == sim.LinkLoss && f.Replica == replica && f.At <= at && at < f.At.Add(f.For)
	})
}

// unservedHandovers are the requests that were handed over and never reached a decode replica, and when they ended.
func (w *disaggregatedRecorder) unservedHandovers(prefills int) map[int64]clock.Time {
	ends := make(map[int64]clock.Time)
	served := make(map[int64]bool)
	for _, instances := range w.instances[prefills:] {
		for _, l := range instances {
			for _, a := range l.recording.Arrivals {
				served[a.Request.ID] = true
			}
		}
	}
	for i := range w.Records {
		if rec := &w.Records[i]; rec.HandedOver && !served[rec.Request.ID] {
			ends[rec.Request.ID] = rec.Released
		}
	}
	return ends
}
