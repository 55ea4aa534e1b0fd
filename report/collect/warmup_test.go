package collect

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

func TestMSER5(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	series := func(n int, at func(i int) float64) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = at(i)
		}
		return s
	}
	for _, test := range []struct {
		name     string
		series   []float64
		from, to int
		settled  bool
	}{
		{"constant", series(400, func(int) float64 { return 7 }), 0, 0, true},
		{"nothing", nil, 0, 0, true},
		{"noise", series(400, func(int) float64 { return rng.NormFloat64() }), 0, 60, true},
		{"step", series(400, func(i int) float64 { return 100*step(i < 80) + rng.NormFloat64() }), 80, 120, true},
		{"decay", series(400, func(i int) float64 {
			return 50*math.Exp(-float64(i)/30) + rng.NormFloat64()
		}), 60, 170, true},
		{"growth", series(400, func(i int) float64 { return float64(i) + rng.NormFloat64() }), 200, 200, false},
		{"holes", series(400, func(i int) float64 {
			if i%7 == 0 {
				return math.NaN()
			}
			return 100 * step(i < 80)
		}), 80, 80, true},
	} {
		cut, settled := MSER5(test.series)
		if cut < test.from || cut > test.to || settled != test.settled {
			t.Errorf("%s: cut %d, settled %v; want %d to %d, %v", test.name, cut, settled, test.from, test.to,
				test.settled)
		}
	}
}

func step(on bool) float64 {
	if on {
		return 1
	}
	return 0
}

// The reverse walk finds what the definition says.
func TestMSERAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 60).Draw(t, "z")
		statistic := func(d int) float64 {
			m, sum := stats.Mean(z[d:]), 0.0
			for _, v := range z[d:] {
				sum += (v - m) * (v - m)
			}
			return sum / float64((len(z)-d)*(len(z)-d))
		}
		least := math.Inf(1)
		for d := range min(len(z)/2+1, len(z)) {
			least = min(least, statistic(d))
		}
		if got := statistic(mser(z, len(z)/2)); got > least+1e-9 {
			t.Fatalf("cut at %d has %v, the least is %v", mser(z, len(z)/2), got, least)
		}
	})
}

// queueRun plays a queue with one server: requests at equal distances of a second that take the given service
// time each, and start with a backlog.
func queueRun(c *Collector, n, backlog int, service func(i int) float64) {
	arrivals := make([]float64, n+backlog)
	for i := range arrivals {
		arrivals[i] = math.Max(0, float64(i-backlog))
	}
	serve(c, arrivals, service)
}

// serve is the same for given instants of arrival.
func serve(c *Collector, arrivals []float64, service func(i int) float64) {
	var recs []*event.Record
	free := 0.0
	for i, arrival := range arrivals {
		start := math.Max(arrival, free)
		free = start + service(i)
		rec := served(int64(i), arrival, free, free, 1)
		rec.Scheduled = at(start)
		recs = append(recs, rec)
	}
	deliver(c, recs, 1)
}

// deliver tells the collector of requests, of which so many run at a time.
func deliver(c *Collector, recs []*event.Record, most int) {
	type change struct {
		at   clock.Time
		done bool
		rec  *event.Record
	}
	var events []change
	for _, r := range recs {
		events = append(events, change{r.Request.Arrival, false, r}, change{r.ClientLast, true, r})
	}
	slices.SortStableFunc(events, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var l event.Levels
	for _, e := range events {
		if e.done {
			c.Finished(e.rec)
			l.System--
		} else {
			c.Arrived(e.at, &e.rec.Request)
			l.System++
		}
		l.Running = min(l.System, most)
		l.Waiting = l.System - l.Running
		c.Levels(e.at, &l)
	}
}

func TestAutoWarmup(t *testing.T) {
	auto := Options{Warmup: Warmup{Auto: true}}
	rng := rand.New(rand.NewPCG(2, 3))
	c := New(auto)
	queueRun(c, 3000, 60, func(int) float64 { return .8 * (.5 + rng.Float64()) }) // the backlog takes 300 s
	w := c.Summary().Window
	if w.Stationary == nil || !*w.Stationary || w.WarmupS < 150 || w.WarmupS > 500 || w.GrowthRequestsPerS != nil {
		t.Errorf("backlog: %+v", w)
	}
	if l := c.Little(); l.System[0] != l.System[1] || l.Queue[0] != l.Queue[1] || l.Running[0] != l.Running[1] ||
		l.Queue[0].Lo == 0 {
		t.Errorf("Little's law: %+v", l)
	}

	c = New(auto)
	queueRun(c, 3000, 0, func(int) float64 { return .8 })
	if w := c.Summary().Window; w.Stationary == nil || !*w.Stationary || w.WarmupS != 0 {
		t.Errorf("steady from the start: %+v", w)
	}
}

// A queue with one server, exponential times and four fifths of the load that it can serve makes requests wait for
// 4 s. A backlog of 100 s at the start doubles that, and must be cut.
func TestBacklogIsCut(t *testing.T) {
	const runs, n, backlog = 12, 4500, 100
	means := map[Warmup]float64{}
	for _, u := range []Warmup{{}, {Auto: true}} {
		for seed := range uint64(runs) {
			rng := rand.New(rand.NewPCG(seed, 7))
			arrivals, at := make([]float64, backlog, backlog+n), 0.0
			for range n {
				at += rng.ExpFloat64() / .8
				arrivals = append(arrivals, at)
			}
			c := New(Options{Warmup: u})
			serve(c, arrivals, func(int) float64 { return rng.ExpFloat64() })
			means[u] += *c.Summary().Latency.Queue.Mean / 1000 / runs
		}
	}
	if auto, none := means[Warmup{Auto: true}], means[Warmup{}]; math.Abs(auto-4) > .6 || none < 7 {
		t.Errorf("requests wait for %.2f s, without a cut %.2f s; want 4", auto, none)
	}
}

// Arrivals whose rate doubles and halves again make the queue longer and shorter, which is no start to be cut, nor
// a system that has not settled.
func TestWanderingRateIsNoWarmup(t *testing.T) {
	for _, first := range []float64{.2, .8} {
		rng := rand.New(rand.NewPCG(1, uint64(10*first)))
		var arrivals []float64
		for at := 0.0; at < 8000; {
			rate := first
			if int(at/2000)%2 == 1 {
				rate = 1 - first
			}
			at += rng.ExpFloat64() / rate
			arrivals = append(arrivals, at)
		}
		c := New(Options{Warmup: Warmup{Auto: true}})
		serve(c, arrivals, func(int) float64 { return rng.ExpFloat64() })
		s := c.Summary()
		if w := s.Window; w.WarmupS > 800 || w.Stationary == nil || !*w.Stationary {
			t.Errorf("first %v/s: %+v", first, w)
		}
		near(t, "offered", s.Throughput.OfferedRequestsPerS, float64(s.Latency.E2E.N)/(s.Window.EndS-s.Window.StartS))
	}
}

// A system without a limit fills up at the start, which is no overload, whatever is cut.
func TestFillingIsNoOverload(t *testing.T) {
	for _, u := range []Warmup{{}, {Auto: true}} {
		for _, length := range []float64{3, 8, 15, 40} {
			c := New(Options{Warmup: u})
			const n = 3000
			var recs []*event.Record
			for i := range n {
				start := length * float64(i) / n
				rec := served(int64(i), start, start+.01, start+1, 10)
				rec.Scheduled = at(start)
				recs = append(recs, rec)
			}
			deliver(c, recs, n)
			s := c.Summary()
			short := slices.ContainsFunc(s.Warnings, func(w report.Warning) bool { return w.Code == "window_short" })
			if s.Window.GrowthRequestsPerS != nil || short != (length < report.MinResidences) {
				t.Errorf("%v s: %+v, short %v", length, s.Window, short)
			}
		}
	}
}

// An open loop with a fifth more than it can serve grows by a sixth of a request a second, whatever the warm-up.
func TestOverload(t *testing.T) {
	for _, o := range []Options{{}, {Warmup: Warmup{Auto: true}}, {Warmup: Warmup{Duration: 100 * clock.Second}}} {
		c := New(o)
		queueRun(c, 3000, 0, func(int) float64 { return 1.2 })
		s := c.Summary()
		w := s.Window
		if w.Stationary == nil || *w.Stationary || w.GrowthRequestsPerS == nil ||
			math.Abs(*w.GrowthRequestsPerS-1./6) > .01 {
			t.Errorf("%+v: %+v", o, w)
		}
		if !slices.ContainsFunc(s.Warnings, func(w report.Warning) bool { return w.Code == "not_stationary" }) {
			t.Errorf("%+v: no warning in %v", o, s.Warnings)
		}
		near(t, "completed per second", s.Throughput.RequestsPerS, math.Round(*s.Throughput.RequestsPerS*1e12)/1e12)
		if math.Abs(*s.Throughput.RequestsPerS-1/1.2) > .01 {
			t.Errorf("%+v: %v requests/s", o, *s.Throughput.RequestsPerS)
		}
	}
	closed := New(Options{Closed: true})
	queueRun(closed, 3000, 0, func(int) float64 { return 1.2 })
	if w := closed.Summary().Window; w.GrowthRequestsPerS != nil {
		t.Errorf("a closed loop cannot fill up: %+v", w)
	}
}

// A summary in the middle of a run is of what happened before, and changes nothing.
func TestPartial(t *testing.T) {
	whole, looked := New(Options{}), New(Options{})
	queueRun(whole, 200, 0, func(int) float64 { return .7 })
	stopped := New(Options{})
	stopped.SetPartial()
	r := &workload.Request{InputTokens: 1, OutputTokens: 1}
	for i := range 3 {
		stopped.Arrived(at(float64(i)), r)
		stopped.Levels(at(float64(i)), &event.Levels{System: i + 1, Waiting: i + 1})
	}
	s := stopped.Summary()
	if !s.Partial || s.Requests.Offered != 3 || s.Requests.InSystemAtEnd != 3 || s.Latency.TTFT.P50 != nil {
		t.Errorf("%+v", s)
	}
	// One request from 0 to 1 s, two from 1 to 2 s.
	near(t, "in system", s.Concurrency.InSystem.Mean, 1.5)
	queueRun(looked, 200, 0, func(i int) float64 {
		return .7
	})
	looked.Summary()
	if a, b := marshal(t, whole.Summary()), marshal(t, looked.Summary()); a != b {
		t.Errorf("looking changed the result: %s, want %s", b, a)
	}
}
