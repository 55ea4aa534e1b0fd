package report

import (
	"math/bits"

	"clifftop/sim"
)

// What the time of an iteration is lost to.
const (
	lostRecompute = iota // tokens computed again after a preemption
	lostDrafts           // drafts that were rejected
	lostPadding          // rows and tokens computed for nobody
	lostSwap             // copies of KV to and from host memory
	lostHost             // waits for the host
	losses
)

// lost is the part of a span's time that goes to each loss, in femtoseconds. Copies and the host's time are told by the
// span; what is left is shared out by tokens computed, rounded down for each iteration, so that the sum
// does not depend on the lengths of spans.
func lost(s *sim.Span) (parts [losses]int64) {
	padded := s.PaddedRows + s.PaddedTokens
	if s.RecomputedTokens|s.Drafts|padded|s.SwappedBlocks == 0 && s.HostFemtos == 0 {
		return
	}
	n := int64(s.N)
	parts[lostSwap] = n * s.SwapFemtos
	parts[lostHost] = n*s.HostFemtos + n*(n-1)/2*s.HostSlope
	if s.RecomputedTokens|s.Drafts|padded == 0 {
		return
	}
	first, slope := s.First-s.SwapFemtos-s.HostFemtos, s.Slope-s.HostSlope
	tokens := int64(s.Computed() + padded)
	parts[lostRecompute] = portions(first, slope, n, int64(s.RecomputedTokens), tokens)
	parts[lostDrafts] = portions(first, slope, n, int64(s.Rejected()), tokens)
	parts[lostPadding] = portions(first, slope, n, int64(padded), tokens)
	return
}

// portions is the sum of ⌊(first+k·slope)·part/whole⌋ over k from 0 to n-1, for part ≤ whole < 2³¹.
func portions(first, slope, n, part, whole int64) int64 {
	if part == 0 {
		return 0
	}
	q := n*(first/whole) + n*(n-1)/2*(slope/whole)
	return q*part + int64(floors(uint64(n), uint64(whole), uint64(slope%whole*part), uint64(first%whole*part)))
}

// floors is the sum of ⌊(a·k+b)/m⌋ over k from 0 to n-1. It takes the whole multiples of m out of a and b and counts
// the points under the line that is left by the other axis, as Euclid's algorithm does.
func floors(n, m, a, b uint64) (sum uint64) {
	for {
		sum += n*(n-1)/2*(a/m) + n*(b/m)
		a, b = a%m, b%m
		hi, lo := bits.Mul64(a, n)
		lo, carry := bits.Add64(lo, b, 0)
		top, rest := bits.Div64(hi+carry, lo, m)
		if top == 0 {
			return sum
		}
		n, m, a, b = top, a, m, rest
	}
}
