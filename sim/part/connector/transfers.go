package connector

import (
	"fmt"
	"slices"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/sim/network"
)

// Transfers is the network of a simulation, with the payload of each transfer and the planned ends of leases.
type Transfers struct {
	net       network.Network
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
	engine  int32 // its number
	replica int
	load    *load
	tier    int   // none if it comes from another engine
	copies  *tier // the tier that copies go to
	chunk   int64 // bytes of one of its chunks
	bytes   int64
}

// leaseEnd is the planned end of a lease of an engine.
type leaseEnd struct {
	engine  int32
	replica int
	lease   int64
}

// Event is an event of the network.
type Event struct {
	Replica int   // the replica that it concerns; -1 for none
	Lease   int64 // the lease that has ended; 0 if it is an event of a transfer
	payload payload
	arrived bool // the transfer has arrived; otherwise it has been sent
}

// begin starts a transfer at the instant at, and returns its number.
func (w *Transfers) begin(at clock.Time, c payload, bytes int64, latency clock.Duration, path ...int32) int32 {
	i := w.net.Start(at, bytes, latency, path...)
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

// AddLink adds a link with a bandwidth in bytes per second, and returns its number.
func (w *Transfers) AddLink(bytesPerSecond int64) int32 { return w.net.AddLink(bytesPerSecond) }

// Next returns the instant of the next event, or [clock.Never].
func (w *Transfers) Next() clock.Time {
	at := w.net.Next()
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

// Happens handles the event at Next, as far as it concerns the network, and returns it.
func (w *Transfers) Happens(at clock.Time) Event {
	if w.outages.Len() > 0 && clock.Time(w.outages.Top().Key) == at {
		if l := w.outages.Pop().Value; l >= 0 {
			w.net.SetBandwidth(at, l, 0)
		} else {
			w.net.Restore(at, -1-l)
		}
		return Event{Replica: none}
	}
	if w.leaseEnds.Len() > 0 && clock.Time(w.leaseEnds.Top().Key) == at {
		i := w.leaseEnds.Pop().Value
		x := w.ending[i]
		w.forget(i)
		return Event{Replica: x.replica, Lease: x.lease}
	}
	i, done := w.net.Advance()
	c := w.payloads[i]
	if done {
		if l := c.load; l != nil && l.lost != nil {
			l.Failed = l.Failed || l.lost()
		}
		w.arrived(i, &c)
	}
	if done && c.load != nil {
		w.awaited--
	}
	return Event{Replica: c.replica, payload: c, arrived: done}
}

// forget removes an end of a lease.
func (w *Transfers) forget(i int32) {
	w.awaited--
	w.ending[i] = leaseEnd{}
	w.vacancies = append(w.vacancies, i)
}

// abandon stops the transfers of an engine and the loads from it, and removes the ends of its leases. It returns the
// replicas whose loads from it have failed.
func (w *Transfers) abandon(at clock.Time, number int32) (failed []int) {
	for i := range int32(w.net.Transfers()) {
		c := &w.payloads[i]
		if !w.net.Underway(i) {
			continue
		}
		switch {
		case c.engine == number:
			w.net.Stop(at, i)
			w.stopped(i, c)
		case c.load != nil && c.load.from == number:
			w.net.Stop(at, i)
			w.stopped(i, c)
			c.load.Failed, c.load.read, c.load.parts = true, nil, 0
			failed = append(failed, c.replica)
		}
	}
	w.leaseEnds.Retain(func(x *pq.Item[int32]) bool {
		if w.ending[x.Value].engine != number {
			return true
		}
		w.forget(x.Value)
		return false
	})
	return failed
}

// stopped counts the bytes of transfer i, which was stopped. Of copies, the complete chunks are received and the other
// bytes dropped. All bytes of a load are dropped.
func (w *Transfers) stopped(i int32, c *payload) {
	came := int64(0)
	if c.load != nil {
		w.awaited--
	} else {
		whole := (c.bytes - w.net.Left(i)) / c.chunk
		came = whole * c.chunk
		if c.copies.flow = none; c.copies.Persistent {
			c.copies.tear(c.copies.copied[whole:])
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
	for len(w.uses) < w.net.Links() {
		w.uses = append(w.uses, LinkUse{})
	}
	for _, l := range w.net.Path(i) {
		add(&w.uses[l])
	}
}

// arrived counts the bytes of transfer i, which has arrived, as received or dropped.
func (w *Transfers) arrived(i int32, c *payload) {
	lost := c.load != nil && (c.load.Seq == none || c.load.Failed)
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
	w.net.Extend(at, i, bytes)
	w.payloads[i].bytes += bytes
	w.count(i, func(u *LinkUse) { u.Sent += bytes })
}

// Use returns the traffic of each link up to the instant at.
func (w *Transfers) Use(at clock.Time) []LinkUse {
	list := append(slices.Clone(w.uses), make([]LinkUse, w.net.Links()-len(w.uses))...)
	for l := range list {
		list[l].BytesPerSecond, list[l].Busy = w.net.Bandwidth(int32(l)), w.net.Busy(at, int32(l))
	}
	for i := range int32(w.net.Transfers()) {
		if w.net.Underway(i) {
			for _, l := range w.net.Path(i) {
				list[l].Underway += w.payloads[i].bytes
			}
		}
	}
	return list
}

// Check returns an error if a link has sent bytes that are neither received, dropped nor underway, or carried more than
// its bandwidth allows.
func (w *Transfers) Check(at clock.Time) error {
	if err := w.net.Check(at); err != nil {
		return err
	}
	for l, u := range w.Use(at) {
		if u.Sent != u.Received+u.Dropped+u.Underway {
			return fmt.Errorf("sim: broken invariant at %v: link %d was sent %d bytes, of which %d were received and "+
				"%d dropped, and %d are on their way",
				at, l, u.Sent, u.Received, u.Dropped, u.Underway)
		}
	}
	return nil
}
