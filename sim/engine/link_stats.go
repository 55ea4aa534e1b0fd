package engine

import (
	"fmt"
	"slices"

	"clifftop/sim/clock"
)

// What links have carried. Bytes are neither lost nor made: whatever was sent over a link is received, dropped or on its way.

// LinkUse is what a link has carried up to an instant. Sent is Received, Dropped and Underway together.
type LinkUse struct {
	BytesPerSecond int64
	// Sent is the bytes of all transfers that have begun.
	Sent int64
	// Received is those that have come to somebody, and Dropped those that have come to nobody: to a request whose client had
	// left, or whose KV had gone where it was read.
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
