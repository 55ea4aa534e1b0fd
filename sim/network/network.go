package network

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
)

// Network is links of given bandwidths, and the transfers over them. Transfers on a link share it by max-min fairness:
// each gets the same rate as the others on its bottleneck link, and bandwidth that it leaves on other links goes to the
// others there. The end of a transfer therefore changes when others begin and end.
//
// Rates are whole bytes per second, and the rest of a transfer is kept in bytes per second and picoseconds, so that
// rounding loses less than a byte per second, and the last picosecond.
//
// Transfers over the same links always have the same rate. They form a route, which counts what each of its transfers
// has been sent: a transfer ends when the count reaches its tag. The cost of a change is therefore proportional to the
// number of routes that share links, directly or through others, and not to that of the transfers.
type Network struct {
	links     []link
	routes    []route
	byPath    map[string]int32 // routes by the numbers of their links
	transfers []transfer
	vacant    []int32
	serials   int64
	// ends are the next ends of routes, and the arrivals of transfers that have been sent: -1-i for transfer i. Entries
	// are ordered by instant and serial number of the transfer, and may be stale.
	ends     pq.Queue[int32]
	stamp    int64
	affected []int32 // scratch: links, of which some routes may change their rates
	key      []byte  // scratch
}

const noLink = int32(-1)

// link is what carries transfers.
type link struct {
	bandwidth int64 // bytes per second
	widest    int64 // the most so far
	routes    []int32
	members   int64          // transfers that are being sent
	since     clock.Time     // when it began to have some
	busy      clock.Duration // how long it had some before
	most      int64          // members at once so far

	// What it had to carry, has carried, and did not carry because transfers were stopped: bytes times picoseconds per
	// second.
	begun, carried, spared clock.Uint128

	stamp int64
	left  int64 // bandwidth not yet assigned, while rates are computed
	open  int64 // members without a rate
}

// route is the transfers over the same links.
type route struct {
	path    []int32
	members int64 // that are being sent
	order   tags  // of the members; entries may be stale
	rate    int64 // of each member
	served  clock.Uint128
	as      clock.Time // the instant of served
	end     clock.Time // when the first member has been sent
	planned int64      // its serial number
	changed bool       // the first member may be another one than the planned one
	stamp   int64
}

// transfer is a transfer in flight.
type transfer struct {
	route   int32
	latency clock.Duration
	serial  int64         // of its start; 0 if unused
	tag     clock.Uint128 // what its route has served when its last byte is sent
	left    clock.Uint128 // what had not been sent when it was stopped
	end     clock.Time    // when it arrives, if its last byte has been sent
	landing bool          // the last byte has been sent
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
	to := n.routeOf(path)
	r := &n.routes[to]
	n.settle(r, at)
	if r.members == 0 {
		r.served, r.rate = clock.Uint128{}, 0
	}
	size := clock.Mul64(uint64(bytes), uint64(clock.Second))
	n.transfers[i] = transfer{route: to, latency: latency, serial: n.serials, tag: r.served.Add(size)}
	r.members++
	n.enter(r, i)
	for _, l := range path {
		k := &n.links[l]
		if k.members == 0 {
			k.since = at
		}
		k.members++
		k.most = max(k.most, k.members)
		k.begun = k.begun.Add(size)
	}
	n.share(at, r.path)
	return i
}

// routeOf returns the number of the route over some links.
func (n *Network) routeOf(path []int32) int32 {
	n.key = n.key[:0]
	for _, l := range path {
		n.key = binary.LittleEndian.AppendUint32(n.key, uint32(l))
	}
	if r, ok := n.byPath[string(n.key)]; ok {
		return r
	}
	if n.byPath == nil {
		n.byPath = make(map[string]int32)
	}
	r := int32(len(n.routes))
	n.byPath[string(n.key)] = r
	n.routes = append(n.routes, route{path: slices.Clone(path), end: clock.Never})
	for _, l := range path {
		n.links[l].routes = append(n.links[l].routes, r)
	}
	return r
}

// Extend adds bytes to a transfer that has not sent its last one.
func (n *Network) Extend(at clock.Time, i int32, bytes int64) {
	t, more := &n.transfers[i], clock.Mul64(uint64(bytes), uint64(clock.Second))
	r := &n.routes[t.route]
	n.settle(r, at)
	t.tag = t.tag.Add(more)
	n.enter(r, i)
	for _, l := range r.path {
		n.links[l].begun = n.links[l].begun.Add(more)
	}
	n.plan(t.route)
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
	x := n.ends.Pop()
	if i = -1 - x.Value; x.Value >= 0 {
		r := &n.routes[x.Value]
		n.settle(r, at)
		i, r.planned = r.order.top().transfer, 0
		n.leave(at, r, i)
		if t := &n.transfers[i]; t.latency > 0 {
			t.landing, t.end = true, at.Add(t.latency)
			n.ends.Push(pq.Item[int32]{Key: int64(t.end), Tie: t.serial, Value: -1 - i})
			return i, false
		}
	}
	n.free(i)
	return i, true
}

func (n *Network) free(i int32) {
	n.transfers[i].serial = 0
	n.vacant = append(n.vacant, i)
}

// Stop aborts a transfer.
func (n *Network) Stop(at clock.Time, i int32) {
	if t := &n.transfers[i]; !t.landing {
		r := &n.routes[t.route]
		n.settle(r, at)
		n.leave(at, r, i)
		for _, l := range r.path {
			n.links[l].spared = n.links[l].spared.Add(t.left)
		}
	}
	n.free(i)
}

// Carries reports whether a link has bytes to carry.
func (n *Network) Carries(l int32) bool { return n.links[l].members > 0 }

// Busy is how long a link has been busy up to an instant that is not before the last event.
func (n *Network) Busy(at clock.Time, l int32) clock.Duration {
	k := &n.links[l]
	if k.members > 0 {
		return k.busy + at.Sub(k.since)
	}
	return k.busy
}

// leave removes transfer i from its route, which is up to date, and notes what of it is left.
func (n *Network) leave(at clock.Time, r *route, i int32) {
	t := &n.transfers[i]
	t.landing = true // its entries in the order are stale
	t.left = t.tag.Sub(r.served)
	var over clock.Uint128 // what the last picosecond would have sent of more than there was
	if t.tag.Cmp(r.served) < 0 {
		t.left, over = clock.Uint128{}, r.served.Sub(t.tag)
	}
	r.members--
	if r.changed = true; r.members == 0 {
		r.order, r.end, r.planned = r.order[:0], clock.Never, 0
	}
	for _, l := range r.path {
		k := &n.links[l]
		k.carried = k.carried.Sub(over)
		if k.members--; k.members == 0 {
			k.busy += at.Sub(k.since)
		}
	}
	n.share(at, r.path)
}

// settle advances what a route has served to an instant.
func (n *Network) settle(r *route, at clock.Time) {
	if r.members > 0 && r.rate > 0 {
		moved := clock.Mul64(uint64(r.rate), uint64(at.Sub(r.as)))
		r.served = r.served.Add(moved)
		all := moved.Mul(uint64(r.members))
		for _, l := range r.path {
			n.links[l].carried = n.links[l].carried.Add(all)
		}
	}
	r.as = at
}

// enter puts transfer i into the order of its route.
func (n *Network) enter(r *route, i int32) {
	t := &n.transfers[i]
	r.order.push(tagged{tag: t.tag, serial: t.serial, transfer: i})
	r.changed = true
}

// plan sets the next event of route x, which is up to date.
func (n *Network) plan(x int32) {
	r := &n.routes[x]
	end, planned := r.end, r.planned
	r.changed = false
	for len(r.order) > 0 && !n.current(r.order.top()) {
		r.order.pop()
	}
	if r.end, r.planned = clock.Never, 0; len(r.order) == 0 {
		return
	}
	first := r.order.top()
	r.planned = first.serial
	left := clock.Uint128{}
	if first.tag.Cmp(r.served) > 0 {
		left = first.tag.Sub(r.served)
	}
	up, carry := bits.Add64(left.Lo, uint64(max(r.rate-1, 0)), 0)
	if hi := left.Hi + carry; hi < uint64(r.rate) {
		if d, _ := bits.Div64(hi, up, uint64(r.rate)); d <= uint64(clock.Never) {
			r.end = r.as.Add(clock.Duration(d))
		}
	}
	if r.end == end && r.planned == planned {
		return // it has its entry
	}
	n.ends.Push(pq.Item[int32]{Key: int64(r.end), Tie: r.planned, Value: x})
	// Each change of a rate leaves a stale entry.
	if n.ends.Len() > staleTimes*(len(n.routes)+len(n.transfers))+staleTimes*staleTimes {
		n.ends.Retain(func(e *pq.Item[int32]) bool { return n.live(e) })
	}
}

// current reports whether an entry of the order of a route is that of a transfer that is being sent.
func (n *Network) current(x *tagged) bool {
	t := &n.transfers[x.transfer]
	return t.serial == x.serial && !t.landing && t.tag == x.tag
}

// staleTimes bounds the entries of the queue for each route and transfer.
const staleTimes = 8

// live reports whether an entry is that of the next event of its route or transfer.
func (n *Network) live(e *pq.Item[int32]) bool {
	if e.Value >= 0 {
		r := &n.routes[e.Value]
		return r.planned == e.Tie && int64(r.end) == e.Key
	}
	t := &n.transfers[-1-e.Value]
	return t.serial == e.Tie && t.landing
}

// share sets new rates of the routes that share links with the path, directly or through others.
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

// reach finds the links that are reached from the path by way of routes with transfers.
func (n *Network) reach(path []int32) {
	n.stamp++
	n.affected = n.affected[:0]
	n.visit(path)
	for k := 0; k < len(n.affected); k++ {
		for _, x := range n.links[n.affected[k]].routes {
			if r := &n.routes[x]; r.members > 0 {
				n.visit(r.path)
			}
		}
	}
}

func (n *Network) visit(path []int32) {
	for _, l := range path {
		if k := &n.links[l]; k.stamp != n.stamp {
			k.stamp, k.left, k.open = n.stamp, k.bandwidth, k.members
			n.affected = append(n.affected, l)
		}
	}
}

// freeze sets the rate of the routes over a bottleneck that have none yet.
func (n *Network) freeze(at clock.Time, bottleneck int32, share int64) {
	for _, x := range n.links[bottleneck].routes {
		r := &n.routes[x]
		if r.members == 0 || r.stamp == n.stamp {
			continue
		}
		r.stamp = n.stamp
		for _, l := range r.path {
			n.links[l].left -= share * r.members
			n.links[l].open -= r.members
		}
		rate := n.rate(r, share)
		if rate != r.rate {
			n.settle(r, at)
			r.rate = rate
			n.plan(x)
		} else if r.changed {
			n.plan(x)
		}
	}
}

// rate is the rate of the transfers of a route with their share of the bottleneck: at least a byte per second, unless a
// link of the path carries nothing.
func (n *Network) rate(r *route, share int64) int64 {
	for _, l := range r.path {
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
func (n *Network) Path(i int32) []int32 { return n.routes[n.transfers[i].route].path }

// Left is the number of bytes of transfer i that had not been sent when it was stopped, a part of one as a whole.
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
// rate, and up to the last picosecond.
func (n *Network) Check(at clock.Time) error {
	left := make([]clock.Uint128, len(n.links))
	for i := range n.transfers {
		if t := &n.transfers[i]; t.serial != 0 && !t.landing {
			for _, l := range n.Path(int32(i)) {
				left[l] = left[l].Add(t.tag.Sub(n.routes[t.route].served)) // modulo 2¹²⁸, as carried
			}
		}
	}
	for l := range n.links {
		k := &n.links[l]
		if all := k.carried.Add(left[l]).Add(k.spared); all.Cmp(k.begun) != 0 {
			return fmt.Errorf("sim: broken invariant at %v: of %.0f bytes, link %d has carried %.0f, %.0f are left "+
				"and %.0f were stopped", at,
				k.begun.Float64()*1e-12, l, k.carried.Float64()*1e-12, left[l].Float64()*1e-12,
				k.spared.Float64()*1e-12)
		}
		most := clock.Mul64(uint64(k.widest+k.most), uint64(n.Busy(at, int32(l))+1))
		if k.carried.Cmp(most) > 0 {
			return fmt.Errorf("sim: broken invariant at %v: link %d of %d bytes per second has carried %.0f in %v", at,
				l, k.widest,
				k.carried.Float64()*1e-12, n.Busy(at, int32(l)))
		}
	}
	return nil
}
