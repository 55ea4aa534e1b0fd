package collect

import (
	"math/rand/v2"
	"testing"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// feed tells a collector of a made-up run of an engine with eight requests in the system: for each
// request an arrival, five changes of levels, three spans and a record.
type feed struct {
	c   *Collector
	rng *rand.Rand
	now clock.Time
	id  int64
}

func newFeed(c *Collector) *feed { return &feed{c: c, rng: rand.New(rand.NewPCG(1, 2))} }

func (f *feed) run(n int) {
	l := event.Levels{System: 8, Running: 8, Decoding: 8}
	s := event.Span{Progression: clock.Progression{Slope: 4e8}, Decodes: 8,
		Delivery: event.Delivery{First: 8, Later: 8}, Context: 5000, UsedBlocks: 400, MostBlocks: 400}
	for range n {
		rec := event.Record{Request: workload.Request{ID: f.id, Arrival: f.now, InputTokens: 500, OutputTokens: 200},
			Tokens: 200}
		f.id++
		u := f.rng.Uint64()
		f.c.Arrived(f.now, &rec.Request)
		l.System++
		f.c.Levels(f.now, &l)
		rec.Queued = f.now.Add(5 * clock.Millisecond)
		l.Waiting++
		f.c.Levels(rec.Queued, &l)
		rec.Scheduled = f.now.Add(7*clock.Millisecond + clock.Duration(u>>34))
		l.Waiting--
		l.Running++
		f.c.Levels(rec.Scheduled, &l)
		first := 15*clock.Millisecond + clock.Duration(u>>31&(1<<35-1))
		rec.FirstToken = rec.Scheduled.Add(first)
		l.Decoding++
		f.c.Levels(rec.FirstToken, &l)
		rec.LastToken = rec.FirstToken.Add(2*clock.Second + clock.Duration(u>>22))
		rec.ClientFirst, rec.ClientLast, rec.Released = rec.FirstToken, rec.LastToken, rec.LastToken
		f.c.Finished(&rec)
		l.System--
		l.Running--
		l.Decoding--
		f.c.Levels(rec.FirstToken.Add(clock.Millisecond), &l)
		f.now = f.now.Add(250 * clock.Millisecond)
		for k := range 3 {
			s.Start = max(s.End(s.N), f.now)
			s.First = 7e12 + int64(u>>40)
			s.N = 5 + k
			s.BlockFemtos = clock.Mul64(400, uint64(s.Femtos(s.N)))
			f.c.Edge(s.Start)
			f.c.Span(&s)
		}
	}
}

// BenchmarkCollectorRequest is all that a request costs: its arrival, five changes of levels, its
// record, and three spans.
func BenchmarkCollectorRequest(b *testing.B) {
	f := newFeed(New(Options{}))
	b.ReportAllocs()
	b.ResetTimer()
	f.run(b.N)
}

func BenchmarkCollectorSpan(b *testing.B) {
	c := New(Options{})
	s := event.Span{Progression: clock.Progression{First: 7e9, Slope: 4e5, N: 20}, Decodes: 8,
		Delivery: event.Delivery{First: 8, Later: 8}, Context: 5000,
		UsedBlocks: 400, MostBlocks: 400, BlockFemtos: clock.Uint128{Lo: 1e13}}
	b.ReportAllocs()
	for b.Loop() {
		c.Edge(s.Start)
		c.Span(&s)
		s.Start, s.Remainder = s.End(s.N), s.EndRemainder(s.N)
	}
}

func BenchmarkCollectorLevels(b *testing.B) {
	c := New(Options{})
	l := event.Levels{System: 8, Running: 8, Decoding: 8}
	var now clock.Time
	b.ReportAllocs()
	for b.Loop() {
		now += 5e7
		l.System ^= 1
		c.Levels(now, &l)
	}
}

func BenchmarkCollectorFinished(b *testing.B) {
	c := New(Options{})
	rec := served(0, 0, 1, 3, 100)
	b.ReportAllocs()
	for b.Loop() {
		rec.Request.Arrival += 1e9
		rec.Queued += 1e9
		rec.Scheduled += 1e9
		rec.FirstToken += 1e9
		rec.ClientFirst += 1e9
		rec.ClientLast += 1e9
		rec.Released += 1e9
		c.Finished(rec)
	}
}

func BenchmarkSummary(b *testing.B) {
	c := New(Options{Warmup: Warmup{Auto: true}})
	newFeed(c).run(200_000)
	b.ResetTimer()
	for b.Loop() {
		c.Summary()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200_000, "ns/request")
}
