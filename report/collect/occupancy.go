package collect

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/sched"
)

// occupancy measures how many requests are in each state over time, and what holds waiting requests back. It counts in
// an open bucket. A timeline gets the sums when time leaves the bucket, and when they are asked for.
type occupancy struct {
	open     cursor
	levels   [levels]level
	gap      int // the gap class now, see gapClass
	gapSince clock.Time
}

// level is a number of requests that changes over time.
type level struct {
	value     int
	since     clock.Time
	low, high int      // of the open bucket
	picos     []uint64 // for how long it had each value in the open bucket
}

// set gives it a value that holds from the instant at on.
func (l *level) set(at clock.Time, value int) {
	if value != l.value {
		l.hold(at)
		if l.value = value; value < l.low {
			l.low = value
		} else if value > l.high {
			l.high = value
		}
	}
}

// hold accounts for the value until the instant to.
func (l *level) hold(to clock.Time) {
	if l.value >= len(l.picos) {
		l.picos = append(l.picos, make([]uint64, l.value+1-len(l.picos))...)
	}
	l.picos[l.value] += uint64(to - l.since)
	l.since = to
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
	o.open = t.enter(o.open.start) // two buckets may have become one
	for at > o.open.end {
		o.close(t, o.open.end)
		o.open = t.enter(o.open.end)
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
		l.hold(max(to, l.since))
		for value := l.low; value <= l.high; value++ {
			if picos := l.picos[value]; picos > 0 {
				t.holds(o.open.i, i, int64(value), picos)
				l.picos[value] = 0
			}
		}
		l.low, l.high = l.value, l.value
	}
	o.holdGap(t, to)
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
func (o *occupancy) holdGap(t *timeline, to clock.Time) {
	if to <= o.gapSince {
		return
	}
	if o.gap != gapNone {
		t.buckets[o.open.i].gaps[o.gap] += int64(to - o.gapSince)
	}
	o.gapSince = to
}
