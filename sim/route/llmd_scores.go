package route

import (
	"cmp"
	"math"
	"slices"

	"clifftop/workload"
)

// Score is a scorer of [LLMD].
type Score uint8

// The scorers. Unless noted, those that compare endpoints give 1 to all if they are equal.
const (
	QueueScore     Score = iota // (max − q)/(max − min) of scraped waiting requests
	RunningScore                // the same of running ones
	KVScore                     // 1 − scraped usage of the KV cache
	LoadAwareScore              // ½·(1 − min(q, 128)/128) of scraped waiting requests
	// own outstanding requests n: 1 up to the idle threshold, else (max − n)/max · the highest score of a busy endpoint
	ActiveScore
	TokenScore  // 1 − min(1, own uncached prompt tokens without a first token/4194304)
	PrefixScore // fraction of the prompt's blocks that are assumed to be cached
	// for prompts that are cached nowhere: by the instant of the last such prompt, the oldest first; else ½
	NoHitScore
	SessionScore // 1 for the replica of the session's last request
	numberOfScores
)

var scoreNames = [numberOfScores]string{
	"queue", "running", "kv-usage", "load-aware", "active-requests", "token-load", "prefix", "no-hit-lru", "session",
}

func (s Score) String() string {
	if s < numberOfScores {
		return scoreNames[s]
	}
	return "unknown"
}

// Weighted is a scorer with its weight in the sum, 0 or more.
type Weighted struct {
	By     Score
	Weight float64
}

// Weights are scorers with their weights, in the order in which they are added.
type Weights []Weighted

// Names returns the names of all scorers, in llm-d's order.
func (Weights) Names() []string { return scoreNames[:] }

// Example describes the map that scenarios have.
func (Weights) Example() string { return "scorers to weights such as {queue: 2, prefix: 3}" }

// Clear removes all weights.
func (w *Weights) Clear() { *w = nil }

// Put gives a scorer a weight. The weights are in llm-d's order.
func (w *Weights) Put(name string, weight float64) {
	by := Score(slices.Index(scoreNames[:], name))
	i, found := w.find(by)
	if !found {
		*w = slices.Insert(*w, i, Weighted{By: by})
	}
	(*w)[i].Weight = weight
}

// Get returns the weight of a scorer, if it has one.
func (w *Weights) Get(name string) (weight float64, ok bool) {
	i, ok := w.find(Score(slices.Index(scoreNames[:], name)))
	if !ok {
		return 0, false
	}
	return (*w)[i].Weight, true
}

func (w *Weights) find(by Score) (i int, found bool) {
	return slices.BinarySearchFunc(*w, by, func(x Weighted, by Score) int { return cmp.Compare(x.By, by) })
}

// sum adds the weighted scores of the remaining endpoints.
func (p *LLMD) sum(v View, r *workload.Request) {
	p.sums, p.gauges, p.stale = p.sums[:0], p.gauges[:0], p.stale[:0]
	scraped := p.scores(QueueScore) || p.scores(RunningScore) || p.scores(KVScore) || p.scores(LoadAwareScore)
	now := v.Now()
	for k := range v.Len() {
		p.sums = append(p.sums, 0)
		if scraped {
			m := v.Metrics(k)
			p.gauges = append(p.gauges, m)
			p.stale = append(p.stale, p.StaleAfter > 0 && now.Sub(m.At) > p.StaleAfter)
		}
	}
	for _, s := range p.Scorers {
		if s.Weight > 0 {
			p.score(s, v, r)
		}
	}
}

// score adds one scorer's part.
func (p *LLMD) score(s Weighted, v View, r *workload.Request) {
	add := func(k int32, score float64) { p.sums[k] += float64(s.Weight * score) }
	switch s.By {
	case QueueScore:
		p.spread(s.Weight, func(m *Metrics) int { return m.Waiting })
	case RunningScore:
		p.spread(s.Weight, func(m *Metrics) int { return m.Running })
	case KVScore:
		for _, k := range p.left {
			if !p.stale[k] {
				add(k, 1-p.gauges[k].KVUsage())
			}
		}
	case LoadAwareScore:
		for _, k := range p.left {
			add(k, 0.5*(1-float64(min(p.gauges[k].Waiting, p.QueueLimit))/float64(p.QueueLimit)))
		}
	case ActiveScore:
		p.active(v, s.Weight)
	case TokenScore:
		for _, k := range p.left {
			tokens := p.prefillLoad.of(v.Replica(int(k))) + int64(r.InputTokens-p.had(int(k), r))
			add(k, 1-min(1, float64(tokens)/float64(p.TokenLimit)))
		}
	case PrefixScore:
		for _, k := range p.left {
			add(k, p.matches[k])
		}
	case NoHitScore:
		p.noHit(v, s.Weight)
	case SessionScore:
		if last, ok := p.sessions[r.Session]; ok {
			if k, ok := position(v, int(last)); ok {
				add(int32(k), 1) // has no effect if a filter has dropped it
			}
		}
	}
}

// spread scores a scraped count, from 1 for the least to 0 for the most. Stale ones get 0.
func (p *LLMD) spread(weight float64, count func(m *Metrics) int) {
	p.counts = p.counts[:0]
	low, high := math.MaxInt, math.MinInt
	for _, k := range p.left {
		n := count(&p.gauges[k])
		p.counts = append(p.counts, n)
		if !p.stale[k] {
			low, high = min(low, n), max(high, n)
		}
	}
	for i, k := range p.left {
		switch {
		case p.stale[k]:
		case low == high:
			p.sums[k] += weight
		default:
			p.sums[k] += float64(weight * (float64(high-p.counts[i]) / float64(high-low)))
		}
	}
}

// active scores own outstanding requests.
func (p *LLMD) active(v View, weight float64) {
	most := 0
	p.counts = p.counts[:0]
	for _, k := range p.left {
		n := v.Sent(int(k)).Outstanding
		p.counts = append(p.counts, n)
		most = max(most, n)
	}
	for i, k := range p.left {
		score := 1.0
		if n := p.counts[i]; n > p.IdleThreshold {
			score = float64(most-n) / float64(most) * p.MaxBusyScore
		}
		p.sums[k] += float64(weight * score)
	}
}

// isCold reports whether no endpoint has a part of the current prompt.
func (p *LLMD) isCold() bool {
	if !p.scores(NoHitScore) {
		return false
	}
	for _, part := range p.matches {
		if part > 0 {
			return false
		}
	}
	return true
}

// noHit spreads cold prompts over the endpoints: first those that never had one, then by the instant of their last one.
func (p *LLMD) noHit(v View, weight float64) {
	cold, n := p.isCold(), len(p.left)
	if cold {
		p.cold.rank(v, p.left)
	}
	for _, k := range p.left {
		score := 0.5
		if cold {
			score = 1
			if n > 1 {
				score -= float64(p.cold.ranks[v.Replica(int(k))]) / float64(n-1)
			}
		}
		p.sums[k] += float64(weight * score)
	}
}

// coldOrder is the order in which replicas last got a cold prompt.
type coldOrder struct {
	order []int32 // replicas: first those that never got one by number, then the others from the oldest on
	never int     // number of replicas that never got one
	ranks []int32 // by replica, among the remaining ones; scratch
}

func (c *coldOrder) admit(replica int) {
	for i := len(c.order); i <= replica; i++ {
		c.order = slices.Insert(c.order, c.never, int32(i))
		c.ranks = append(c.ranks, -1)
		c.never++
	}
}

func (c *coldOrder) use(replica int) {
	c.admit(replica)
	i := slices.Index(c.order, int32(replica))
	if i < c.never {
		c.never--
	}
	c.order = append(slices.Delete(c.order, i, i+1), int32(replica))
}

// rank sets the places in the order of the replicas at the positions left, which ascend.
func (c *coldOrder) rank(v View, left []int32) {
	c.admit(v.Replica(int(left[len(left)-1])))
	const asked = -2
	for _, k := range left {
		c.ranks[v.Replica(int(k))] = asked
	}
	rank := int32(0)
	for _, i := range c.order {
		if c.ranks[i] == asked {
			c.ranks[i] = rank
			rank++
		}
	}
}
