package simtest

import (
	"strings"
	"testing"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// TestRecorderExpands checks that a span and the iterations that it stands for make the same recording.
func TestRecorderExpands(t *testing.T) {
	whole := event.Span{
		Progression: clock.Progression{Start: 10, Remainder: 700, First: 5300, Slope: 400, N: 3},
		Wait:        4, Decodes: 2, Gaps: 2, Context: 50, UsedBlocks: 7,
		BlockFemtos: clock.Uint128{Lo: 7 * (5300 + 5700 + 6100)},
	}
	var a, b Recorder
	a.Span(&whole)
	for k := range 3 {
		one := whole
		one.Progression = whole.Tail(k)
		one.N, one.Context = 1, whole.Context+2*int64(k)
		one.BlockFemtos = clock.Mul64(7, uint64(one.First))
		if k > 0 {
			one.Wait = 0
		}
		b.Span(&one)
	}
	if d := Diff(&a, &b); d != "" {
		t.Error(d)
	}
	b.Iterations[1].Context++
	if d := Diff(&a, &b); !strings.Contains(d, "iteration 1: Context 52, other 53") {
		t.Errorf("Diff says %q", d)
	}
}

// TestRecorderSettles checks that the order of reports does not matter, nor values that last no time.
func TestRecorderSettles(t *testing.T) {
	var a, b Recorder
	a.Levels(5, &event.Levels{System: 1})
	a.Levels(5, &event.Levels{System: 2})
	a.Levels(6, &event.Levels{System: 2})
	a.Dropped(9, 1)
	a.Dropped(8, 1)
	a.Dropped(9, 1)
	b.Levels(5, &event.Levels{System: 2})
	b.Dropped(8, 1)
	b.Dropped(9, 2)
	if d := Diff(&a, &b); d != "" {
		t.Error(d)
	}
}
