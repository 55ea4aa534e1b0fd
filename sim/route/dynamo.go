package route

import (
	"math"

	"clifftop/sim/clock"
	"clifftop/workload"
)

var dynamoRule = Rule{
	Name:   "dynamo",
	Does:   "the least cost: blocks to prefill and blocks active",
	Source: "NVIDIA Dynamo (KV router)",
	New:    func() Options { return NewDynamo() },
}

// Dynamo is the KV router of NVIDIA Dynamo. The cost of a worker for a request is
//
//	OverlapWeight · (blocks to prefill there, with its own) + (active KV blocks there, with its own)
//
// The cheapest worker is taken, a random one of equals, or one is drawn by the softmax of the negated costs. The router
// counts the work of its own requests: prompts must be prefilled until their first token, and the blocks of prompts are
// active until the output is complete. A block that several requests share counts once. Output does not count. Prefixes
// come from KV events, or from the router's own decisions.
type Dynamo struct {
	ID          Identity
	BlockTokens int32 `json:"block_tokens" range:"[1,1e6]" doc:"granularity of prefixes, in tokens"`
	MaxBlocks   int64 `json:"max_blocks" range:"[0,1e12]" doc:"most blocks remembered in all; 0 is no limit"`

	OverlapWeight float64 `json:"overlap_weight" range:"[0,1e9]" doc:"worth of a block to prefill, in active blocks"`

	// Temperature is that of the softmax over costs, scaled to a range of 1.
	Temperature float64 `json:"temperature" range:"[0,1e9]" doc:"temperature of the softmax; 0 takes the cheapest"`

	Approximate bool           `json:"approximate" doc:"takes prefixes from own decisions instead of KV events"`
	TTL         clock.Duration `json:"ttl" range:"[0,)" doc:"how long an own decision is valid; 0 is no limit"`
	PruneTo     float64        `json:"prune_to" range:"[0,1]" doc:"fraction of max_blocks that pruning leaves"`

	draws       draws
	least       least
	known       prefixes
	prefillLoad prefillLoad
	active      activeBlocks
	costs       []float64 // by position
}

var (
	_ RequestObserver = (*Dynamo)(nil)
	_ Requirer        = (*Dynamo)(nil)
	_ CacheResetter   = (*Dynamo)(nil)
)

// NewDynamo has the defaults of Dynamo's frontend: weight 1, temperature 0, KV events; without these, decisions are
// valid for 120 s, and 2²⁰ blocks are pruned to four fifths.
func NewDynamo() *Dynamo {
	return &Dynamo{OverlapWeight: 1, BlockTokens: 16, TTL: 120 * clock.Second, MaxBlocks: 1 << 20, PruneTo: 0.8}
}

// Make implements [Options].
func (p *Dynamo) Make(id Identity) Router { made := *p; made.ID = id; return &made }

// Requirements implements [Requirer].
func (p *Dynamo) Requirements() Requirements {
	return Requirements{PrefixCaching: p.OverlapWeight > 0, Events: p.OverlapWeight > 0 && !p.Approximate}
}

// Route implements [Router].
func (p *Dynamo) Route(v View, r *workload.Request) int {
	x := &p.known
	x.tokens = p.BlockTokens
	if p.Approximate {
		x.counts, x.ttl = true, p.TTL
	}
	x.match(v.Now(), r, 0)
	p.active.match(x.path)
	p.costs = p.costs[:0]
	for k := range v.Len() {
		p.costs = append(p.costs, p.cost(v, k, r))
	}
	k := p.choose()
	p.charge(v, k, r)
	return k
}

// cached is the number of prompt tokens that the worker at a position is assumed to have.
func (p *Dynamo) cached(v View, k int, r *workload.Request) int32 {
	switch {
	case p.OverlapWeight == 0:
		return 0
	case p.Approximate:
		return p.known.of(v.Replica(k)) * p.BlockTokens
	}
	return v.Cached(k, r)
}

// cost is the cost of the worker at a position, in blocks.
func (p *Dynamo) cost(v View, k int, r *workload.Request) float64 {
	i := v.Replica(k)
	prefill := p.prefillLoad.of(i) + int64(r.InputTokens-p.cached(v, k, r))
	active := p.active.with(i, p.known.blocks())
	return float64(p.OverlapWeight*(float64(prefill)/float64(p.BlockTokens))) + float64(active)
}

// choose takes the cheapest worker, or draws one.
func (p *Dynamo) choose() int {
	p.least.begin()
	high := p.costs[0]
	for k, c := range p.costs {
		p.least.offer(k, c)
		high = max(high, c)
	}
	low := p.least.load
	if p.Temperature == 0 || low == high {
		return p.least.any(&p.draws, &p.ID)
	}
	sum, scale := 0.0, 1/(float64(high-low)*p.Temperature)
	for k, c := range p.costs {
		p.costs[k] = math.Exp(float64((low - c) * scale))
		sum += p.costs[k]
	}
	at := float64(p.draws.uniform(&p.ID) * sum)
	for k, part := range p.costs {
		if at -= part; at < 0 {
			return k
		}
	}
	return len(p.costs) - 1
}

// charge counts r at the worker at a position.
func (p *Dynamo) charge(v View, k int, r *workload.Request) {
	i := v.Replica(k)
	p.prefillLoad.add(i, r, r.InputTokens-p.cached(v, k, r))
	p.active.add(i, r.ID, p.known.path, p.known.unique)
	if p.Approximate {
		p.known.add(v.Now(), i)
		p.prune()
	}
}

// prune forgets the oldest decisions when there are too many blocks.
func (p *Dynamo) prune() {
	if p.MaxBlocks == 0 || p.known.total() <= p.MaxBlocks {
		return
	}
	keep := int64(float64(p.MaxBlocks) * p.PruneTo)
	for total := p.known.total(); total > keep; total = p.known.total() {
		p.known.loseOldest(total - keep)
	}
}

// Began implements [RequestObserver].
func (p *Dynamo) Began(_ View, replica int, r *workload.Request) { p.prefillLoad.done(replica, r) }

// Ended implements [RequestObserver].
func (p *Dynamo) Ended(_ View, replica int, r *workload.Request) {
	p.prefillLoad.done(replica, r)
	p.active.remove(replica, r.ID)
}

// CacheReset implements [CacheResetter].
func (p *Dynamo) CacheReset(replica int) { p.known.removeReplica(replica) }
