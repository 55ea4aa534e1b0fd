package clock

import (
	"cmp"
	"math/bits"
)

// Uint128 is an unsigned 128-bit integer, for exact integrals.
type Uint128 struct{ Hi, Lo uint64 }

// Add returns u+v.
func (u Uint128) Add(v Uint128) Uint128 {
	lo, carry := bits.Add64(u.Lo, v.Lo, 0)
	hi, _ := bits.Add64(u.Hi, v.Hi, carry)
	return Uint128{hi, lo}
}

// Sub returns u-v, modulo 2¹²⁸.
func (u Uint128) Sub(v Uint128) Uint128 {
	lo, borrow := bits.Sub64(u.Lo, v.Lo, 0)
	hi, _ := bits.Sub64(u.Hi, v.Hi, borrow)
	return Uint128{hi, lo}
}

// Cmp is negative where u is less than v, 0 where they are equal, and positive otherwise.
func (u Uint128) Cmp(v Uint128) int {
	if u.Hi != v.Hi {
		return cmp.Compare(u.Hi, v.Hi)
	}
	return cmp.Compare(u.Lo, v.Lo)
}

// Mul64 returns a·b.
func Mul64(a, b uint64) Uint128 {
	hi, lo := bits.Mul64(a, b)
	return Uint128{hi, lo}
}

// Mul returns u·b, modulo 2¹²⁸.
func (u Uint128) Mul(b uint64) Uint128 {
	p := Mul64(u.Lo, b)
	p.Hi += u.Hi * b
	return p
}

// Float64 is u as the nearest float64.
func (u Uint128) Float64() float64 {
	return float64(u.Hi)*(1<<64) + float64(u.Lo)
}
