package report

import (
	"fmt"

	"clifftop/report/layout"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// Offload tells what tiers beyond the KV pool brought in the window.
type Offload struct {
	// LoadedInput is the number of prompt tokens that were loaded for first admissions, and HitRate the fraction of prompt
	// tokens that they are. Tokens found in the prefix cache, or computed by another replica, are not among them.
	LoadedInput int64    `json:"loaded_input"`
	HitRate     *float64 `json:"hit_rate"`
	// LoadMs is the mean time that a request whose KV was loaded waited for it.
	LoadMs *float64 `json:"load_ms"`
	// Tiers are in the order of the scenario.
	Tiers []TierUse `json:"tiers"`
}

// TierUse is the traffic of a tier, over all replicas.
type TierUse struct {
	Name         string `json:"name"`
	StoredBlocks int64  `json:"stored_blocks"`
	StoredBytes  int64  `json:"stored_bytes"`
	LoadedBlocks int64  `json:"loaded_blocks"`
	LoadedBytes  int64  `json:"loaded_bytes"`
	// LinkBusyFraction is the part of the window in which the link of a replica's tier had something to carry, on average, of the
	// time that was paid for.
	LinkBusyFraction *float64 `json:"link_busy_fraction"`
}

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

// offloadAt is the sums of a bucket.
func (c *Collector) offloadAt(bucket int) *offload {
	d := &c.line.detail[bucket]
	if d.offload == nil {
		d.offload = &offload{tiers: make([]tierSums, len(c.opts.Tiers))}
	}
	return d.offload
}

// Moved implements [event.MoveObserver].
func (c *Collector) Moved(at clock.Time, m event.Move) {
	if len(c.opts.Tiers) == 0 {
		return
	}
	t := &c.offloadAt(c.line.find(at)).tiers[m.Tier]
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
	c.linkWasBusy(tier, c.links[l], at)
	delete(c.links, l)
}

// linkWasBusy counts the time for which a link was busy in its buckets.
func (c *Collector) linkWasBusy(tier int, from, to clock.Time) {
	for from < to {
		i := c.line.find(from)
		end := min(c.line.end(i), to)
		t := &c.offloadAt(i).tiers[tier]
		t.busy = t.busy.Add(clock.Uint128{Lo: uint64(end - from)})
		from = end
	}
}

// fillLinks counts the links that are busy up to an instant.
func (c *Collector) fillLinks(end clock.Time) {
	for l, since := range c.links { // sums do not depend on the order
		c.linkWasBusy(l.tier, since, end)
		c.links[l] = max(since, end)
	}
}

// loaded counts what was loaded for a request that has had its first token.
func (c *Collector) loaded(rec *event.Record) {
	o := c.offloadAt(c.line.find(max(rec.FirstToken, 1) - 1))
	o.tokens += int64(rec.LoadedTokens)
	o.loads++
	o.waited = o.waited.Add(clock.Uint128{Lo: uint64(rec.Loading)})
}

// spared is the number of prompt tokens that nobody in the run had to compute for the first admission of a request: those
// found in the prefix cache or in tiers, and those that a replica outside the run had.
func spared(rec *event.Record) int32 {
	tokens := rec.CachedTokens + rec.LoadedTokens
	if !rec.HandedOver {
		tokens += rec.PulledTokens
	}
	return tokens
}

// offload is the summary's account of the tiers; nil if there are none.
func (c *Collector) offload(engineS float64, sum *bucket, o *offload) *Offload {
	if len(c.opts.Tiers) == 0 {
		return nil
	}
	if o == nil {
		o = &offload{tiers: make([]tierSums, len(c.opts.Tiers))}
	}
	x := &Offload{LoadedInput: o.tokens, HitRate: stats.Ratio(float64(o.tokens), float64(sum.input)), LoadMs: stats.Ratio(o.waited.Float64()*1e-9, float64(o.loads))}
	for i, name := range c.opts.Tiers {
		t := &o.tiers[i]
		x.Tiers = append(x.Tiers, TierUse{
			Name: name, StoredBlocks: t.stored, StoredBytes: t.storedBytes, LoadedBlocks: t.loaded, LoadedBytes: t.loadedBytes,
			LinkBusyFraction: stats.Ratio(t.busy.Float64()*1e-12, engineS),
		})
	}
	return x
}

// Text tells of the tiers in a line.
func offloadText(o *Offload) string {
	percent := func(x *float64) string {
		if x == nil {
			return "–"
		}
		return layout.Percent(*x)
	}
	text := fmt.Sprintf("%s of prompt tokens loaded, in %s ms on average", percent(o.HitRate), layout.Cell(o.LoadMs))
	for _, t := range o.Tiers {
		text += fmt.Sprintf("; %s: %.3g GB in, %.3g GB out, link busy %s", t.Name, float64(t.StoredBytes)/1e9, float64(t.LoadedBytes)/1e9, percent(t.LinkBusyFraction))
	}
	return text
}
