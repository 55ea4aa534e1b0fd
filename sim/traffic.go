package sim

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

// Links tells what the links have carried so far: by replica those of its connector, Links and then Tiers, and after all
// those of a [Disaggregation], by replica.
func (e *Simulation) Links() []LinkUse { return e.wires.use(e.now) }

// count adds what a transfer carries, or has brought, to the links of its path.
func (w *wires) count(i int32, add func(u *LinkUse)) {
	for len(w.uses) < len(w.links) {
		w.uses = append(w.uses, LinkUse{})
	}
	for _, l := range w.transfers[i].path {
		add(&w.uses[l])
	}
}

// arrived counts what a transfer has brought.
func (w *wires) arrived(i int32, c *cargo) {
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
func (w *wires) extend(at clock.Time, i int32, bytes int64) {
	w.Extend(at, i, bytes)
	w.cargoes[i].bytes += bytes
	w.count(i, func(u *LinkUse) { u.Sent += bytes })
}

func (w *wires) use(at clock.Time) []LinkUse {
	list := append(slices.Clone(w.uses), make([]LinkUse, len(w.links)-len(w.uses))...)
	for l := range list {
		list[l].BytesPerSecond, list[l].Busy = w.links[l].widest, w.Busy(at, int32(l))
	}
	for i := range w.transfers {
		if t := &w.transfers[i]; t.serial != 0 {
			for _, l := range t.path {
				list[l].Underway += w.cargoes[i].bytes
			}
		}
	}
	return list
}

// check asserts that nothing was lost or made on the way, and that no link carried more than it can.
func (w *wires) check(at clock.Time) error {
	if err := w.Network.check(at); err != nil {
		return err
	}
	for l, u := range w.use(at) {
		if u.Sent != u.Received+u.Dropped+u.Underway {
			return fmt.Errorf("sim: broken invariant at %v: link %d was sent %d bytes, of which %d were received and %d dropped, and %d are on their way",
				at, l, u.Sent, u.Received, u.Dropped, u.Underway)
		}
	}
	return nil
}

// check asserts that every link has carried, at its rates, what its transfers were to send but for what is left of them, and
// no more than it could while it was busy, but for a byte per second of each transfer, which has at least that.
func (n *Network) check(at clock.Time) error {
	left := make([]clock.Uint128, len(n.links))
	for i := range n.transfers {
		if t := &n.transfers[i]; t.serial != 0 && !t.landing {
			for _, l := range t.path {
				left[l] = left[l].Add(t.left)
			}
		}
	}
	for l := range n.links {
		k := &n.links[l]
		if all := k.carried.Add(left[l]).Add(k.spared); all.Cmp(k.begun) != 0 {
			return fmt.Errorf("sim: broken invariant at %v: of %.0f bytes, link %d has carried %.0f, %.0f are left and %.0f were stopped", at,
				k.begun.Float64()*1e-12, l, k.carried.Float64()*1e-12, left[l].Float64()*1e-12, k.spared.Float64()*1e-12)
		}
		most := clock.Mul64(uint64(k.widest+int64(k.most)), uint64(n.Busy(at, int32(l))))
		if k.carried.Cmp(most) > 0 {
			return fmt.Errorf("sim: broken invariant at %v: link %d of %d bytes per second has carried %.0f in %v", at, l, k.widest,
				k.carried.Float64()*1e-12, n.Busy(at, int32(l)))
		}
	}
	return nil
}
