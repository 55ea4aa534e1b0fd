package simtest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/kv"
	"clifftop/workload"
)

// Case is a random case: an engine and requests for it.
type Case struct {
	policy   Policy
	knobs    *Knobs
	config   sim.Config // without scheduler
	requests []workload.Request
	users    int // of a closed loop; 0 is an open one
	retries  Retries
}

// Config is the engine, with a scheduler of its own.
func (c *Case) Config() sim.Config {
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
	if c.config.Connector != nil {
		fmt.Fprintf(&b, "connector %+v\n", *c.config.Connector)
		for i := range c.requests {
			fmt.Fprintf(&b, "%d: %+v\n", i, c.config.Connector.Leg(&c.requests[i]))
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

// Draw makes a random case of the policy. Pools are often too small for the requests, so that a good part of
// the cases preempt; cases stay small, so that many can be run. Features of the engine that the
// policy refuses are taken back.
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
	if err := c.concede(); err != nil {
		t.Skipf("no engine for it: %v", err)
	}
	return c
}

// concede changes the engine so that the policy accepts it, as little as possible.
func (c *Case) concede() error {
	changes := []func(cfg *sim.Config){
		func(cfg *sim.Config) { cfg.AsyncScheduling = false },
		func(cfg *sim.Config) { cfg.Window = sim.Window{} },
		func(cfg *sim.Config) { cfg.Contiguous = false },
		func(cfg *sim.Config) { cfg.PrefixCaching, cfg.Radix = false, false },
		func(cfg *sim.Config) { cfg.Connector = nil },
		func(cfg *sim.Config) { cfg.Order = nil },
		func(cfg *sim.Config) { cfg.HostBlocks = 0 },
		func(cfg *sim.Config) { cfg.HostBlocks = 1000 },
		func(cfg *sim.Config) { cfg.Speculative = sim.Speculative{} },
		func(cfg *sim.Config) {
			cfg.MaxModelLen = min(cfg.MaxModelLen, c.longest()+1)
			cfg.MaxNumBatchedTokens = max(cfg.MaxNumBatchedTokens, int(cfg.MaxModelLen))
		},
	}
	drawn := c.config
	for range 2 { // a change may be needed only as long as another is made
		for without, needed := range changes {
			changes[without] = func(*sim.Config) {}
			if c.change(drawn, changes) != nil {
				changes[without] = needed
			}
		}
	}
	return c.change(drawn, changes)
}

// longest is the longest sequence, prompt and answer, that is asked for.
func (c *Case) longest() (tokens int32) {
	for i := range c.requests {
		r := &c.requests[i]
		tokens = max(tokens, r.InputTokens+max(r.OutputTokens, c.config.MaxTokens))
	}
	return tokens
}

// change is the drawn engine with some changes, and what the policy has against it.
func (c *Case) change(drawn sim.Config, changes []func(*sim.Config)) error {
	c.config = drawn
	for _, change := range changes {
		change(&c.config)
	}
	cfg := c.Config()
	return cfg.Validate()
}

// drawer draws the parts of a case. The names given to rapid are those of the knobs.
type drawer struct{ t *rapid.T }

func (d drawer) between(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(d.t, name) }

// of is one of n, from 0 on, all alike: rapid's own choices favour small numbers.
func (d drawer) of(name string, n int) (k int) {
	for range 7 {
		k *= 2
		if rapid.Bool().Draw(d.t, name) {
			k++
		}
	}
	return k * n / 128
}

// one is one of the values.
func (d drawer) one(name string, values ...int) int { return values[d.of(name, len(values))] }

// once is true once in n times.
func (d drawer) once(name string, n int) bool { return d.of(name, n) == n-1 }

func (d drawer) config() (c sim.Config) {
	c.BlockSize = int32(d.one("block_size", 1, 2, 4, 16))
	c.MaxNumSeqs = d.one("max_num_seqs", 1, 2, 3, 5, 8, 12, 12)
	c.MaxNumBatchedTokens = c.MaxNumSeqs + d.one("budget", 0, 1, 7, 16, 60, 300)
	c.MaxModelLen = 1000
	if d.once("short model", 4) {
		c.MaxModelLen = int32(d.between("max_model_len", 2, 80))
	}
	c.PrefixCaching = d.once("prefix caching", 2)
	c.AppendUnkeyed = d.once("append unkeyed", 3)
	c.AsyncScheduling = d.once("async", 2)
	if d.once("windowed layers", 5) {
		c.Window = sim.Window{Blocks: d.between("window", 1, 6), Layers: d.between("windowed", 1, 5), FullLayers: d.between("full", 1, 3)}
	}
	if d.once("radix", 2) && c.PrefixCaching {
		c.Radix = true
	}
	if d.once("ordered", 2) {
		c.Order = queueOrder(&Knobs{drawn: &d})
	}
	if d.once("declared", 3) {
		c.MaxTokens = int32(d.between("max_tokens", 1, 80))
	}
	if d.once("swapping", 2) && !c.PrefixCaching {
		c.HostBlocks = d.between("host blocks", 1, 60)
	}
	if d.once("speculative", 3) {
		c.Speculative, c.HostBlocks, c.Radix = d.speculative(), 0, false
		return c
	}
	if d.once("contiguous", 4) && !c.PrefixCaching {
		c.Contiguous, c.Window = true, sim.Window{}
	}
	return c
}

// connector draws where KV lies elsewhere.
func (d drawer) connector(c *sim.Config, step clock.Duration) {
	c.HostBlocks, c.HostFemtosPerBlock, c.Radix, c.Contiguous, c.Speculative = 0, 0, false, false, sim.Speculative{}
	c.PrefixCaching = c.PrefixCaching || d.once("cached", 2)
	p := &sim.Connector{
		BlockBytes: int64(d.one("block bytes", 1, 1000, 1_000_003)), Fetch: sim.Fetch(d.of("fetch", 2)),
		ChunkBlocks: int32(d.one("chunk", 0, 1, 1, 2, 3)), MinTokens: int32(d.one("min tokens", 0, 0, 0, 20)),
	}
	// A block takes from a part of a step to several of them.
	bandwidth := func(name string) int64 {
		perStep := float64(p.BlockBytes) / step.Seconds()
		return int64(min(max(1, perStep*float64(d.one(name, 1, 2, 7, 30, 1000))/4), 1<<50))
	}
	latency := func() clock.Duration { return step * clock.Duration(d.one("latency", 0, 0, 1, 9)) / 4 }
	if c.PrefixCaching && !d.once("no tiers", 4) {
		for range d.between("tiers", 1, 3) {
			p.Tiers = append(p.Tiers, sim.Tier{
				Name: fmt.Sprint("tier ", len(p.Tiers)), Chunks: d.one("chunks", 1, 3, 10, 40, 1000), Eviction: kv.Eviction(d.of("eviction", 2)),
				BytesPerSecond: bandwidth("bandwidth"), Latency: latency(),
				WriteBack: d.once("write back", 2) && (p.ChunkBlocks < 2 || len(p.Tiers) > 0),
			})
		}
	}
	for range d.between("links", 1, 3) {
		p.Links = append(p.Links, bandwidth("link"))
	}
	p.PullPercent = d.one("pull", 0, 0, 5, 40)
	seed, remotes, leases := uint64(d.between("seed", 0, 1000)), d.one("remote", 0, 1, 3), d.one("leases", 0, 0, 1)
	fails, layers := d.one("fails", 0, 0, 4), d.one("layers", 0, 4)
	p.FailLost = d.once("fail lost", 2)
	far := latency()
	p.Leg = func(r *workload.Request) (leg sim.Leg) {
		h := digest{seed}
		h.add(r.ID)
		of := func(n int) int {
			h.add(1)
			return int(h.sum >> 20 % uint64(n))
		}
		if of(4) < remotes {
			leg.Remote = sim.Remote{Tokens: r.InputTokens, Layers: int64(layers), Latency: far, Fails: of(8) < fails}
			if of(3) == 0 {
				leg.Remote.Tokens = int32(1 + of(int(r.InputTokens)))
			}
			for l := range p.Links {
				if l == 0 || of(2) == 0 {
					leg.Remote.Path = append(leg.Remote.Path, int32(l))
				}
			}
		}
		if of(4) < leases {
			leg.Lease = step * clock.Duration(1+of(80)) / 4
		}
		return leg
	}
	c.Connector = p
}

// speculative draws drafts.
func (d drawer) speculative() (p sim.Speculative) {
	p.Tokens = int32(d.between("drafts", 1, 6))
	p.Method = sim.DraftMethod(d.of("method", 4))
	p.Seed = uint64(d.between("seed", 0, 1000))
	for range d.between("places", 1, 4) {
		p.Acceptance = append(p.Acceptance, float64(d.one("acceptance", 0, 3, 7, 9, 10))/10)
	}
	p.Match = float64(d.one("match", 0, 5, 10)) / 10
	return p
}

// limits draws what an engine refuses because it is busy.
func (d drawer) limits(c *Case) {
	if d.once("request limit", 8) {
		c.config.MaxQueuedRequests = d.between("max_num_queued_reqs", 1, 12)
	}
	if d.once("token limit", 8) {
		c.config.MaxQueuedTokens = int64(d.between("max_num_queued_tokens", 1, 300))
	}
}

// timer gives c a step timer, and returns the typical length of a step. Delays are set in its measure.
func (d drawer) timer(c *sim.Config) clock.Duration {
	var step clock.Duration
	switch d.of("timer", 4) {
	case 0: // round times, so that many instants coincide
		step = 10 * clock.Millisecond
		c.Timer = Affine{Base: int64(step) * clock.FemtosPerPico}
	case 1: // of the order of picoseconds, so that the remainder matters; some iterations may take no time
		step = 2
		c.Timer = Affine{Base: int64(d.between("femtos", 0, 2000)), PerSeq: 333, PerContext: int64(d.between("context", 0, 3))}
	case 2:
		step = 10 * clock.Microsecond
		c.Timer = d.affine()
	default:
		step = 12 * clock.Microsecond
		c.Timer = d.bumpy()
	}
	if d.once("front end", 3) {
		c.Frontend = step * clock.Duration(d.between("frontend", 0, 20)) / 4
		c.FrontendPerToken = clock.Duration(d.between("frontend_per_token", 0, 2)) * step / 50
	}
	if d.once("host time", 4) {
		c.CPUStep = step * clock.Duration(d.between("cpu", 0, 8)) / 6
		c.CPUPerSequence = step * clock.Duration(d.between("cpu per sequence", 0, 3)) / 30
	}
	if c.HostBlocks > 0 {
		c.HostFemtosPerBlock = int64(d.between("femtos per block", 0, 1000)) * int64(step)
	}
	if d.once("streaming", 3) {
		c.StreamPerSequence = step / 10
	}
	if d.once("network", 4) {
		c.NetworkIn = step * clock.Duration(d.between("network in", 0, 12)) / 4
		c.NetworkOut = step * clock.Duration(d.between("network out", 0, 12)) / 4
	}
	return step
}

func (d drawer) affine() Affine {
	return Affine{
		Base:       int64(d.between("base", 5_000_000_000, 9_000_000_000)),
		PerSeq:     int64(d.between("per sequence", 0, 100_000_003)),
		PerEmit:    int64(d.between("per token produced", 0, 10_000_019)),
		PerToken:   int64(d.between("per token", 0, 20_000_003)),
		PerPair:    int64(d.between("per pair", 0, 100_003)),
		PerContext: int64(d.between("per context", 0, 1_000_003)),
	}
}

func (d drawer) bumpy() model.StepTimer {
	b := Bumpy{
		Affine:  d.affine(),
		Piece:   int64(d.between("piece", 1, 200)),
		Pieces:  make([]Bump, d.between("pieces", 1, 4)),
		Padding: 1 + d.of("padding", 4),
	}
	for i := range b.Pieces {
		b.Pieces[i] = Bump{
			Base:       int64(d.between("bump", 0, 3_000_000_000)),
			PerContext: int64(d.between("slope", 0, 10_000_007)),
			Single:     d.once("single", 5),
		}
	}
	return b
}

func (d drawer) requests(c *Case, step clock.Duration) []workload.Request {
	w := writer{drawer: d, bs: c.config.BlockSize, session: make([]conversation, d.between("sessions", 1, 3))}
	w.longIn, w.longOut = d.one("longest prompt", 1, 8, 40, 120), d.one("longest answer", 1, 4, 20, 60, 60, 60)
	w.shares = c.config.PrefixCaching && !d.once("nothing shared", 4)
	leave := d.once("clients leave", 3)
	gaps := d.one("gaps", 0, 1, 8, 40) // in steps, at most

	list := make([]workload.Request, d.one("requests", 1, 2, 4, 8, 15, 20, 30))
	at := clock.Time(0)
	for i := range list {
		if gaps > 0 && d.once("gap", 3) {
			at = at.Add(step * clock.Duration(d.between("eighths", 0, 8*gaps)) / 8)
		}
		r := w.request()
		r.ID, r.Arrival = int64(i), at
		if leave && d.once("leaves", 3) {
			r.Client = d.client(step)
		}
		r.Priority, r.Class = int16(d.of("priority", 4)-1), uint16(d.of("class", 3))
		r.User = int32(d.of("user", 3))
		list[i] = r
	}
	return list
}

// client draws how a client waits, for most of the things that it may wait for seldom.
func (d drawer) client(step clock.Duration) *workload.Client {
	limit := func(name string, n int) clock.Duration {
		if !d.once(name, n) {
			return 0
		}
		return max(1, step*clock.Duration(d.between(name, 0, 80))/4)
	}
	c := &workload.Client{FirstTimeout: limit("first timeout", 2), Cancel: limit("cancel", 4), Silent: d.once("silent", 4)}
	if c.Timeout = limit("timeout", 2); *c == (workload.Client{}) {
		c.Timeout = limit("timeout", 1)
	}
	return c
}

// retries draws when clients try again.
func (d drawer) retries(step clock.Duration) Retries {
	return Retries{
		Most: int32(d.between("attempts", 1, 4)), Delay: step * clock.Duration(d.between("delay", 0, 60)) / 4,
		Scatter: d.once("scatter", 2),
	}
}

// loop closes the loop: but for the first ones, requests are sent after an answer.
func (d drawer) loop(c *Case, step clock.Duration) {
	c.users = 1 + d.of("users", len(c.requests))
	for i := c.users; i < len(c.requests); i++ {
		c.requests[i].Arrival = 0
		if !d.once("at once", 3) {
			c.requests[i].Arrival = clock.Time(step) * clock.Time(d.of("thinks", 40)) / 8
		}
	}
}

// writer draws lengths and contents.
type writer struct {
	drawer
	bs              int32
	longIn, longOut int
	shares          bool
	session         []conversation
}

// conversation is what a session has said so far.
type conversation struct {
	turns    int32
	segments []workload.Segment
}

func (w *writer) request() (r workload.Request) {
	r.InputTokens, r.OutputTokens = w.length("prompt", w.longIn), w.length("answer", w.longOut)
	if !w.shares {
		return r
	}
	switch w.of("content", 4) {
	case 0: // unique
	case 1: // of a group with a shared prefix
		w.own(&r, workload.Segment{ID: workload.SegmentID(fmt.Sprint("group ", w.of("group", 2))), Tokens: w.length("shared", w.longIn)})
	case 2: // one of few prompts
		k := w.of("prompt", 3)
		r.InputTokens = max(1, int32(w.longIn-k))
		w.own(&r, workload.Segment{ID: workload.SegmentID("prefix"), Tokens: r.InputTokens/2 + 1},
			workload.Segment{ID: workload.SegmentID(fmt.Sprint("prompt ", k)), Tokens: r.InputTokens})
	default: // a turn of a conversation; it may be sent before the previous answer is complete
		k := w.of("session", len(w.session))
		s := &w.session[k]
		added := w.length("said", w.longIn)
		s.segments = append(s.segments[:len(s.segments):len(s.segments)],
			workload.Segment{ID: workload.SegmentID(fmt.Sprint("session ", k, " turn ", s.turns)), Tokens: added})
		w.own(&r, s.segments...)
		r.InputTokens = int32(r.Content.Tokens())
		r.Session, r.Turn = int32(k)+1, s.turns
		s.segments = append(s.segments[:len(s.segments):len(s.segments)],
			workload.Segment{ID: workload.AnswerID(r.Session, r.Turn), Tokens: r.OutputTokens})
		s.turns++
	}
	return r
}

func (w *writer) own(r *workload.Request, s ...workload.Segment) {
	r.Content = &workload.Content{Segments: s}
}

// length draws a length: often 1, a multiple of the block size, or one beside it.
func (w *writer) length(name string, longest int) int32 {
	n := int32(w.of(name, longest)) + 1
	switch w.of("rounding", 6) {
	case 0:
		n = 1
	case 1:
		n = (n + w.bs - 1) / w.bs * w.bs
	case 2:
		n = (n+w.bs-1)/w.bs*w.bs + 1
	}
	return n
}

// pool draws the number of KV blocks: from just enough for one request to more than enough for all.
func (d drawer) pool(c *Case) {
	largest, sum := 0, 0
	for i := range c.requests {
		r := &c.requests[i]
		declared := min(max(r.OutputTokens, c.config.MaxTokens), max(1, c.config.MaxModelLen-r.InputTokens))
		tokens := most(&c.config, r.InputTokens, declared) + 1
		blocks := int((tokens + c.config.BlockSize - 1) / c.config.BlockSize)
		blocks += c.config.Window.Extra(blocks)
		largest, sum = max(largest, blocks), sum+blocks
	}
	usable := largest
	switch d.of("pool", 7) {
	case 0: // unlimited, which a cache cannot be
		if !c.config.PrefixCaching && !c.config.Contiguous {
			return
		}
		usable = sum
	case 1: // some are rejected
		usable = d.between("usable", (largest+1)/2, largest)
	case 2, 3, 4: // scarce
		usable = d.between("usable", largest, largest+largest/2+1)
	case 5:
		usable = d.between("usable", largest, max(largest, sum))
	default:
		usable = sum
	}
	c.config.NumGPUBlocks = usable + 1
}
