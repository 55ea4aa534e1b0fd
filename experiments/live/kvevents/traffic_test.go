package kvevents

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"clifftop/experiments/scenario"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// setup resolves a scenario.
func setup(t *testing.T, text string) *scenario.Setup {
	t.Helper()
	s, err := scenario.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	u, err := s.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// output is the filler of the tests.
func output(request int64, k int) uint32 { return uint32(1e6 + request*1000 + int64(k)) }

// traffic is conversations, and their requests in order of arrival. Each turn has the prompt and the output of the one
// before as its beginning, and all conversations begin with one of two system prompts.
type traffic struct {
	requests []workload.Request
	prompts  [][]uint32
	next     int
}

// conversations draws conversations. An output has 60 tokens.
func conversations(seed uint64, sessions, turns int, adapters int32) *traffic {
	r, x := rand.New(rand.NewPCG(seed, 1)), new(traffic)
	type talk struct {
		prompt   []uint32
		segments []workload.Segment
		before   int64
	}
	talks := make([]talk, sessions)
	for turn := range turns {
		for s := range sessions {
			id, t := int64(len(x.requests)), &talks[s]
			if turn == 0 {
				for k := range 400 {
					t.prompt = append(t.prompt, uint32(s%2*1000+k))
				}
			} else {
				for k := range 60 {
					t.prompt = append(t.prompt, output(t.before, k))
				}
			}
			for range 16 + r.IntN(200) {
				t.prompt = append(t.prompt, r.Uint32N(100_000))
			}
			known := int((&workload.Content{Segments: t.segments}).Tokens())
			if turn > 0 {
				t.segments = append(t.segments, workload.Segment{ID: workload.OutputID(int32(s+1), int32(turn-1)), Tokens: 60})
				known += 60
			}
			t.segments = append(t.segments, segments(t.prompt, known)...)
			x.prompts = append(x.prompts, slices.Clone(t.prompt))
			x.requests = append(x.requests, workload.Request{ID: id, Arrival: clock.Time(id) * clock.Time(150*clock.Millisecond),
				Session: int32(s + 1), Turn: int32(turn), InputTokens: int32(len(t.prompt)), OutputTokens: 60,
				Adapter: int32(s) % (adapters + 1), Content: &workload.Content{Segments: slices.Clone(t.segments)}})
			t.before = id
		}
	}
	return x
}

// segments names the tokens from one on by their content, at most 16 at a time.
func segments(tokens []uint32, from int) (list []workload.Segment) {
	for from < len(tokens) {
		to := min(len(tokens), from-from%16+16)
		name := make([]byte, 0, 64)
		for _, id := range tokens[from:to] {
			name = append(name, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		}
		list = append(list, workload.Segment{ID: workload.SegmentID(string(name)), Tokens: int32(to - from)})
		from = to
	}
	return list
}

// Peek implements [workload.Source].
func (x *traffic) Peek() (clock.Time, bool) {
	if x.next == len(x.requests) {
		return 0, false
	}
	return x.requests[x.next].Arrival, true
}

// Next implements [workload.Source].
func (x *traffic) Next() workload.Request {
	x.next++
	return x.requests[x.next-1]
}

// Done implements [workload.Source].
func (x *traffic) Done(*workload.Request, workload.End) bool { return false }

// Err implements [workload.Source].
func (x *traffic) Err() error { return nil }

// text returns prompt and output of a request.
func (x *traffic) text(request int) []uint32 {
	list := slices.Clone(x.prompts[request])
	for k := range int(x.requests[request].OutputTokens) {
		list = append(list, output(int64(request), k))
	}
	return list
}

// caches follows the caches of all replicas.
type caches struct {
	event.Ignore
	held   map[int]map[uint64]bool
	resets int
}

// CacheChanged implements [event.CacheObserver].
func (o *caches) CacheChanged(c *event.CacheChange) {
	held := o.held[c.Replica]
	if held == nil {
		held = make(map[uint64]bool)
		o.held[c.Replica] = held
	}
	if c.Reset {
		o.resets++
		clear(held)
	}
	for _, b := range c.Blocks {
		if b.Stored {
			held[b.Key] = true
		} else {
			delete(held, b.Key)
		}
	}
}

// keys are the blocks of a replica.
func (o *caches) keys(replica int) []uint64 { return slices.Sorted(maps.Keys(o.held[replica])) }

// run notes and simulates the traffic of a scenario.
func run(t *testing.T, u *scenario.Setup, x *traffic, p *Publisher) *caches {
	t.Helper()
	for i := range x.requests {
		p.Note(x.requests[i].Content, x.prompts[i])
	}
	o := &caches{held: make(map[int]map[uint64]bool)}
	e, err := sim.NewFleet(u.Fleet(true), x, p, o)
	if err == nil {
		err = e.Run(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}
