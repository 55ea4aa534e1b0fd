package sim

import "clifftop/sim/clock"

// wires is the network of an engine, and for whom its transfers are.
type wires struct {
	Network
	cargoes   []cargo // by transfer
	reminders heap    // by instant and order
	reminded  []reminder
	vacancies []int32
	outages   heap // of links, by instant and order; refs are links that go down, or minus one less one that is back
	serial    int64
	uses      []LinkUse // by link, of those that anything went over
	awaited   int       // loads on their way, and leases: the run does not end before them
}

// cargo is what a transfer carries to or from a replica: a part of a load or, without one, copies for a tier.
type cargo struct {
	replica *Engine
	load    *load
	tier    int32 // none if it comes from another replica
	bytes   int64
}

// reminder is of a lease that ends.
type reminder struct {
	replica *Engine
	lease   *lease
}

// begin starts a transfer at an instant.
func (w *wires) begin(at clock.Time, c cargo, bytes int64, latency clock.Duration, path ...int32) int32 {
	i := w.Start(at, bytes, latency, path...)
	for int(i) >= len(w.cargoes) {
		w.cargoes = append(w.cargoes, cargo{})
	}
	c.bytes = bytes
	w.cargoes[i] = c
	w.count(i, func(u *LinkUse) { u.Sent += bytes })
	if c.load != nil {
		w.awaited++
	}
	return i
}

// remind plans the end of a lease.
func (w *wires) remind(at clock.Time, x reminder) {
	i := int32(len(w.reminded))
	if n := len(w.vacancies); n > 0 {
		i, w.vacancies = w.vacancies[n-1], w.vacancies[:n-1]
		w.reminded[i] = x
	} else {
		w.reminded = append(w.reminded, x)
	}
	w.serial++
	w.awaited++
	w.reminders.push(entry{int64(at), w.serial, i})
}

// next is the instant of the next event, or Never.
func (w *wires) next() clock.Time {
	at := clock.Never
	if len(w.ends) > 0 {
		at = w.Network.Next()
	}
	if len(w.reminders) > 0 {
		at = min(at, clock.Time(w.reminders[0].key))
	}
	if len(w.outages) > 0 {
		at = min(at, clock.Time(w.outages[0].key))
	}
	return at
}

// breakOff plans an outage of a link.
func (w *wires) breakOff(l int32, o *Outage) {
	w.serial += 2
	w.outages.push(entry{int64(o.At), w.serial - 1, l})
	w.outages.push(entry{int64(o.At.Add(o.For)), w.serial, -1 - l})
}

// happens handles the event at next. It returns the replica that it changes, if any.
func (w *wires) happens(at clock.Time) *Engine {
	if len(w.outages) > 0 && clock.Time(w.outages[0].key) == at {
		if l := w.outages.pop().ref; l >= 0 {
			w.SetBandwidth(at, l, 0)
		} else {
			w.SetBandwidth(at, -1-l, w.links[-1-l].widest)
		}
		return nil
	}
	if len(w.reminders) > 0 && clock.Time(w.reminders[0].key) == at {
		i := w.reminders.pop().ref
		w.awaited--
		x := w.reminded[i]
		w.reminded[i] = reminder{}
		w.vacancies = append(w.vacancies, i)
		x.replica.expire(at, x.lease)
		return x.replica
	}
	i, done := w.Advance()
	c := w.cargoes[i]
	if done {
		if l := c.load; l != nil && l.gone != nil {
			l.fails = l.fails || l.gone()
		}
		w.arrived(i, &c)
	}
	if done && c.load != nil {
		w.awaited--
	}
	c.replica.transferred(at, c, done)
	return c.replica
}

// transferred notes that a transfer has been sent or, if it is done, has come.
func (r *Engine) transferred(at clock.Time, c cargo, done bool) {
	if c.tier != none {
		if c.load == nil {
			t := &r.conn.tiers[c.tier]
			t.flow, t.copied = none, t.copied[:0]
		}
		r.conn.tellBusy(r, at, int(c.tier))
	}
	if !done || c.load == nil {
		return
	}
	if c.load.parts--; c.load.parts > 0 {
		return
	}
	r.conn.due = true
	r.cut(at)
	if read := c.load.read; read != nil {
		read(at)
	}
}
