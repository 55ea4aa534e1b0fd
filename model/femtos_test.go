package model

import "testing"

// TestLongestSum: no part of a step time exceeds the limit, so that the sum of a few parts does not overflow.
func TestLongestSum(t *testing.T) {
	for _, u := range []uint128{{hi: 1 << (fractionBits - 4)}, {hi: 1<<(fractionBits-2) - 1},
		{hi: 1 << (fractionBits - 2)}} {
		if got := u.femtos(); got != maxFemtos {
			t.Errorf("%+v is %d fs, want at most %d", u, got, int64(maxFemtos))
		}
	}
	if u := (uint128{hi: 1<<(fractionBits-4) - 1}); u.femtos() >= maxFemtos || u.femtos() <= maxFemtos/2 {
		t.Errorf("%d fs", u.femtos())
	}
}
