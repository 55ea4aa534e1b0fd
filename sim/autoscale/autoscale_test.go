package autoscale

import (
	"testing"

	"clifftop/sim/clock"
)

const second = clock.Second

// state is that of a fleet whose metric has been so much at every scrape of the last two minutes.
func state(now clock.Duration, wanted, ready int, sum float64) *State {
	s := &State{Now: clock.Time(now), Wanted: wanted, Ready: ready, Load: NewHistory(2 * clock.Minute)}
	for at := max(0, now-2*clock.Minute); at <= now; at += second {
		s.Load.Add(clock.Time(at), sum)
	}
	return s
}

// TestKEDA is D-05 of the scheduling notes, and what lies around it.
func TestKEDA(t *testing.T) {
	for _, k := range []struct {
		wanted  int
		waiting float64
		want    int
	}{
		{3, 33, 7}, // ⌈33/5⌉
		{5, 27, 5}, // 5.4 on average, within 10 % of 5
		{5, 28, 6}, // 5.6 is not
		{5, 22, 5}, // 4.4 is not either, but 300 s of patience keep the number
		{0, 0, 0},
		{0, 1, 1}, // awake
	} {
		p := NewKEDA(5)
		s := state(60*second, k.wanted, k.wanted, k.waiting)
		p.desires = []count{{clock.Time(30 * second), k.wanted}}
		if n, next := p.Turn(s); n != k.want || next != clock.Time(75*second) {
			t.Errorf("%d replicas, %v waiting: %d, next turn at %v, want %d at 75 s", k.wanted, k.waiting, n, next,
				k.want)
		}
	}
}

// TestKEDAScalesToZero lets a fleet cool down for 300 s, and only a fleet that may sleep.
func TestKEDAScalesToZero(t *testing.T) {
	for least, want := range []clock.Duration{360 * second, 0} {
		p := NewKEDA(5)
		var slept clock.Duration
		for at, n := clock.Duration(0), 2; at < 15*clock.Minute && slept == 0; at += 15 * second {
			waiting := 0.0
			if at < 60*second {
				waiting = 10
			}
			s := state(at, n, n, waiting)
			s.Least = least
			if n, _ = p.Turn(s); n == 0 {
				slept = at
			}
		}
		if want > 0 && slept != 330*second || want == 0 && slept != 0 {
			t.Errorf("at least %d: asleep at %v, last active at 30 s", least, slept)
		}
	}
}

// TestHPA follows Kubernetes' rules.
func TestHPA(t *testing.T) {
	for _, k := range []struct {
		name          string
		wanted, ready int
		sum           float64
		desire, want  int
	}{
		{"within 10 %", 4, 4, 43, 4, 4},
		{"up", 4, 4, 48, 5, 5},
		{"at most double", 8, 8, 800, 80, 16},
		{"or 4 more", 2, 2, 200, 20, 6},
		{"those that start count as idle", 8, 4, 80, 8, 8},
		{"but may not be enough", 8, 4, 120, 12, 12},
		{"down only after 300 s", 8, 8, 20, 2, 8},
		{"no replica to measure", 3, 0, 0, 3, 3},
	} {
		p := NewHPA(10)
		s := state(600*second, k.wanted, k.ready, k.sum)
		sum, _ := s.Load.Mean(s.Now, 0)
		if n := p.desire(s, sum); n != k.desire {
			t.Errorf("%s: desires %d, want %d", k.name, n, k.desire)
		}
		p.desires = []count{{clock.Time(320 * second), k.wanted}}
		if n, _ := p.Turn(s); n != k.want {
			t.Errorf("%s: %d, want %d", k.name, n, k.want)
		}
	}
	p := NewHPA(10)
	p.desires = []count{{clock.Time(299 * second), 8}, {clock.Time(400 * second), 3}}
	if n, _ := p.Turn(state(600*second, 8, 8, 20)); n != 3 {
		t.Errorf("down: %d, want the highest desire of the last 300 s, 3", n)
	}
}

// TestHPARate adds no more in one period, however often the loop turns.
func TestHPARate(t *testing.T) {
	p := NewHPA(1)
	p.Loop = 5 * second
	n := 2
	var course []int
	for at := 5 * second; at <= 30*second; at += 5 * second {
		n, _ = p.Turn(state(at, n, n, 1000))
		course = append(course, n)
	}
	for i, want := range []int{6, 6, 6, 12, 12, 12} {
		if course[i] != want {
			t.Fatalf("replicas %v, want 6 for 15 s, then 12", course)
		}
	}
}

// TestKnative is D-07 of the scheduling notes, and panic, and rest.
func TestKnative(t *testing.T) {
	p := NewKnative(10)
	if n := p.replicas(100); n != 15 {
		t.Errorf("100 requests at once, 10 a replica at 70 %%: %d, want ⌈14.29⌉ = 15", n)
	}
	if n, next := p.Turn(state(60*second, 10, 10, 100)); n != 15 || next != clock.Time(62*second) || p.panics {
		t.Errorf("%d, next turn at %v, panic %v; want 15, 62 s, false", n, next, p.panics)
	}
	// A burst fills the panic window only: 120 at once for 6 s are 12 on average over 60 s.
	burst := &State{Now: clock.Time(60 * second), Wanted: 4, Ready: 4, Load: NewHistory(2 * clock.Minute)}
	for at := clock.Duration(second); at <= 60*second; at += second {
		sum := 0.0
		if at > 54*second {
			sum = 120
		}
		burst.Load.Add(clock.Time(at), sum)
	}
	if n, _ := NewKnative(10).Turn(burst); n != 18 {
		t.Errorf("a burst of 120: %d, want ⌈120/7⌉ = 18", n)
	}
	p = NewKnative(10)
	p.Turn(burst)
	if n, _ := p.Turn(state(100*second, 18, 18, 7)); n != 18 {
		t.Errorf("40 s after a panic: %d, want 18, since no replica is removed", n)
	}
	if n, _ := p.Turn(state(122*second, 18, 18, 7)); n != 9 {
		t.Errorf("62 s after a panic: %d, want half of 18", n)
	}
	if n, _ := p.Turn(state(200*second, 1, 1, 0)); n != 1 {
		t.Errorf("no load: %d, want 1 for 30 s", n)
	}
	if n, _ := p.Turn(state(230*second, 1, 1, 0)); n != 0 {
		t.Errorf("no load for 30 s: %d, want 0", n)
	}
}

// What makes Knative panic is what the panic window asks for, however slowly it may scale up.
func TestKnativePanicsBeyondItsRate(t *testing.T) {
	p := NewKnative(10)
	p.ScaleUp = 1.5
	if n, _ := p.Turn(state(60*second, 4, 4, 80)); n != 6 || !p.panics {
		t.Errorf("80 at once on 4 replicas, where 28 are aimed at: %d, panic %v; want 6, true", n, p.panics)
	}
}

// TestHistory checks the means of windows.
func TestHistory(t *testing.T) {
	h := NewHistory(10 * second)
	if _, ok := h.Mean(0, 0); ok {
		t.Error("a mean of nothing")
	}
	for i := range 100 {
		h.Add(clock.Time(clock.Duration(i)*second), float64(i))
	}
	for _, k := range []struct {
		window clock.Duration
		want   float64
	}{{0, 99}, {second, 99}, {2 * second, 98.5}, {10 * second, 94.5}} {
		if x, ok := h.Mean(clock.Time(99*second), k.window); x != k.want || !ok {
			t.Errorf("%v: %v, want %v", k.window, x, k.want)
		}
	}
	if _, ok := h.Mean(clock.Time(200*second), second); ok {
		t.Error("a mean of an empty window")
	}
	if n := len(h.samples); n > 25 {
		t.Errorf("%d samples are kept", n)
	}
}

// TestValidate refuses what makes no sense.
func TestValidate(t *testing.T) {
	bad := []Policy{NewHPA(0), NewKEDA(-1), NewKnative(0), &HPA{Target: 1}, &KEDA{HPA: *NewHPA(1)},
		&Knative{Concurrency: 1}}
	for _, p := range bad {
		if p.Validate(1) == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
	for _, p := range []Policy{NewHPA(1), NewKEDA(1), NewKnative(1)} {
		if err := p.Validate(1); err != nil {
			t.Error(err)
		}
	}
	if NewHPA(1).Validate(0) == nil {
		t.Error("an HPA scales to zero")
	}
}
