package clock_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim/clock"
)

func draw(t *rapid.T) clock.Progression {
	return clock.Progression{
		Start:     clock.Time(rapid.Int64Range(0, 1e15).Draw(t, "start")),
		Remainder: rapid.Int64Range(0, 999).Draw(t, "remainder"),
		First:     rapid.Int64Range(1, 1e14).Draw(t, "first"),
		Slope:     rapid.Int64Range(0, 1e10).Draw(t, "slope"),
		N:         rapid.IntRange(1, 3000).Draw(t, "n"),
	}
}

// Taking a iterations and then the rest ends where taking all does.
func TestProgressionSplits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		a := rapid.IntRange(0, p.N).Draw(t, "a")
		tail := p.Tail(a)
		if h := p.Head(a); h.End(a) != tail.Start {
			t.Fatalf("head ends at %v, tail starts at %v", h.End(a), tail.Start)
		}
		if tail.End(tail.N) != p.End(p.N) || tail.EndRemainder(tail.N) != p.EndRemainder(p.N) {
			t.Fatalf("split at %d: %v+%d, whole: %v+%d", a, tail.End(tail.N), tail.EndRemainder(tail.N), p.End(p.N),
				p.EndRemainder(p.N))
		}
	})
}

func TestFirstEndAtOrAfter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := draw(t)
		at := p.Start + clock.Time(rapid.Int64Range(-5, int64(p.End(p.N)-p.Start)+5).Draw(t, "at"))
		want := 0
		for want < p.N && p.End(want) < at {
			want++
		}
		if got := p.FirstEndAtOrAfter(at); got != want {
			t.Fatalf("first end at or after %v is the %d-th, want the %d-th", at, got, want)
		}
	})
}

// CapN keeps the sum in range, and gives up no more than it must.
func TestCapN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(1, 1<<61).Draw(t, "first")
		slope := rapid.Int64Range(0, 1<<61).Draw(t, "slope")
		n := rapid.IntRange(1, 1<<30).Draw(t, "n")
		got := clock.CapN(first, slope, n)
		sum := func(n int) float64 {
			return float64(n)*float64(first) + float64(n)*float64(n-1)/2*float64(slope)
		}
		if got < 1 || got > n || got > 1 && sum(got) > clock.MaxFemtos {
			t.Fatalf("CapN(%d, %d, %d) = %d sums to %g", first, slope, n, got, sum(got))
		}
		if got < n && sum(2*got+2) < clock.MaxFemtos/2 {
			t.Fatalf("CapN(%d, %d, %d) = %d is too careful", first, slope, n, got)
		}
	})
}

func TestFromSeconds(t *testing.T) {
	for s, want := range map[float64]clock.Duration{
		1.5e-3: 1500 * clock.Microsecond, -2: -2 * clock.Second, 4e-13: 0, 6e-13: 1,
		1e30: math.MaxInt64, -1e30: math.MinInt64, math.Inf(1): math.MaxInt64,
	} {
		if got := clock.FromSeconds(s); got != want {
			t.Errorf("FromSeconds(%g) = %d, want %d", s, int64(got), int64(want))
		}
	}
	if clock.FromSeconds(math.NaN()) != 0 {
		t.Error("NaN seconds are not 0")
	}
	if clock.Time(5).Add(math.MaxInt64) != clock.Never {
		t.Error("an instant past the end of time is not Never")
	}
}

func ExampleProgression() {
	// Two iterations of a third of a picosecond and a bit: the remainder carries over.
	p := clock.Progression{First: 700, N: 3}
	for k := range 4 {
		fmt.Println(int64(p.End(k)), p.EndRemainder(k))
	}
	// Output:
	// 0 0
	// 0 700
	// 1 400
	// 2 100
}
