package simtest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/workload"
)

// Case is a random case: an engine and requests for it.
type Case struct {
	policy   Policy
	knobs    *Knobs
	config   engine.Config // without scheduler
	requests []workload.Request
	users    int // of a closed loop; 0 is an open one
	retries  Retries
}

// Config is the engine, with a scheduler of its own.
func (c *Case) Config() engine.Config {
	cfg := c.config
	cfg.Scheduler = c.policy.New(c.knobs)
	if cfg.Stages > 1 {
		pipelined(cfg.Scheduler)
	}
	return cfg
}

// Source is the requests, from the first.
func (c *Case) Source() *Requests {
	if c.users > 0 {
		return NewClosedLoop(c.requests, c.users).Retry(c.retries)
	}
	return NewRequests(c.requests).Retry(c.retries)
}

// String lists the engine and the requests.
func (c Case) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %+v\n%+v\n", c.policy.Name, c.policy.New(c.knobs), c.config)
	if c.config.Hybrid != nil {
		fmt.Fprintf(&b, "groups %+v\n", *c.config.Hybrid)
	}
	if c.config.Connector != nil {
		fmt.Fprintf(&b, "connector %+v\n", *c.config.Connector)
		for i := range c.requests {
			fmt.Fprintf(&b, "%d: %+v\n", i, c.config.Connector.Handoff(&c.requests[i]))
		}
	}
	if c.users > 0 {
		fmt.Fprintf(&b, "%d users\n", c.users)
	}
	if c.retries.Most > 0 {
		fmt.Fprintf(&b, "%+v\n", c.retries)
	}
	for i := range c.requests {
		r := &c.requests[i]
		fmt.Fprintf(&b, "%d: at %d in %d out %d", i, r.Arrival, r.InputTokens, r.OutputTokens)
		if r.Client != nil {
			fmt.Fprintf(&b, " client %+v", *r.Client)
		}
		if r.Images.Count != 0 {
			fmt.Fprintf(&b, " images %+v", r.Images)
		}
		if r.Adapter != 0 {
			fmt.Fprintf(&b, " adapter %d", r.Adapter)
		}
		if r.Priority != 0 {
			fmt.Fprintf(&b, " priority %d", r.Priority)
		}
		if r.Session != 0 {
			fmt.Fprintf(&b, " session %d turn %d", r.Session, r.Turn)
		}
		if r.Content != nil {
			fmt.Fprintf(&b, " content %v", r.Content.Segments)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Draw makes a random case of vLLM's scheduler.
func Draw(t *rapid.T) Case { return Policies()[0].Draw(t) }

// Draw makes a random case of the policy. Pools are often too small for the requests, so that many cases preempt. Cases
// are small, so that many can be run. Engine features that the policy rejects are removed.
func (p Policy) Draw(t *rapid.T) Case {
	d := drawer{t}
	c := Case{policy: p, knobs: &Knobs{drawn: &d}, config: d.config()}
	step := d.timer(&c.config)
	if d.once("connector", 3) {
		d.connector(&c.config, step)
	}
	c.requests = d.requests(&c, step)
	if d.once("retries", 2) {
		c.retries = d.retries(step)
	}
	if d.once("closed loop", 4) {
		d.loop(&c, step)
	}
	d.pool(&c)
	d.limits(&c)
	if err := c.relaxConfig(); err != nil {
		t.Skipf("no engine for it: %v", err)
	}
	return c
}

func (c *Case) step() clock.Duration {
	femtos, _, _ := c.config.Timer.Span(&model.Batch{Decodes: 1, Context: 1, Emit: 1})
	return max(1, clock.Duration(femtos/clock.FemtosPerPico))
}

// DrawTiers makes a random case with tiers, and texts that recur.
func (p Policy) DrawTiers(t *rapid.T) Case {
	c := p.Draw(t)
	d := drawer{t}
	c.config.PrefixCaching = true
	d.connector(&c.config, c.step())
	if n := c.config.Connector; len(n.Tiers) == 0 {
		n.Tiers = []engine.Tier{{Name: "alone", Chunks: 100, BytesPerSecond: n.Links[0],
			Persistent: d.once("persistent", 2)}}
	}
	longest := d.one("longest text", 8, 40, 120)
	for i := range c.requests {
		if d.once("a text of its own", 4) {
			continue
		}
		r := &c.requests[i]
		k := d.of("text", 3)
		r.InputTokens = int32(longest - k)
		r.Content = &workload.Content{Segments: []workload.Segment{{ID: workload.SegmentID(fmt.Sprint("text ", k)),
			Tokens: r.InputTokens}}}
	}
	d.pool(&c)
	if err := c.relaxConfig(); err != nil || c.config.Connector == nil {
		t.Skipf("no tiers for it: %v", err)
	}
	return c
}

// relaxConfig changes the engine as little as possible until the policy accepts it.
func (c *Case) relaxConfig() error {
	changes := []func(cfg *engine.Config){
		func(cfg *engine.Config) { cfg.AsyncScheduling = false },
		func(cfg *engine.Config) { cfg.Hybrid = nil },
		func(cfg *engine.Config) { cfg.Groups = nil },
		func(cfg *engine.Config) { cfg.Contiguous = false },
		func(cfg *engine.Config) { cfg.PrefixCaching, cfg.Radix = false, false },
		func(cfg *engine.Config) { cfg.Connector = nil },
		func(cfg *engine.Config) { cfg.Order = nil },
		func(cfg *engine.Config) { cfg.HostBlocks = 0 },
		func(cfg *engine.Config) { cfg.HostBlocks = 1000 },
		func(cfg *engine.Config) { cfg.Speculative = engine.Speculative{} },
		func(cfg *engine.Config) {
			cfg.MaxModelLen = min(cfg.MaxModelLen, c.longest()+1)
			cfg.MaxNumBatchedTokens = max(cfg.MaxNumBatchedTokens, int(cfg.MaxModelLen))
		},
	}
	drawn := c.config
	for range 2 { // one change may make another one unnecessary
		for without, needed := range changes {
			changes[without] = func(*engine.Config) {}
			if c.change(drawn, changes) != nil {
				changes[without] = needed
			}
		}
	}
	return c.change(drawn, changes)
}

// longest is the longest sequence of the case, prompt and output.
func (c *Case) longest() (tokens int32) {
	for i := range c.requests {
		r := &c.requests[i]
		tokens = max(tokens, r.InputTokens+max(r.OutputTokens, c.config.MaxTokens))
	}
	return tokens
}

// change is the drawn engine with some changes, and the policy's error for it.
func (c *Case) change(drawn engine.Config, changes []func(*engine.Config)) error {
	c.config = drawn
	for _, change := range changes {
		change(&c.config)
	}
	cfg := c.Config()
	return cfg.Validate()
}
