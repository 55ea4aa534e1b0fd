package route

import (
	"math/bits"

	"clifftop/workload"
)

// Identity distinguishes the routers of a fleet, and seeds their random numbers.
type Identity struct {
	// Seed is the seed of the run.
	Seed uint64
	// Number counts the routers from 0. Of is the number of routers; 0 means one.
	Number, Of int
}

func (id *Identity) routers() int { return max(id.Of, 1) }

// draws are random numbers that depend only on a router's identity.
type draws struct{ stream *workload.RNG }

func (d *draws) uint64(id *Identity) uint64 {
	if d.stream == nil {
		d.stream = workload.NewRNG(id.Seed, "routing")
		d.stream.Seek(uint64(id.Number), 0)
	}
	return d.stream.Uint64()
}

// below is a number from 0 to n-1. Its bias is under n/2⁶⁴.
func (d *draws) below(id *Identity, n int) int {
	hi, _ := bits.Mul64(d.uint64(id), uint64(n))
	return int(hi)
}

// uniform is a number in [0, 1).
func (d *draws) uniform(id *Identity) float64 { return float64(d.uint64(id)>>11) / (1 << 53) }

// least finds the endpoints with the least load of those that are offered.
type least struct {
	load  float64
	equal []int32 // their positions
}

func (l *least) begin() { l.equal = l.equal[:0] }

func (l *least) offer(k int, load float64) {
	switch {
	case len(l.equal) == 0 || load < l.load:
		l.load, l.equal = load, append(l.equal[:0], int32(k))
	case load == l.load:
		l.equal = append(l.equal, int32(k))
	}
}

// first is the first of them that was offered.
func (l *least) first() int { return int(l.equal[0]) }

// any is a random one of them. It draws a number only if there are several.
func (l *least) any(d *draws, id *Identity) int {
	if len(l.equal) == 1 {
		return int(l.equal[0])
	}
	return int(l.equal[d.below(id, len(l.equal))])
}
