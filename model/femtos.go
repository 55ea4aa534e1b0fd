package model

import (
	"math"
	"math/bits"
)

// femtosPerSecond converts seconds to the unit of step times.
const femtosPerSecond = 1e15

// maxFemtos is the largest part of a step time, 19 minutes in femtoseconds. Larger parts are limited to it, so that
// a few of them can be added without overflow.
const maxFemtos = 1 << 60

// roundFemtos rounds to whole femtoseconds, at most maxFemtos.
func roundFemtos(fs float64) int64 {
	if !(fs < maxFemtos) {
		return maxFemtos
	}
	return int64(math.Round(fs))
}

// roundSum converts seconds to femtoseconds, rounded to 1 ns: far below the accuracy of any constant, and far above
// the last bits of powers and sums, in which platforms differ.
func roundSum(seconds float64) int64 {
	const quantum = 1_000_000
	return min(quantum*roundFemtos(seconds*(femtosPerSecond/quantum)), maxFemtos)
}

// saturate returns a + b·c for non-negative numbers, at most maxFemtos.
func saturate(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(b), uint64(c))
	if hi != 0 || lo > maxFemtos {
		return maxFemtos
	}
	return min(a+int64(lo), maxFemtos)
}

// fraction is a fixed-point number of femtoseconds with fractionBits binary places.
type fraction uint64

const fractionBits = 20

func newFraction(seconds float64) fraction {
	v := math.Round(seconds * femtosPerSecond * (1 << fractionBits))
	if !(v < maxFemtos) {
		return maxFemtos
	}
	return fraction(v)
}

// uint128 accumulates products of counts and fractions.
type uint128 struct{ hi, lo uint64 }

// add adds x·f for a non-negative x.
func (u *uint128) add(x int64, f fraction) {
	hi, lo := bits.Mul64(uint64(x), uint64(f))
	var carry uint64
	u.lo, carry = bits.Add64(u.lo, lo, 0)
	u.hi, carry = bits.Add64(u.hi, hi, carry)
	if carry != 0 {
		u.hi = math.MaxUint64
	}
}

// femtos returns the rounded sum.
func (u *uint128) femtos() int64 {
	lo, carry := bits.Add64(u.lo, 1<<(fractionBits-1), 0)
	hi := u.hi + carry
	if hi >= maxFemtos>>(64-fractionBits) {
		return maxFemtos
	}
	return int64(hi<<(64-fractionBits) | lo>>fractionBits)
}
