package clock

import "math/bits"

// Progression is a run of N back-to-back iterations whose lengths form an arithmetic progression:
// iteration k takes First + k·Slope femtoseconds. It is the unit in which the simulator advances,
// and obeys one law: the end after a+b iterations is the end after a, then after b more.
type Progression struct {
	Start     Time  // start of iteration 0
	Remainder int64 // femtoseconds past Start, 0…999
	First     int64 // length of iteration 0, femtoseconds
	Slope     int64 // growth of the length from one iteration to the next, femtoseconds
	N         int   // number of iterations
}

// MaxFemtos bounds the sum of a progression, so that it fits an int64 with room for the remainder.
const MaxFemtos = 1 << 62

// Femtos is the sum of the lengths of the first k iterations.
func (p *Progression) Femtos(k int) int64 {
	n := int64(k)
	return n*p.First + int64(uint64(n*(n-1))>>1)*p.Slope
}

// End is the end of the k-th iteration counted from 1, so that End(0) is Start.
func (p *Progression) End(k int) Time {
	return p.Start + Time(uint64(p.Remainder+p.Femtos(k))/FemtosPerPico)
}

// EndAt is End(k), and the remainder in femtoseconds past it.
func (p *Progression) EndAt(k int) (end Time, remainder int64) {
	femtos := uint64(p.Remainder + p.Femtos(k))
	picos := femtos / FemtosPerPico
	return p.Start + Time(picos), int64(femtos - picos*FemtosPerPico)
}

// EndRemainder is the remainder in femtoseconds past End(k).
func (p *Progression) EndRemainder(k int) int64 {
	_, remainder := p.EndAt(k)
	return remainder
}

// Tail is the progression without its first k iterations.
func (p *Progression) Tail(k int) Progression {
	start, remainder := p.EndAt(k)
	return Progression{Start: start, Remainder: remainder, First: p.First + int64(k)*p.Slope,
		Slope: p.Slope, N: p.N - k}
}

// Head is the progression of the first k iterations.
func (p *Progression) Head(k int) Progression {
	h := *p
	h.N = k
	return h
}

// FirstEndAtOrAfter is the smallest k in 0…N with End(k) ≥ t, or N where there is none.
func (p *Progression) FirstEndAtOrAfter(t Time) int {
	if t <= p.Start {
		return 0
	}
	k := p.N
	if k == 0 || p.End(k) < t {
		return k
	}
	// The first k iterations end at or after t, by excess femtoseconds. None of them is longer than the last one, so
	// that as many can be left out as have the length of the last one in the excess.
	late := p.Remainder - int64(t-p.Start)*FemtosPerPico
	if p.First > 0 {
		k = min(k, int((p.First-1-late)/p.First))
	}
	for {
		excess, last := p.Femtos(k)+late, p.First+int64(k-1)*p.Slope
		if excess < last {
			return k
		}
		k -= int(excess / last)
	}
}

// CapN is the largest number of iterations, at most n, whose sum stays below [MaxFemtos].
func CapN(first, slope int64, n int) int {
	if n <= 1<<12 && uint64(first) < 1<<48 && uint64(slope) < 1<<36 {
		return n // the sum is less than 2⁶⁰ + 2⁵⁹
	}
	return capN(first, slope, n)
}

func capN(first, slope int64, n int) int {
	fits := func(n int) bool {
		hi, lo := bits.Mul64(uint64(n), uint64(first))
		if hi != 0 || lo >= MaxFemtos {
			return false
		}
		h2, l2 := bits.Mul64(uint64(n), uint64(n-1)/2+1)
		if h2 != 0 {
			return false
		}
		h3, l3 := bits.Mul64(l2, uint64(slope))
		return h3 == 0 && l3 < MaxFemtos && lo+l3 < MaxFemtos
	}
	if n <= 1 || fits(n) {
		return n
	}
	lo, hi := 1, n
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; fits(mid) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}
