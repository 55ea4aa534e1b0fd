package engine

import (
	"fmt"
	"math/bits"

	"clifftop/sim/clock"
)

// MaxSlowdown is the greatest factor of step times, in thousandths.
const MaxSlowdown = 1_000_000

// SetSlowdown makes iterations that are composed from now on take so many thousandths of their usual time; 0 is as usual.
func (r *Engine) SetSlowdown(now clock.Time, permille int64) {
	if r.slowdown = permille; r.ahead.N > 0 {
		r.cut(now)
	}
}

// slowed is the times of a replica that is slow. Where the factor leaves a part of a femtosecond of the slope, only one
// iteration is promised at a time, so that the lengths of promises change nothing.
func (r *Engine) slowed(first, slope int64, n int) (int64, int64, int) {
	hi, lo := bits.Mul64(uint64(first), uint64(r.slowdown))
	slow := uint64(clock.MaxFemtos)
	if hi < 1000 { // the quotient fits
		slow, _ = bits.Div64(hi, lo, 1000)
	}
	if slow >= clock.MaxFemtos {
		r.fault = fmt.Errorf("sim: an iteration of %d fs, made %d/1000 times as long, is too long", first, r.slowdown)
		return first, slope, 1
	}
	hi, lo = bits.Mul64(uint64(slope), uint64(r.slowdown))
	if hi > 0 || lo%1000 != 0 {
		return int64(slow), 0, 1
	}
	return int64(slow), int64(lo / 1000), n
}
