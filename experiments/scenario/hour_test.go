package scenario_test

import (
	"math"
	"testing"

	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// TestShortHour: the rate is the mean of an hour that is shorter than 3,600 s too. The counts then vary as those of a
// Poisson process, although the rate of the default traffic varies from minute to minute.
func TestShortHour(t *testing.T) {
	s, err := scenario.Parse("hour.yaml", []byte("workload: {arrivals: {rate: 20}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	const lead, length = 100 * clock.Second, 300 * clock.Second
	for k := range 12 {
		seeded, err := u.Reseeded(k)
		if err != nil {
			t.Fatal(err)
		}
		h, err := seeded.Hour(lead, length)
		if err != nil {
			t.Fatal(err)
		}
		src, err := h.Source()
		if err != nil {
			t.Fatal(err)
		}
		n := 0.0
		for at, ok := src.Peek(); ok; at, ok = src.Peek() {
			r := src.Next()
			src.Done(&r, workload.End{At: at, First: at, Tokens: r.OutputTokens})
			if at >= clock.Time(lead) {
				n++
			}
		}
		if want := 20 * length.Seconds(); math.Abs(n-want) > 4.5*math.Sqrt(want) {
			t.Errorf("seed %d: %v requests in the hour, want %v", k, n, want)
		}
	}
}
