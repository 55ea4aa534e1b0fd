package yamldoc

import (
	"testing"

	"pgregory.net/rapid"

	"clifftop/sim/clock"
)

// A duration is written in a unit from which the same one is read. 4,400 s were written as 1.2222222222222223h, which
// is a little more.
func TestDurationText(t *testing.T) {
	for d, want := range map[clock.Duration]string{
		4400 * clock.Second: "4400s", clock.Hour / 3: "20m", 90 * clock.Second: "1.5m", 36 * clock.Hour: "36h",
		1500 * clock.Microsecond: "1.5ms", clock.Nanosecond / 2: "0.5ns", 0: "0", clock.Hour + clock.Second: "3601s",
	} {
		if got := Duration(d).String(); got != want {
			t.Errorf("%d ps: %s, want %s", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]clock.Duration{1, clock.Nanosecond, clock.Microsecond, clock.Millisecond, clock.Second}).
			Draw(t, "unit")
		d := Duration(size * clock.Duration(rapid.Int64Range(0, 8_000_000).Draw(t, "number")))
		if back, ok := ParseDuration(d.String()); !ok || back != d {
			t.Fatalf("%d ps is written as %s, which is %d ps", d, d, back)
		}
	})
}
