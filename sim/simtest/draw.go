package simtest

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/kv"
	"clifftop/sim/simtest/naive"
	"clifftop/workload"
)

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

func (d drawer) one(name string, values ...int) int { return values[d.of(name, len(values))] }

// once is true once in n times.
func (d drawer) once(name string, n int) bool { return d.of(name, n) == n-1 }

func (d drawer) config() (c engine.Config) {
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
		window := (d.between("window", 2, 6) - 1) * int(c.BlockSize)
		c.Groups = model.KVGroups{
			{Kind: model.FullAttention, Layers: d.between("full", 1, 3), TokenBytes: 1},
			{Kind: model.SlidingWindow, Layers: d.between("windowed", 1, 5), TokenBytes: 1, Window: window},
		}
		if d.once("recurrent layers", 3) {
			c.Groups[1] = model.KVGroup{Kind: model.RecurrentState, Layers: d.between("recurrent", 1, 5),
				StateBytes: int64(d.between("state", 1, 40))}
		}
	}
	if d.once("hybrid", 4) {
		c.Hybrid = d.hybrid(&c)
	}
	if d.once("radix", 2) && c.PrefixCaching {
		c.Radix, c.RadixEviction = true, kv.LeafOrder(d.of("leaves", len(kv.LeafOrders())))
	}
	if d.once("ordered", 2) {
		c.Order = queueOrder(&Knobs{drawn: &d})
	}
	if d.once("receives late", 5) {
		c.RecvInterval = d.between("recv_interval", 2, 9)
	}
	if d.once("declared", 3) {
		c.MaxTokens = int32(d.between("max_tokens", 1, 80))
	}
	if d.once("swapping", 2) && !c.PrefixCaching {
		c.HostBlocks = d.between("host blocks", 1, 60)
	}
	if d.once("speculative", 3) {
		c.Speculative, c.HostBlocks, c.Radix = d.speculative(), 0, false
		c.Hybrid = withDrafts(&c)
		return c
	}
	if d.once("contiguous", 4) && !c.PrefixCaching {
		c.Contiguous, c.Groups = true, nil
	}
	return c
}

// hybrid draws KV cache groups.
func (d drawer) hybrid(c *engine.Config) *engine.Hybrid {
	size, even := int(c.BlockSize), true
	h := new(engine.Hybrid)
	for range d.between("groups", 1, 3) {
		g := model.CacheGroup{Layers: 1, BlockSize: size}
		switch d.of("kind", 5) {
		case 0, 1:
			g.Kind = model.SlidingWindow
			g.Window = d.between("window", 2, 5*size+2)
			if d.once("large blocks", 4) {
				g.BlockSize, even = size*d.one("times", 2, 2, 4), false
			}
		case 2:
			g.Kind = model.ChunkedLocalAttention
			g.Window = size * d.between("chunk", 1, 5)
		case 4:
			if d.once("large blocks of all tokens", 4) {
				g.BlockSize, even = size*d.one("times", 2, 8), false
			}
		case 3:
			g.Kind = model.RecurrentState
			if c.PrefixCaching {
				g.Mode = []model.RecurrentMode{model.AlignedState, model.AllStates}[d.of("mode", 2)]
			}
		}
		for range d.between("alike", 1, 2) {
			h.Groups = append(h.Groups, g)
		}
	}
	if !even && c.PrefixCaching { // not with groups whose hits end at each block
		h.Groups = slices.DeleteFunc(h.Groups, func(g model.CacheGroup) bool {
			return g.Kind == model.ChunkedLocalAttention || g.Aligned()
		})
	}
	if !c.PrefixCaching {
		h.SetRecurrentMode(model.LastState, int(c.MaxModelLen))
		return h
	}
	h.Retention = d.one("retention", 0, 0, engine.DenseRetention, h.ScheduledBlock(), 3*h.ScheduledBlock())
	return h
}

// withDrafts returns the groups of c that go with its drafts, or nil.
func withDrafts(c *engine.Config) *engine.Hybrid {
	h := c.Hybrid
	if h == nil {
		return nil
	}
	h.Groups = slices.DeleteFunc(h.Groups, func(g model.CacheGroup) bool {
		return g.Kind == model.RecurrentState ||
			g.Kind == model.ChunkedLocalAttention && c.PrefixCaching && c.Speculative.DropsBlock()
	})
	if len(h.Groups) == 0 {
		return nil
	}
	return h
}

// connector draws a KV connector.
func (d drawer) connector(c *engine.Config, step clock.Duration) {
	c.HostBlocks, c.HostFemtosPerBlock, c.Radix, c.Contiguous, c.Speculative = 0, 0, false, false, engine.Speculative{}
	c.Hybrid = nil
	c.PrefixCaching = c.PrefixCaching || d.once("cached", 2)
	p := &engine.Connector{
		BlockBytes: int64(d.one("block bytes", 1, 1000, 1_000_003)), Fetch: engine.Fetch(d.of("fetch", 2)),
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
			p.Tiers = append(p.Tiers, engine.Tier{
				Name: fmt.Sprint("tier ", len(p.Tiers)), Chunks: d.one("chunks", 1, 3, 10, 40, 1000),
				Eviction:       kv.Eviction(d.of("eviction", len(kv.Evictions()))),
				BytesPerSecond: bandwidth("bandwidth"), Latency: latency(),
				WriteBack:  d.once("write back", 2) && (p.ChunkBlocks < 2 || len(p.Tiers) > 0),
				Persistent: d.once("persistent", 2),
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
	p.Handoff = func(r *workload.Request) (leg engine.Handoff) {
		h := hasher{seed}
		h.add(r.ID)
		of := func(n int) int {
			h.add(1)
			return int(h.sum >> 20 % uint64(n))
		}
		if of(4) < remotes {
			leg.Remote = engine.Remote{Tokens: r.InputTokens, Layers: int64(layers), Latency: far, Fails: of(8) < fails}
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
func (d drawer) speculative() (p engine.Speculative) {
	p.Tokens = int32(d.between("drafts", 1, 6))
	p.Method = engine.DraftMethod(d.of("method", 4))
	p.Seed = uint64(d.between("seed", 0, 1000))
	p.LookaheadAtAdmission = !d.once("late lookahead", 4)
	if d.once("draft slots", 4) {
		p.Slots = int32(d.between("slots", 1, 3))
	}
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
func (d drawer) timer(c *engine.Config) clock.Duration {
	var step clock.Duration
	switch d.of("timer", 4) {
	case 0: // round times, so that many instants coincide
		step = 10 * clock.Millisecond
		c.Timer = Affine{Base: int64(step) * clock.FemtosPerPico}
	case 1: // of the order of picoseconds, so that the remainder matters; some iterations may take no time
		step = 2
		c.Timer = Affine{Base: int64(d.between("femtos", 0, 2000)), PerSeq: 333,
			PerContext: int64(d.between("context", 0, 3)), PerSpread: int64(d.between("spread", 0, 5)),
			PerImage: int64(d.between("image", 0, 7))}
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
	if d.once("streaming", 2) { // up to several times longer than a step
		c.StreamPerSequence = max(1, step*clock.Duration(d.between("stream", 1, 30))/20)
		if d.once("short streams", 2) {
			c.StreamPerSequence = max(1, c.StreamPerSequence/10)
		}
		if d.once("stream interval", 5) {
			c.StreamInterval = d.between("stream_interval", 2, 9)
		}
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
		PerSpread:  int64(d.between("per spread", 0, 10_000_019)),
		PerImage:   int64(d.between("per image", 0, 10_000_019)),
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

// beyond is the number of blocks that a sequence may need beyond vLLM's count, without which it could wait for itself
// for ever: slots ahead for drafts and, with asynchronous scheduling, recurrent states at the ends of chunks.
func (d drawer) beyond(c *engine.Config, tokens int) (blocks int) {
	if c.Hybrid == nil {
		return 0
	}
	for _, g := range c.Hybrid.Groups {
		if c.Speculative.On() {
			blocks += (int(c.Speculative.Lookahead()) + g.BlockSize - 1) / g.BlockSize
		}
		if g.Aligned() && c.AsyncScheduling {
			blocks += (tokens + g.BlockSize - 1) / g.BlockSize
		}
	}
	return blocks
}

// pool draws the number of KV blocks: from just enough for one request to more than enough for all.
func (d drawer) pool(c *Case) {
	largest, sum := 0, 0
	for i := range c.requests {
		r := &c.requests[i]
		declared := min(max(r.OutputTokens, c.config.MaxTokens), max(1, c.config.MaxModelLen-r.InputTokens))
		tokens := naive.MostTokens(&c.config, r.InputTokens, declared) + 1
		blocks := c.config.PagesFor(tokens) + d.beyond(&c.config, int(tokens))
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
		if d.beyond(&c.config, 1) > 0 {
			usable = largest
		}
	case 2, 3, 4: // scarce
		usable = d.between("usable", largest, largest+largest/2+1)
	case 5:
		usable = d.between("usable", largest, max(largest, sum))
	default:
		usable = sum
	}
	c.config.NumGPUBlocks = usable + 1
}
