package engine

import (
	"fmt"
	"slices"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/network"
)

// Transfers is the network of a simulation, with what its transfers carry and to which engines.
type Transfers struct {
	network.Network
	payloads  []payload       // by transfer
	leaseEnds pq.Queue[int32] // by instant and order
	ending    []leaseEnd
	vacancies []int32
	// of links, by instant and order; refs are links that go down, or minus one less one that is back
	outages pq.Queue[int32]
	serial  int64
	uses    []LinkUse // by link, of those that anything went over
	awaited int       // loads on their way, and leases: the run does not end before them
}

// payload is what a transfer carries to or from a replica: a part of a load or, without one, copies for a tier.
type payload struct {
	engine *Engine
	load   *load
	tier   int32 // none if it comes from another replica
	bytes  int64
}

// leaseEnd is of a lease that ends.
type leaseEnd struct {
	engine *Engine
	lease  *lease
}

// begin starts a transfer at an instant.
func (w *Transfers) begin(at clock.Time, c payload, bytes int64, latency clock.Duration, path ...int32) int32 {
	i := w.Start(at, bytes, latency, path...)
	for int(i) >= len(w.payloads) {
		w.payloads = append(w.payloads, payload{})
	}
	c.bytes = bytes
	w.payloads[i] = c
	w.count(i, func(u *LinkUse) { u.Sent += bytes })
	if c.load != nil {
		w.awaited++
	}
	return i
}

// endLease plans the end of a lease.
func (w *Transfers) endLease(at clock.Time, x leaseEnd) {
	i := int32(len(w.ending))
	if n := len(w.vacancies); n > 0 {
		i, w.vacancies = w.vacancies[n-1], w.vacancies[:n-1]
		w.ending[i] = x
	} else {
		w.ending = append(w.ending, x)
	}
	w.serial++
	w.awaited++
	w.leaseEnds.Push(pq.Item[int32]{Key: int64(at), Tie: w.serial, Value: i})
}

// Next is the instant of the next event, or [clock.Never].
func (w *Transfers) Next() clock.Time {
	at := w.Network.Next()
	if w.leaseEnds.Len() > 0 {
		at = min(at, clock.Time(w.leaseEnds.Top().Key))
	}
	if w.outages.Len() > 0 {
		at = min(at, clock.Time(w.outages.Top().Key))
	}
	return at
}

// Awaited is the number of loads underway and of leases. The run does not end before them.
func (w *Transfers) Awaited() int { return w.awaited }

// BreakLink plans an outage of a link.
func (w *Transfers) BreakLink(l int32, at clock.Time, duration clock.Duration) {
	w.serial += 2
	w.outages.Push(pq.Item[int32]{Key: int64(at), Tie: w.serial - 1, Value: l})
	w.outages.Push(pq.Item[int32]{Key: int64(at.Add(duration)), Tie: w.serial, Value: -1 - l})
}

// Happens handles the event at Next. It returns the engine that it changes, if any.
func (w *Transfers) Happens(at clock.Time) *Engine {
	if w.outages.Len() > 0 && clock.Time(w.outages.Top().Key) == at {
		if l := w.outages.Pop().Value; l >= 0 {
			w.SetBandwidth(at, l, 0)
		} else {
			w.Restore(at, -1-l)
		}
		return nil
	}
	if w.leaseEnds.Len() > 0 && clock.Time(w.leaseEnds.Top().Key) == at {
		i := w.leaseEnds.Pop().Value
		w.awaited--
		x := w.ending[i]
		w.ending[i] = leaseEnd{}
		w.vacancies = append(w.vacancies, i)
		x.engine.connector.expire(at, x.lease)
		return x.engine
	}
	i, done := w.Advance()
	c := w.payloads[i]
	if done {
		if l := c.load; l != nil && l.lost != nil {
			l.fails = l.fails || l.lost()
		}
		w.arrived(i, &c)
	}
	if done && c.load != nil {
		w.awaited--
	}
	c.engine.connector.transferred(at, c, done)
	return c.engine
}

// abandon stops the transfers and forgets the leases of a replica.
func (w *Transfers) abandon(at clock.Time, r *Engine) {
	for i := range int32(w.Transfers()) {
		c := &w.payloads[i]
		if !w.Underway(i) {
			continue
		}
		switch {
		case c.engine == r:
			w.Stop(at, i)
			w.stopped(i, c)
		case c.load != nil && c.load.from == r:
			w.Stop(at, i)
			w.stopped(i, c)
			c.engine.connector.cutOff(at, c.load)
		}
	}
	w.leaseEnds.Retain(func(x *pq.Item[int32]) bool {
		if w.ending[x.Value].engine != r {
			return true
		}
		w.awaited--
		w.ending[x.Value] = leaseEnd{}
		w.vacancies = append(w.vacancies, x.Value)
		return false
	})
}

// stopped counts what transfer i, which was stopped, has brought: of copies, the chunks that are whole.
func (w *Transfers) stopped(i int32, c *payload) {
	came := int64(0)
	if c.load != nil {
		w.awaited--
	} else {
		conn, t := c.engine.connector, &c.engine.connector.tiers[c.tier]
		chunk := int64(conn.chunkBlocks()) * conn.BlockBytes
		whole := (c.bytes - w.Left(i)) / chunk
		came = whole * chunk
		t.flow = none
		if t.Persistent {
			t.tear(t.copied[whole:])
		}
	}
	w.count(i, func(u *LinkUse) {
		u.Received += came
		u.Dropped += c.bytes - came
	})
}

// What links have carried. Bytes are neither lost nor made: whatever was sent over a link is received, dropped or on
// its way.

// LinkUse is what a link has carried up to an instant. Sent is Received, Dropped and Underway together.
type LinkUse struct {
	BytesPerSecond int64
	// Sent is the bytes of all transfers that have begun.
	Sent int64
	// Received is the bytes that were used, and Dropped those that were not: they arrived for a request whose client
	// had left, or whose KV had gone where it was read.
	Received, Dropped int64
	Underway          int64
	// Busy is how long the link had something to carry.
	Busy clock.Duration
}

// count adds what a transfer carries, or has brought, to the links of its path.
func (w *Transfers) count(i int32, add func(u *LinkUse)) {
	for len(w.uses) < w.Links() {
		w.uses = append(w.uses, LinkUse{})
	}
	for _, l := range w.Path(i) {
		add(&w.uses[l])
	}
}

// arrived counts what a transfer has brought.
func (w *Transfers) arrived(i int32, c *payload) {
	lost := c.load != nil && (c.load.seq == none || c.load.fails)
	w.count(i, func(u *LinkUse) {
		if lost {
			u.Dropped += c.bytes
		} else {
			u.Received += c.bytes
		}
	})
}

// extend adds bytes to the copies that a transfer carries.
func (w *Transfers) extend(at clock.Time, i int32, bytes int64) {
	w.Extend(at, i, bytes)
	w.payloads[i].bytes += bytes
	w.count(i, func(u *LinkUse) { u.Sent += bytes })
}

// Use is what each link has carried up to the instant at.
func (w *Transfers) Use(at clock.Time) []LinkUse {
	list := append(slices.Clone(w.uses), make([]LinkUse, w.Links()-len(w.uses))...)
	for l := range list {
		list[l].BytesPerSecond, list[l].Busy = w.Bandwidth(int32(l)), w.Busy(at, int32(l))
	}
	for i := range int32(w.Transfers()) {
		if w.Underway(i) {
			for _, l := range w.Path(i) {
				list[l].Underway += w.payloads[i].bytes
			}
		}
	}
	return list
}

// Check asserts that nothing was lost or made on the way, and that no link carried more than it can.
func (w *Transfers) Check(at clock.Time) error {
	if err := w.Network.Check(at); err != nil {
		return err
	}
	for l, u := range w.Use(at) {
		if u.Sent != u.Received+u.Dropped+u.Underway {
			return fmt.Errorf("sim: broken invariant at %v: link %d was sent %d bytes, of which %d were received and %d dropped, and %d are on their way",
				at, l, u.Sent, u.Received, u.Dropped, u.Underway)
		}
	}
	return nil
}
