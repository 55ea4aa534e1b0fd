package network

import (
	"fmt"
	"math/bits"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
)

// Network is links of given bandwidths, and the transfers over them. Transfers on a link share it by max-min fairness:
// each gets the same rate as the others on its bottleneck link, and bandwidth that it leaves on other links goes to the
// others there. The end of a transfer therefore changes when others begin and end.
//
// Rates are whole bytes per second, and the rest of a transfer is kept in bytes per second and picoseconds, so that
// rounding loses less than a byte per second, and the last picosecond. The cost of a change is proportional to the
// number of transfers that share links, directly or through others.
type Network struct {
	links     []link
	transfers []transfer
	vacant    []int32
	serials   int64
	ends      pq.Queue[int32] // by instant and serial number; entries may be stale
	stamp     int64
	affected  []int32 // scratch: links, of which some transfers may change their rates
}

const noLink = int32(-1)

// link is what carries transfers.
type link struct {
	bandwidth int64 // bytes per second
	widest    int64 // the most so far
	members   []int32
	since     clock.Time     // when it began to have some
	busy      clock.Duration // how long it had some before
	most      int            // members at once so far

	// What it had to carry, has carried, and did not carry because transfers were stopped: bytes times picoseconds per
	// second.
	begun, carried, spared clock.Uint128

	stamp int64
	left  int64 // bandwidth not yet assigned, while rates are computed
	open  int64 // members without a rate
}

// transfer is a transfer in flight over some links at once.
type transfer struct {
	path    []int32
	latency clock.Duration
	serial  int64 // of its start; 0 if unused
	left    clock.Uint128
	rate    int64
	as      clock.Time // the instant of left
	end     clock.Time // when the last byte is sent or, if it has been, arrives
	landing bool       // the last byte has been sent
	stamp   int64
}

// AddLink adds a link with a bandwidth in bytes per second, at least 1, and returns its number.
func (n *Network) AddLink(bytesPerSecond int64) int32 {
	n.links = append(n.links, link{bandwidth: bytesPerSecond, widest: bytesPerSecond})
	return int32(len(n.links) - 1)
}

// SetBandwidth sets the bandwidth of a link at an instant that is not before the last event. At 0 its transfers stop.
func (n *Network) SetBandwidth(at clock.Time, l int32, bytesPerSecond int64) {
	k := &n.links[l]
	k.bandwidth, k.widest = bytesPerSecond, max(k.widest, bytesPerSecond)
	n.share(at, []int32{l})
}

// Start begins a transfer of some bytes over different links, at an instant that is not before the last event. The last
// byte arrives after latency when it has been sent. Start returns the number of the transfer, which is valid until
// then.
func (n *Network) Start(at clock.Time, bytes int64, latency clock.Duration, path ...int32) int32 {
	var i int32
	if k := len(n.vacant); k > 0 {
		i, n.vacant = n.vacant[k-1], n.vacant[:k-1]
	} else {
		i = int32(len(n.transfers))
		n.transfers = append(n.transfers, transfer{})
	}
	n.serials++
	t := &n.transfers[i]
	t.path, t.latency, t.serial = append(t.path[:0], path...), latency, n.serials
	t.left, t.rate, t.as, t.landing = clock.Mul64(uint64(bytes), uint64(clock.Second)), 0, at, false
	for _, l := range path {
		k := &n.links[l]
		if len(k.members) == 0 {
			k.since = at
		}
		k.members = append(k.members, i)
		k.most = max(k.most, len(k.members))
		k.begun = k.begun.Add(t.left)
	}
	n.share(at, t.path)
	return i
}

// Extend adds bytes to a transfer that has not sent its last one.
func (n *Network) Extend(at clock.Time, i int32, bytes int64) {
	t, more := &n.transfers[i], clock.Mul64(uint64(bytes), uint64(clock.Second))
	n.progress(t, at)
	t.left = t.left.Add(more)
	for _, l := range t.path {
		n.links[l].begun = n.links[l].begun.Add(more)
	}
	n.plan(i, t.rate)
}

// Sending reports whether a transfer has bytes left to send.
func (n *Network) Sending(i int32) bool { return !n.transfers[i].landing }

// Next returns the instant of the next event, or Never.
func (n *Network) Next() clock.Time {
	if n.ends.Len() == 0 {
		return clock.Never
	}
	return n.nextEnd()
}

// nextEnd returns the instant of the next event, and drops entries of transfers whose end has changed.
func (n *Network) nextEnd() clock.Time {
	for n.ends.Len() > 0 {
		if e := n.ends.Top(); n.live(e) {
			return clock.Time(e.Key)
		}
		n.ends.Pop()
	}
	return clock.Never
}

// Advance handles the event at Next. done means that transfer i has arrived; its number is free then.
func (n *Network) Advance() (i int32, done bool) {
	at := n.Next()
	i = n.ends.Pop().Value
	t := &n.transfers[i]
	if !t.landing {
		n.progress(t, at)
		n.leave(at, i)
		n.share(at, t.path)
		if t.latency > 0 {
			t.landing, t.end = true, at.Add(t.latency)
			n.ends.Push(pq.Item[int32]{Key: int64(t.end), Tie: t.serial, Value: i})
			return i, false
		}
	}
	t.serial = 0
	n.vacant = append(n.vacant, i)
	return i, true
}

// Stop aborts a transfer.
func (n *Network) Stop(at clock.Time, i int32) {
	t := &n.transfers[i]
	if !t.landing {
		n.progress(t, at)
		for _, l := range t.path {
			n.links[l].spared = n.links[l].spared.Add(t.left)
		}
		n.leave(at, i)
		n.share(at, t.path)
	}
	t.serial = 0
	n.vacant = append(n.vacant, i)
}

// Carries reports whether a link has bytes to carry.
func (n *Network) Carries(l int32) bool { return len(n.links[l].members) > 0 }

// Busy is how long a link has been busy up to an instant that is not before the last event.
func (n *Network) Busy(at clock.Time, l int32) clock.Duration {
	k := &n.links[l]
	if len(k.members) > 0 {
		return k.busy + at.Sub(k.since)
	}
	return k.busy
}

// leave removes a transfer from its links.
func (n *Network) leave(at clock.Time, i int32) {
	for _, l := range n.transfers[i].path {
		k := &n.links[l]
		if k.members = without(k.members, i); len(k.members) == 0 {
			k.busy += at.Sub(k.since)
		}
	}
}

// progress advances what is left of t to an instant.
func (n *Network) progress(t *transfer, at clock.Time) {
	moved := clock.Mul64(uint64(t.rate), uint64(at.Sub(t.as)))
	if t.left.Cmp(moved) < 0 {
		moved = t.left
	}
	t.left, t.as = t.left.Sub(moved), at
	for _, l := range t.path {
		n.links[l].carried = n.links[l].carried.Add(moved)
	}
}

// plan sets the rate of transfer i, which is up to date, and its next event.
func (n *Network) plan(i int32, rate int64) {
	t := &n.transfers[i]
	t.rate = rate
	t.end = clock.Never
	up, carry := bits.Add64(t.left.Lo, uint64(max(rate-1, 0)), 0)
	if hi := t.left.Hi + carry; hi < uint64(rate) {
		if d, _ := bits.Div64(hi, up, uint64(rate)); d <= uint64(clock.Never) {
			t.end = t.as.Add(clock.Duration(d))
		}
	}
	n.ends.Push(pq.Item[int32]{Key: int64(t.end), Tie: t.serial, Value: i})
	// Each change of a rate leaves a stale entry. Without this, many transfers that share a link fill the memory.
	if n.ends.Len() > staleTimes*len(n.transfers)+staleTimes*staleTimes {
		n.ends.Retain(func(e *pq.Item[int32]) bool { return n.live(e) })
	}
}

// staleTimes bounds the entries of the queue for each transfer.
const staleTimes = 8

// live reports whether an entry is that of the next event of its transfer.
func (n *Network) live(e *pq.Item[int32]) bool {
	t := &n.transfers[e.Value]
	return t.serial == e.Tie && int64(t.end) == e.Key
}

// share sets new rates of the transfers that share links with those of the path, directly or through others.
func (n *Network) share(at clock.Time, path []int32) {
	n.reach(path)
	for {
		bottleneck, least := noLink, int64(0)
		for _, l := range n.affected {
			k := &n.links[l]
			if k.open == 0 {
				continue
			}
			if share := k.left / k.open; bottleneck == noLink || share < least || share == least && l < bottleneck {
				bottleneck, least = l, share
			}
		}
		if bottleneck == noLink {
			return
		}
		n.freeze(at, bottleneck, least)
	}
}

// reach finds the links that are reached from the path by way of transfers.
func (n *Network) reach(path []int32) {
	n.stamp++
	n.affected = n.affected[:0]
	n.visit(path)
	for k := 0; k < len(n.affected); k++ {
		for _, i := range n.links[n.affected[k]].members {
			n.visit(n.transfers[i].path)
		}
	}
}

func (n *Network) visit(path []int32) {
	for _, l := range path {
		if k := &n.links[l]; k.stamp != n.stamp {
			k.stamp, k.left, k.open = n.stamp, k.bandwidth, int64(len(k.members))
			n.affected = append(n.affected, l)
		}
	}
}

// freeze sets the rate of the members of a bottleneck that have none yet.
func (n *Network) freeze(at clock.Time, bottleneck int32, share int64) {
	for _, i := range n.links[bottleneck].members {
		t := &n.transfers[i]
		if t.stamp == n.stamp {
			continue
		}
		t.stamp = n.stamp
		for _, l := range t.path {
			n.links[l].left -= share
			n.links[l].open--
		}
		if rate := n.rate(t, share); rate != t.rate {
			n.progress(t, at)
			n.plan(i, rate)
		}
	}
}

// rate is the rate of a transfer with its share of the bottleneck: at least a byte per second, unless a link of its
// path carries nothing.
func (n *Network) rate(t *transfer, share int64) int64 {
	for _, l := range t.path {
		if n.links[l].bandwidth == 0 {
			return 0
		}
	}
	return max(share, 1)
}

// Links is the number of links.
func (n *Network) Links() int { return len(n.links) }

// Bandwidth is the highest bandwidth that link l has had, in bytes per second.
func (n *Network) Bandwidth(l int32) int64 { return n.links[l].widest }

// Restore gives link l the highest bandwidth that it has had.
func (n *Network) Restore(at clock.Time, l int32) { n.SetBandwidth(at, l, n.links[l].widest) }

// Transfers is the number of transfers that have been underway at once; all numbers of transfers are below it.
func (n *Network) Transfers() int { return len(n.transfers) }

// Underway reports whether transfer i has begun and has not arrived.
func (n *Network) Underway(i int32) bool { return n.transfers[i].serial != 0 }

// Path is the links that transfer i goes over.
func (n *Network) Path(i int32) []int32 { return n.transfers[i].path }

// Left is the number of bytes of transfer i that have not been sent, a part of one as a whole.
func (n *Network) Left(i int32) int64 {
	t := &n.transfers[i]
	bytes, part := bits.Div64(t.left.Hi, t.left.Lo, uint64(clock.Second))
	if part > 0 {
		bytes++
	}
	return int64(bytes)
}

// Check asserts that every link has carried, at its rates, what its transfers had to send less what is left of them,
// and no more than its bandwidth while it was busy, up to a byte per second for each transfer, which is the lowest
// rate.
func (n *Network) Check(at clock.Time) error {
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
			return fmt.Errorf("sim: broken invariant at %v: of %.0f bytes, link %d has carried %.0f, %.0f are left and %.0f "+
				"were stopped", at,
				k.begun.Float64()*1e-12, l, k.carried.Float64()*1e-12, left[l].Float64()*1e-12,
				k.spared.Float64()*1e-12)
		}
		most := clock.Mul64(uint64(k.widest+int64(k.most)), uint64(n.Busy(at, int32(l))))
		if k.carried.Cmp(most) > 0 {
			return fmt.Errorf("sim: broken invariant at %v: link %d of %d bytes per second has carried %.0f in %v", at,
				l, k.widest,
				k.carried.Float64()*1e-12, n.Busy(at, int32(l)))
		}
	}
	return nil
}

func without(list []int32, i int32) []int32 {
	kept := list[:0]
	for _, x := range list {
		if x != i {
			kept = append(kept, x)
		}
	}
	return kept
}
