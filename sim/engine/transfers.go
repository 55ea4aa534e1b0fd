package engine

import (
	"fmt"
	"slices"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/network"
)

// Transfers is the network of a simulation, with the engine and the payload of each transfer.
type Transfers struct {
	network.Network
	payloads  []payload       // by transfer
	leaseEnds pq.Queue[int32] // indices of ending, by instant and order
	ending    []leaseEnd
	vacancies []int32
	// outages is the starts and ends of link outages, by instant and order: l ≥ 0 for link l that goes down, -1-l for
	// link l that is restored.
	outages pq.Queue[int32]
	serial  int64
	uses    []LinkUse // by link; may be shorter than the list of links
	awaited int       // transfers of loads, and leases: the run does not end before them
	gone    []bool    // by number of an engine, from 1 on: whether another engine has taken its place
}

// payload is what a transfer carries to or from an engine: a part of a load or, if load is nil, copies to a tier.
type payload struct {
	engine *Engine
	load   *load
	tier   int32 // none if it comes from another replica
	bytes  int64
}

// leaseEnd is the planned end of a lease.
type leaseEnd struct {
	engine *Engine
	lease  *lease
}

// begin starts a transfer at the instant at, and returns its number.
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

// endLease plans the end of a lease at the instant at.
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

// Next returns the instant of the next event, or [clock.Never].
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

// Awaited returns the number of transfers of loads in progress, and of leases. The run does not end before them.
func (w *Transfers) Awaited() int { return w.awaited }

// BreakLink plans an outage of link l from the instant at.
func (w *Transfers) BreakLink(l int32, at clock.Time, duration clock.Duration) {
	w.serial += 2
	w.outages.Push(pq.Item[int32]{Key: int64(at), Tie: w.serial - 1, Value: l})
	w.outages.Push(pq.Item[int32]{Key: int64(at.Add(duration)), Tie: w.serial, Value: -1 - l})
}

// Happens handles the event at Next. It returns the engine that the event changes, or nil.
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

// abandon stops the transfers of engine r and the loads from it, and removes the ends of its leases.
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
		case c.load != nil && c.load.from == r.number:
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

// stopped counts the bytes of transfer i, which was stopped. Of copies, the complete chunks are received and the other
// bytes dropped. All bytes of a load are dropped.
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

// Link statistics. Invariant: all bytes that were sent over a link are received, dropped or underway.

// LinkUse is the traffic of a link up to an instant, in bytes. Sent is the sum of Received, Dropped and Underway.
type LinkUse struct {
	BytesPerSecond int64
	// Sent is the bytes of all transfers that have begun.
	Sent int64
	// Received is the bytes that were used. Dropped is those that were not: the client of the request had left, the KV
	// was lost where it was read, or the transfer was stopped.
	Received, Dropped int64
	Underway          int64
	// Busy is the time during which the link had something to carry.
	Busy clock.Duration
}

// count applies add to each link on the path of transfer i.
func (w *Transfers) count(i int32, add func(u *LinkUse)) {
	for len(w.uses) < w.Links() {
		w.uses = append(w.uses, LinkUse{})
	}
	for _, l := range w.Path(i) {
		add(&w.uses[l])
	}
}

// arrived counts the bytes of transfer i, which has arrived, as received or dropped.
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

// extend adds bytes to transfer i, which carries copies.
func (w *Transfers) extend(at clock.Time, i int32, bytes int64) {
	w.Extend(at, i, bytes)
	w.payloads[i].bytes += bytes
	w.count(i, func(u *LinkUse) { u.Sent += bytes })
}

// Use returns the traffic of each link up to the instant at.
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

// Check returns an error if a link has sent bytes that are neither received, dropped nor underway, or carried more than
// its bandwidth allows.
func (w *Transfers) Check(at clock.Time) error {
	if err := w.Network.Check(at); err != nil {
		return err
	}
	for l, u := range w.Use(at) {
		if u.Sent != u.Received+u.Dropped+u.Underway {
			return fmt.Errorf("sim: broken invariant at %v: link %d was sent %d bytes, of which %d were received and %d "+
				"dropped, and %d are on their way",
				at, l, u.Sent, u.Received, u.Dropped, u.Underway)
		}
	}
	return nil
}
