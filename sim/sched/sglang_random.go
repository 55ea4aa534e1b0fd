package sched

import (
	"math/bits"

	"clifftop/workload"
)

// deck is the places of a queue in random order, of which only those are found that are drawn: the first steps of a
// Fisher-Yates shuffle.
type deck struct {
	rng   *workload.RNG
	size  int         // places
	drawn int         // those of them that were drawn
	moved map[int]int // by place: what the shuffle has put there
}

// shuffle begins the shuffle of a pass. SGLang shuffles anew for each attempt; here attempts between which no iteration
// was composed have one shuffle, so that it does not depend on how often an engine asks in vain.
func (d *deck) shuffle(a *pass) {
	if d.rng == nil {
		d.rng, d.moved = workload.NewRNG(a.Seed, "schedule_policy random"), make(map[int]int)
	}
	d.rng.Seek(uint64(a.Replica), uint64(a.batches+a.v.DecodeSteps()))
	d.size, d.drawn = a.v.WaitingLen(), 0
	clear(d.moved)
}

// draw returns the next place.
func (d *deck) draw() int {
	offset, _ := bits.Mul64(d.rng.Uint64(), uint64(d.size-d.drawn))
	i := d.drawn + int(offset)
	place := d.at(i)
	d.moved[i] = d.at(d.drawn)
	d.drawn++
	return place
}

func (d *deck) at(i int) int {
	if p, ok := d.moved[i]; ok {
		return p
	}
	return i
}
