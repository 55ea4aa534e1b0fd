package collect

import (
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// offload holds the sums of one time bucket that tell of tiers.
type offload struct {
	tokens, loads int64
	waited        clock.Uint128 // picoseconds
	tiers         []tierSums
}

type tierSums struct {
	stored, storedBytes, loaded, loadedBytes int64
	busy                                     clock.Uint128 // picoseconds, over all replicas
}

// merge adds p to o, which may be nil, and returns the sum.
func (o *offload) merge(p *offload) *offload {
	if p == nil {
		return o
	}
	if o == nil {
		o = &offload{tiers: make([]tierSums, len(p.tiers))}
	}
	o.tokens += p.tokens
	o.loads += p.loads
	o.waited = o.waited.Add(p.waited)
	for i := range p.tiers {
		a, b := &o.tiers[i], &p.tiers[i]
		a.stored += b.stored
		a.storedBytes += b.storedBytes
		a.loaded += b.loaded
		a.loadedBytes += b.loadedBytes
		a.busy = a.busy.Add(b.busy)
	}
	return o
}

// linkOf is a tier of a replica.
type linkOf struct{ replica, tier int }

// tierTraffic measures the tiers that KV is offloaded to, and writes into the buckets of a timeline.
type tierTraffic struct {
	tiers int
	links map[linkOf]clock.Time // since when they are busy
}

// offloadAt is the sums of a bucket.
func (x *tierTraffic) offloadAt(t *timeline, bucket int) *offload {
	d := &t.detail[bucket]
	if d.offload == nil {
		d.offload = &offload{tiers: make([]tierSums, x.tiers)}
	}
	return d.offload
}

// Moved implements [event.MoveObserver].
func (c *Collector) Moved(at clock.Time, m event.Move) {
	if len(c.opts.Tiers) == 0 {
		return
	}
	t := &c.offloadAt(&c.line, c.line.find(at)).tiers[m.Tier]
	if m.Stored {
		t.stored += int64(m.Blocks)
		t.storedBytes += m.Bytes
		return
	}
	t.loaded += int64(m.Blocks)
	t.loadedBytes += m.Bytes
}

// LinkBusy implements [event.MoveObserver].
func (c *Collector) LinkBusy(at clock.Time, replica, tier int, busy bool) {
	if len(c.opts.Tiers) == 0 {
		return
	}
	if c.links == nil {
		c.links = make(map[linkOf]clock.Time)
	}
	l := linkOf{replica, tier}
	if busy {
		c.links[l] = at
		return
	}
	c.linkWasBusy(&c.line, tier, c.links[l], at)
	delete(c.links, l)
}

// linkWasBusy counts the time for which a link was busy in its buckets.
func (x *tierTraffic) linkWasBusy(line *timeline, tier int, from, to clock.Time) {
	for from < to {
		i := line.find(from)
		end := min(line.end(i), to)
		t := &x.offloadAt(line, i).tiers[tier]
		t.busy = t.busy.Add(clock.Uint128{Lo: uint64(end - from)})
		from = end
	}
}

// fillLinks counts the links that are busy up to an instant.
func (x *tierTraffic) fillLinks(line *timeline, end clock.Time) {
	for l, since := range x.links { // sums do not depend on the order
		x.linkWasBusy(line, l.tier, since, end)
		x.links[l] = max(since, end)
	}
}

// loaded counts what was loaded for a request that has had its first token.
func (x *tierTraffic) loaded(line *timeline, rec *event.Record) {
	o := x.offloadAt(line, line.find(max(rec.FirstToken, 1)-1))
	o.tokens += int64(rec.LoadedTokens)
	o.loads++
	o.waited = o.waited.Add(clock.Uint128{Lo: uint64(rec.Loading)})
}

// spared is the number of prompt tokens that did not have to be computed for the first admission of a request: those
// found in the prefix cache or in tiers, and those that a replica outside the run had.
func spared(rec *event.Record) int32 {
	tokens := rec.CachedTokens + rec.LoadedTokens
	if !rec.HandedOver {
		tokens += rec.PulledTokens
	}
	return tokens
}

// offload is the summary's account of the tiers; nil if there are none.
func (c summariser) offload(engineS float64, sum *bucket, o *offload) *report.Offload {
	if len(c.opts.Tiers) == 0 {
		return nil
	}
	if o == nil {
		o = &offload{tiers: make([]tierSums, len(c.opts.Tiers))}
	}
	x := &report.Offload{LoadedInput: o.tokens, HitRate: stats.Ratio(float64(o.tokens), float64(sum.input)),
		LoadMs: stats.Ratio(o.waited.Float64()*1e-9, float64(o.loads))}
	for i, name := range c.opts.Tiers {
		t := &o.tiers[i]
		x.Tiers = append(x.Tiers, report.TierUse{
			Name: name, StoredBlocks: t.stored, StoredBytes: t.storedBytes, LoadedBlocks: t.loaded,
			LoadedBytes:      t.loadedBytes,
			LinkBusyFraction: stats.Ratio(t.busy.Float64()*1e-12, engineS),
		})
	}
	return x
}
