package collect

import (
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/sched"
)

// occupancy measures how many requests are in each state over time, and what holds waiting requests back. It writes
// into the buckets of a timeline.
type occupancy struct {
	level  cursor // the bucket of the last change
	levels [levels]int64
	since  [levels]clock.Time
	gap    int // the gap class now, see gapClass
	gapped clock.Time
}

// gapClass is twice the class of waiting, plus 1 where more requests might run by number.
func gapClass(l *event.Levels, seats int) int {
	if l.Waiting == 0 {
		return gapNone
	}
	class := gapIdle
	if l.Running > 0 {
		class = [...]int{
			sched.NotBlocked: gapBoundary, sched.LacksKV: gapKV, sched.LacksBudget: gapBudget,
			sched.LacksSeats: gapSeats, sched.HeldByPolicy: gapPolicy,
		}[l.Blocked]
	}
	if seats == 0 || l.Running < seats {
		return 2*class + 1
	}
	return 2 * class
}

// change sets a level.
func (o *occupancy) change(t *timeline, level int, at clock.Time, value int64) {
	o.fillLevel(t, level, at)
	o.levels[level] = value
}

// fillLevel accounts for the value that a level had until the instant to.
func (o *occupancy) fillLevel(t *timeline, level int, to clock.Time) {
	from := o.since[level]
	if from >= to {
		return
	}
	o.since[level] = to
	value := o.levels[level]
	if o.level.within(t, from, to) {
		o.holds(t, o.level.i, level, value, uint64(to-from))
		return
	}
	t.find(to - 1) // makes room once, so that the width stays
	for from < to {
		o.level.move(t, from)
		end := min(o.level.end, to)
		o.holds(t, o.level.i, level, value, uint64(end-from))
		from = end
	}
}

// holds counts a level that had a value for a time, in one bucket.
func (o *occupancy) holds(t *timeline, i, level int, value int64, picos uint64) {
	if t.detail == nil { // of a replica
		t.buckets[i].holds(level, value, picos)
	} else {
		t.detail[i].levels[level].Record(value, picos)
	}
}

// fillGap accounts for the class of waiting until the instant to.
func (o *occupancy) fillGap(t *timeline, to clock.Time) {
	from := o.gapped
	if from >= to {
		return
	}
	o.gapped = to
	if o.gap == gapNone {
		return
	}
	if o.level.within(t, from, to) {
		t.buckets[o.level.i].gaps[o.gap] += int64(to - from)
		return
	}
	t.find(to - 1)
	for from < to {
		o.level.move(t, from)
		end := min(o.level.end, to)
		t.buckets[o.level.i].gaps[o.gap] += int64(end - from)
		from = end
	}
}
