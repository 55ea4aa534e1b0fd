package workload

import (
	"math"
	"strings"
	"testing"

	"clifftop/sim/clock"
)

// TestProfile counts arrivals by hour over some days: each hour has its share, within chance.
func TestProfile(t *testing.T) {
	for _, h := range HourlyProfiles() {
		cycle := len(h.Hourly)
		for _, begin := range []clock.Duration{0, 9*clock.Hour + 30*clock.Minute} {
			p := Profile{PerSecond: 0.5, Hourly: h.Hourly, Begin: begin}
			a := p.Start(4, 0)
			counts := make([]float64, cycle)
			n := 0.0
			end := clock.Time(cycle) * clock.Time(clock.Hour)
			last := clock.Time(0)
			for at := a.Next(); at < end; at = a.Next() {
				if at < last {
					t.Fatalf("%s: %v after %v", h.Name, at, last)
				}
				last = at
				counts[int(at.Add(begin)/clock.Time(clock.Hour))%cycle]++
				n++
			}
			sum := 0.0
			for _, v := range h.Hourly {
				sum += v
			}
			whole := 0.5 * 3600 * float64(cycle)
			if math.Abs(n-whole) > 4.5*math.Sqrt(whole) {
				t.Errorf("%s: %v arrivals, want %v", h.Name, n, whole)
			}
			for i, c := range counts {
				want := whole * h.Hourly[i] / sum
				if math.Abs(c-want) > 4.5*math.Sqrt(want)+1 {
					t.Errorf("%s: %v arrivals in hour %d, want %.0f", h.Name, c, i, want)
				}
			}
		}
	}
	quiet := make([]float64, 24)
	quiet[23] = 1
	if at := (Profile{PerSecond: 1, Hourly: quiet}).Start(1, 0).Next(); at < clock.Time(23*clock.Hour) {
		t.Errorf("the first arrives at %v, in an hour without any", at)
	}
}

func TestProfileFaults(t *testing.T) {
	hours := make([]float64, 24)
	for _, c := range []struct {
		Phase
		want string
	}{
		{Phase{Process: "profile", Rate: 1}, "workload.arrivals.hourly: 0 values"},
		{Phase{Process: "profile", Rate: 1, Hourly: hours}, "all hours are 0"},
		{Phase{Process: "profile", Rate: 1, Hourly: append(hours[:23:23], math.NaN())}, "NaN is not allowed"},
		{Phase{Process: "profile", Rate: 1, Hourly: append(hours[:23:23], 1), Begin: 8 * clock.Day},
			"workload.arrivals.begin"},
		{Phase{Process: "poisson", Rate: 1, Begin: clock.Hour}, "does not apply to poisson"},
	} {
		s := Spec{Arrivals: []Phase{c.Phase}, Input: LengthsSpec{Distribution: "fixed", Value: 1},
			Output: LengthsSpec{Distribution: "fixed", Value: 1}, Requests: 1}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.Phase, err, c.want)
		}
	}
}
