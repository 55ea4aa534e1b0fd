package collect

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/sched"
)

// occupancy measures how many requests are in each state over time, and what holds waiting requests back. It counts in
// the open bucket of a timeline, which gets the sums when time leaves the bucket, and when they are asked for.
type occupancy struct {
	levels   [levels]level
	gap      int // the gap class now, see gapClass
	gapSince clock.Time
	gaps     [2 * gapClasses]int64 // picoseconds in the open bucket, by gapClass
}

func newOccupancy() (o occupancy) {
	for i := range o.levels {
		o.levels[i].picos = make([]uint64, 1)
	}
	return o
}

// level is a number of requests that changes over time.
type level struct {
	value     int
	since     clock.Time
	low, high int      // of the open bucket
	picos     []uint64 // for how long it had each value in the open bucket, at least up to high
}

// set gives it a value that holds from the instant at on.
func (l *level) set(at clock.Time, value int) {
	if value == l.value {
		return
	}
	l.picos[l.value] += uint64(at - l.since)
	l.since, l.value = at, value
	if value < l.low {
		l.low = value
	} else if value > l.high {
		l.rise()
	}
}

// rise makes the value the highest of the open bucket.
func (l *level) rise() {
	l.high = l.value
	for len(l.picos) <= l.high {
		l.picos = append(l.picos, 0)
	}
}

// gapOf is the class of waiting while others run, by what blocks the first waiting request.
var gapOf = [...]int{
	sched.NotBlocked: gapBoundary, sched.LacksKV: gapKV, sched.LacksBudget: gapBudget,
	sched.LacksSeats: gapSeats, sched.HeldByPolicy: gapPolicy,
}

// gapClass is twice the class of waiting, plus 1 where more requests might run by number.
func gapClass(l *event.Levels, seats int) int {
	if l.Waiting == 0 {
		return gapNone
	}
	class := gapIdle
	if l.Running > 0 {
		class = gapOf[l.Blocked]
	}
	if seats == 0 || l.Running < seats {
		return 2*class + 1
	}
	return 2 * class
}

// inSystem is the number of requests in the system.
func (o *occupancy) inSystem() int64 { return int64(o.levels[inSystem].value) }

// enter opens the bucket that ends at an instant or after it, and closes those before.
func (o *occupancy) enter(t *timeline, at clock.Time) {
	t.find(max(at, 1) - 1)         // makes room once, so that the width stays
	t.open = t.enter(t.open.start) // two buckets may have become one
	for at > t.open.end {
		o.close(t, t.open.end)
		t.open = t.enter(t.open.end)
	}
}

// settle accounts for all levels until the instant to.
func (o *occupancy) settle(t *timeline, to clock.Time) {
	o.enter(t, to)
	o.close(t, to)
}

// close gives the timeline the sums of the open bucket until the instant to, which is not after its end.
func (o *occupancy) close(t *timeline, to clock.Time) {
	for i := range o.levels {
		l := &o.levels[i]
		if to > l.since {
			l.picos[l.value] += uint64(to - l.since)
			l.since = to
		}
		for value := l.low; value <= l.high; value++ {
			if picos := l.picos[value]; picos > 0 {
				t.holds(t.open.i, i, int64(value), picos)
				l.picos[value] = 0
			}
		}
		l.low, l.high = l.value, l.value
	}
	if to > o.gapSince {
		o.holdGap(to)
	}
	b := &t.buckets[t.open.i]
	for class := gapNone + 1; class < gapClasses; class++ {
		b.gaps[2*class] += o.gaps[2*class]
		b.gaps[2*class+1] += o.gaps[2*class+1]
	}
	clear(o.gaps[:])
}

// holds counts a level that had a value for a time, in one bucket.
func (t *timeline) holds(i, level int, value int64, picos uint64) {
	if t.detail == nil { // of a replica
		t.buckets[i].holds(level, value, picos)
	} else {
		t.detail[i].levels[level].Record(value, picos)
	}
}

// holdGap accounts for the class of waiting until the instant to.
func (o *occupancy) holdGap(to clock.Time) {
	o.gaps[o.gap] += int64(to - o.gapSince)
	o.gapSince = to
}
