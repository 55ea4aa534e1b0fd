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
)

// VerifyDivided runs a policy on random fleets in which some replicas compute prompts for others, and that are there for
// ever or crash, drain, are slow, lose their link and are scaled. It demands that no request is lost, whatever clients do; and
// where clients stay, that every life of every replica is that of the naive engine, with leases and loads that end as
// those of others say, and all transfers on one network.
func VerifyDivided(t testing.TB, p Policy) {
	t.Helper()
	seen := make(map[string]int)
	rapid.Check(t, func(t *rapid.T) {
		d := drawer{t}
		c := p.DrawTiers(t)
		f := d.divided(&c)
		alone := !d.once("clients react", 4)
		if alone { // what a replica does must not change what its clients ask for
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
		if d.once("lives", 4) {
			f.Lifecycle = nil
		} else {
			f.Lifecycle.Renew = config
		}
		for i := range f.Replicas {
			f.Replicas[i] = config(i)
			f.Replicas[i].MaxSpan = rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "max span")
		}
		w := &watched{lifeTape: newLifeTape(n), prompts: newSpy(), answers: newSpy()}
		f.Routers, f.Disaggregation.Decoders = []route.Router{w.prompts}, []route.Router{w.answers}
		src := c.Source()
		e, err := sim.NewFleet(f, src, w)
		if err == nil {
			err = e.Run(context.Background())
		}
		describe := func() string {
			return fmt.Sprintf("%+v\n%+v\ntiers %+v, pull %d, fails %v, block of %d bytes\n%v", *f.Disaggregation, f.Lifecycle, f.Replicas[0].Connector.Tiers,
				f.Replicas[0].Connector.PullPercent, f.Replicas[0].Connector.FailLost, f.Replicas[0].Connector.BlockBytes, c)
		}
		if err != nil {
			t.Fatalf("%v\n%v", err, describe())
		}
		if err := conserved(&w.Tape, src); err != nil {
			t.Fatalf("%v\n%v", err, describe())
		}
		count(seen, &w.Tape)
		for i := range w.Records {
			rec := &w.Records[i]
			if asked := src.list[src.origin[src.sent[rec.Request.ID]]].OutputTokens; rec.Request.OutputTokens != asked {
				t.Fatalf("request %d: asks for %d tokens, and not for %d\n%v", rec.Request.ID, rec.Request.OutputTokens, asked, describe())
			}
			if rec.HandedOver {
				seen["handed over, "+rec.Outcome.String()]++
			}
		}
		if !alone {
			return
		}
		if diff := w.compare(&f, src, config, seen); diff != "" {
			t.Fatalf("%s\n%v", diff, describe())
		}
	})
	t.Log(seen)
}

// divided draws the replicas of a fleet that divide the work of a case, and their lives.
func (d drawer) divided(c *Case) (f sim.Fleet) {
	step := c.step()
	some := func(name string, most int) clock.Duration {
		return step * clock.Duration(d.between(name, 0, 4*most)) / 4
	}
	prefills, decodes := d.between("prefills", 1, 3), d.between("decodes", 1, 3)
	x := &sim.Disaggregation{
		Prefills: prefills, Hop: 1 + some("hop", 3), Latency: clock.Duration(d.one("latency", 0, 0, 1, 9)) * step / 4,
		Layers: int64(d.one("layers", 0, 4)), MinTokens: int32(d.one("min tokens", 0, 0, 20)), MaxBacklog: int64(d.one("backlog", 0, 0, 200)),
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
	f.Disaggregation, f.Lifecycle = x, d.lives(prefills+decodes, nil, step)
	for i := range f.Lifecycle.Failures {
		if k := &f.Lifecycle.Failures[i]; k.Replica == prefills && k.Kind <= sim.Drain { // somebody has to be left to answer
			k.For++
		}
	}
	if s := f.Lifecycle.Scalers; s != nil {
		one, other := s[0], s[0]
		one.Last, one.Most, one.Initial = prefills-1, prefills, min(one.Initial, prefills)
		other.First, other.Most, other.Initial = prefills, decodes, min(other.Initial, decodes)
		mood := *one.Policy.(*moody)
		one.Policy, mood.most = &moody{step: mood.step, seed: mood.seed, most: prefills}, decodes
		other.Policy = &mood
		f.Lifecycle.Scalers = []sim.Scaler{one, other}
	}
	return f
}

// watched is a tape of a fleet that divides work, with its routers.
type watched struct {
	*lifeTape
	prompts, answers *spy
}

func newSpy() *spy {
	return &spy{Bound: route.Bind(new(route.RoundRobin)), sent: make(map[int64]clock.Time)}
}

// compare describes how the lives of replicas differ from those of naive engines that are sent the same.
func (w *watched) compare(f *sim.Fleet, src *Requests, config func(int) engine.Config, seen map[string]int) string {
	d := newDivided(*f.Disaggregation)
	tiers := make([][]*Tier, len(f.Replicas))
	for i := range f.Replicas {
		tiers[i] = make([]*Tier, len(f.Replicas[i].Connector.Tiers))
		for _, l := range w.lives[i] {
			w.story(d, f, i, l)
		}
	}
	d.released = w.unanswered(d.Prefills)
	tapes := make(map[*part]*StepTape)
	begin := func(p *part) {
		life := Life{Crash: clock.Never, Tiers: tiers[p.replica]}
		if f.Lifecycle != nil {
			life.Slow = slowness(f.Lifecycle, p.replica)
		}
		l := w.lives[p.replica][slices.Index(d.lives[p.replica], p)]
		list := newReplay(l.tape.Arrivals, src)
		list.sent = w.sentTo(p)
		tapes[p] = new(StepTape)
		p.start(config(p.replica), list.list, list, tapes[p], life)
	}
	if err := d.run(begin); err != nil {
		return err.Error()
	}
	for i := range d.lives {
		dark := f.Lifecycle != nil && losesLink(f.Lifecycle, i)
		for k, p := range d.lives[i] {
			l := w.lives[i][k]
			if !p.begun() {
				return fmt.Sprintf("life %d of replica %d has not begun", k, i)
			}
			tape := &tapes[p].Tape
			for k := range tape.Arrivals {
				if r := &tape.Arrivals[k].Request; p.prefills() {
					r.OutputTokens = p.answers[r.ID]
				}
			}
			if diff := l.diff(tape, i, dark); diff != "" {
				return fmt.Sprintf("life %d of replica %d of %d, naive and in the fleet: %s", k, i, len(d.lives), diff)
			}
			if len(l.tape.Iterations) > 0 {
				seen[fmt.Sprintf("lives %d that served", min(k, 2))]++
			}
			seen["cut off"] += p.cut
		}
	}
	return ""
}

// story adds a life to the naive fleet, and removes from its tape what its engine never saw.
func (w *watched) story(d *divided, f *sim.Fleet, i int, l *lived) {
	ends := l.crash
	if f.Lifecycle != nil && f.Lifecycle.Grace > 0 && l.drain != clock.Never {
		ends = min(ends, l.drain.Add(f.Lifecycle.Grace))
	}
	p := d.addLife(i, l.begins, l.drain, ends)
	gone := make(map[int64]bool)
	l.tape.Records = slices.DeleteFunc(l.tape.Records, func(rec event.Record) bool {
		id := rec.Request.ID
		at := w.sentTo(p)[id]
		gone[id] = gone[id] || rec.Outcome == event.Failed && rec.Released == at && (at == l.crash || at < l.ready || away(f.Lifecycle, i, at))
		return gone[id] || p.prefills() && rec.HandedOver // and ended at the router
	})
	l.tape.Arrivals = slices.DeleteFunc(l.tape.Arrivals, func(a Arrival) bool { return gone[a.Request.ID] })
}

// sentTo is when requests were sent to replicas of the kind of p.
func (w *watched) sentTo(p *part) map[int64]clock.Time {
	if p.prefills() {
		return w.prompts.sent
	}
	return w.answers.sent
}

// away says that a replica cannot be reached at an instant, though it is there.
func away(lives *sim.Lifecycle, replica int, at clock.Time) bool {
	return lives != nil && slices.ContainsFunc(lives.Failures, func(f sim.Failure) bool {
		return f.Kind == sim.LinkLoss && f.Replica == replica && f.At <= at && at < f.At.Add(f.For)
	})
}

// unanswered are the requests that were handed over and that no replica has for an answer, and when they ended.
func (w *watched) unanswered(prefills int) map[int64]clock.Time {
	ends := make(map[int64]clock.Time)
	served := make(map[int64]bool)
	for _, lives := range w.lives[prefills:] {
		for _, l := range lives {
			for _, a := range l.tape.Arrivals {
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
