package naive

import (
	"math/big"
	"slices"

	"clifftop/sim/clock"
)

// Network is links and transfers over them, plainly: every rate is worked out anew at every event. See [sim.Network].
//
// Rates are found by filling: all transfers grow alike until some link is full; those on it stay as they are, and the
// others grow on. A rate is a whole number of bytes per second, the share of the fullest link rounded down, but at
// least 1, unless a link on the way has no bandwidth.
type Network struct {
	Bandwidth []int64 // of the links, in bytes per second; it may change between calls
	now       clock.Time
	under     []*Transfer // in order of their start
}

// Transfer is a transfer in flight.
type Transfer struct {
	Path    []int32
	Latency clock.Duration
	left    *big.Int // bytes times picoseconds per second
	rate    int64
	sent    clock.Time // when the last byte left; Never if it has not
}

// Start begins a transfer at an instant up to which the network has come.
func (n *Network) Start(bytes int64, latency clock.Duration, path ...int32) *Transfer {
	t := &Transfer{Path: path, Latency: latency, left: new(big.Int), sent: clock.Never}
	n.under = append(n.under, t)
	n.Extend(t, bytes)
	return t
}

// Extend adds bytes to a transfer.
func (n *Network) Extend(t *Transfer, bytes int64) {
	t.left.Add(t.left, new(big.Int).Mul(big.NewInt(bytes), big.NewInt(int64(clock.Second))))
}

// Sending reports whether a transfer has bytes left to send.
func (t *Transfer) Sending() bool { return t.sent == clock.Never }

// bytesLeft is the number of bytes that have not been sent, a part of one as a whole.
func (t *Transfer) bytesLeft() int64 {
	bytes, part := new(big.Int).QuoRem(t.left, big.NewInt(int64(clock.Second)), new(big.Int))
	return bytes.Int64() + int64(part.Sign())
}

// Stop ends a transfer.
func (n *Network) Stop(t *Transfer) {
	n.under = slices.DeleteFunc(n.under, func(u *Transfer) bool { return u == t })
}

// fill finds the rates.
func (n *Network) fill() {
	left := slices.Clone(n.Bandwidth)
	var open []*Transfer
	for _, t := range n.under {
		if t.Sending() {
			open = append(open, t)
		}
	}
	for len(open) > 0 {
		fullest, least := int32(-1), int64(0)
		for l := range left {
			count := int64(0)
			for _, t := range open {
				if slices.Contains(t.Path, int32(l)) {
					count++
				}
			}
			if count > 0 && (fullest < 0 || left[l]/count < least) {
				fullest, least = int32(l), left[l]/count
			}
		}
		open = slices.DeleteFunc(open, func(t *Transfer) bool {
			if !slices.Contains(t.Path, fullest) {
				return false
			}
			t.rate = max(least, 1)
			if slices.ContainsFunc(t.Path, func(l int32) bool { return n.Bandwidth[l] == 0 }) {
				t.rate = 0
			}
			for _, l := range t.Path {
				left[l] -= least
			}
			return true
		})
	}
}

// end is when a transfer has sent its last byte, or when it arrives if it has, as things stand.
func (n *Network) end(t *Transfer) clock.Time {
	if !t.Sending() {
		return t.sent.Add(t.Latency)
	}
	if t.rate == 0 {
		return clock.Never
	}
	d, rest := new(big.Int).QuoRem(t.left, big.NewInt(t.rate), new(big.Int))
	if rest.Sign() > 0 {
		d.Add(d, big.NewInt(1))
	}
	if !d.IsInt64() {
		return clock.Never
	}
	return n.now.Add(clock.Duration(d.Int64()))
}

// Next is the next instant at which a transfer has sent its last byte or arrives.
func (n *Network) Next() clock.Time {
	n.fill()
	next := clock.Never
	for _, t := range n.under {
		next = min(next, n.end(t))
	}
	return next
}

// To advances the network to an instant, at most Next, and returns the transfers that have arrived.
func (n *Network) To(at clock.Time) (arrived []*Transfer) {
	n.fill()
	ends := make(map[*Transfer]clock.Time)
	for _, t := range n.under {
		ends[t] = n.end(t)
	}
	for _, t := range n.under {
		if !t.Sending() {
			continue
		}
		moved := new(big.Int).Mul(big.NewInt(t.rate), big.NewInt(int64(at.Sub(n.now))))
		if t.left.Sub(t.left, moved); ends[t] <= at {
			t.sent = at
		}
	}
	n.now = at
	n.under = slices.DeleteFunc(n.under, func(t *Transfer) bool {
		gone := !t.Sending() && t.sent.Add(t.Latency) <= at
		if gone {
			arrived = append(arrived, t)
		}
		return gone
	})
	return arrived
}
