package simtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Recorder is an observer that records a run so that recordings of equal runs are equal, for all lengths of spans and
// orders of reports. The zero Recorder is ready for one run. The lists are in their final form after [Diff] or
// [CheckRecording]. The content of requests is left out.
type Recorder struct {
	// Cut, if positive, asks for an edge at each multiple of it.
	Cut clock.Duration

	// Arrivals are the requests sent.
	Arrivals []Arrival
	// Changes are those of the levels, with the last value of each instant.
	Changes []LevelChange
	// Iterations are the iterations of all spans.
	Iterations []Iteration
	// BlockFemtos and EmptyFemtos are the sums of those of the spans.
	BlockFemtos, EmptyFemtos clock.Uint128
	// MostBlocks is the largest one of the spans.
	MostBlocks int
	// Gapped are the gaps that no span carries, by instant and length.
	Gapped []Gap
	// Chunks are the gaps between chunks at clients that no iteration carries, and their numbers.
	Chunks map[clock.Duration]int
	// Preemptions are the instants at which a sequence was preempted.
	Preemptions []clock.Time
	// Drops are the numbers of tokens dropped, by instant.
	Drops []Drop
	// Moves are the KV blocks that began to move to and from tiers, summed by instant and sorted by Move. Links are the
	// changes of busy links of tiers, the last one of each instant.
	Moves []Move
	Links []LinkChange
	// Records are the requests ended, by instant and ID.
	Records []event.Record
	// Steps are the iterations in detail; only a [StepRecorder] has them.
	Steps []Step

	faults []string // calls that an observer must not get
}

// StepRecorder is a [Recorder] that wants every iteration in detail.
type StepRecorder struct{ Recorder }

// The events of a recording.
type (
	// Arrival is a call of [event.Observer.Arrived].
	Arrival struct {
		At      clock.Time
		Request workload.Request
	}
	// LevelChange is a call of [event.Observer.Levels].
	LevelChange struct {
		At     clock.Time
		Levels event.Levels
	}
	// Gap is a call of [event.Observer.Gap].
	Gap struct {
		At  clock.Time
		Gap clock.Duration
	}
	// Move sums the calls of [event.MoveObserver.Moved] for an instant and a tier.
	Move struct {
		At clock.Time
		event.Move
	}
	// LinkChange is a call of [event.MoveObserver.LinkBusy].
	LinkChange struct {
		At   clock.Time
		Tier int
		Busy bool
	}
	// Drop sums the calls of [event.Observer.Dropped] for an instant.
	Drop struct {
		At     clock.Time
		Tokens int
	}
)

// Iteration is one iteration of a span. The fields are those of [event.Span].
type Iteration struct {
	Start, End                      clock.Time
	Remainder, Femtos               int64
	Wait                            clock.Duration
	Decodes, Gaps, FirstTokens      int
	ChunkGaps                       int // as long as the iteration
	PrefillTokens, RecomputedTokens int
	LostTokens                      int
	Carry                           int64
	Context, Shared                 int64
	Drafts, Accepted, Discarded     int
	PaddedRows, PaddedTokens        int
	PaddedContext                   int64
	SwappedBlocks                   int
	SwapFemtos, HostFemtos          int64
	UsedBlocks, EmptyBlocks         int // -1 if unknown: within a span
	// Passages are the formatted passages through the stages of a pipeline, and Worked is the sum of their times, in
	// femtoseconds.
	Passages string
	Worked   int64
}

// Step is a [event.Step] without its span.
type Step struct {
	Scheduled             []event.Share
	Preempted, SwappedOut []int64
	FreeBlocks            int
	Running, Waiting      int
}

var (
	_ event.MoveObserver = (*Recorder)(nil)
	_ event.StepObserver = (*StepRecorder)(nil)
)

// Edge implements [event.Observer].
func (t *Recorder) Edge(past clock.Time) clock.Time {
	if t.Cut <= 0 {
		return clock.Never
	}
	return past - past%clock.Time(t.Cut) + clock.Time(t.Cut)
}

// Arrived implements [event.Observer].
func (t *Recorder) Arrived(at clock.Time, r *workload.Request) {
	if r.Arrival != at {
		t.fault("request %d: arrived at %v, sent at %v", r.ID, at, r.Arrival)
	}
	t.Arrivals = append(t.Arrivals, Arrival{at, *r})
	t.Arrivals[len(t.Arrivals)-1].Request.Content = nil
}

// Levels implements [event.Observer].
func (t *Recorder) Levels(at clock.Time, l *event.Levels) {
	if n := len(t.Changes); n > 0 && at < t.Changes[n-1].At {
		t.fault("levels at %v after those at %v", at, t.Changes[n-1].At)
	}
	t.Changes = append(t.Changes, LevelChange{at, *l})
}

// Span implements [event.Observer].
func (t *Recorder) Span(s *event.Span) {
	if edge := t.Edge(s.Start); s.N > 1 && s.Start < edge && edge < s.End(s.N) {
		t.fault("span of %d iterations from %v to %v across the edge at %v", s.N, s.Start, s.End(s.N), edge)
	}
	if s.N < 1 {
		t.fault("span of %d iterations at %v", s.N, s.Start)
	}
	if s.Plain && (s.RecomputedTokens|s.LostTokens|s.Drafts|s.Accepted|s.Discarded|s.PaddedRows|s.PaddedTokens|
		s.SwappedBlocks|s.EmptyBlocks != 0 || s.PaddedContext|s.SwapFemtos|s.Shared != 0 ||
		s.EmptyFemtos != (clock.Uint128{}) || s.Passages != nil) {
		t.fault("span %+v is not plain", s)
	}
	for k := range s.N {
		tail := s.Tail(k)
		it := Iteration{
			Start: tail.Start, End: tail.End(1), Remainder: tail.Remainder, Femtos: tail.First,
			Decodes: s.Decodes, Gaps: s.Gaps, FirstTokens: s.FirstTokens, ChunkGaps: s.Delivery.First,
			PrefillTokens: s.PrefillTokens, RecomputedTokens: s.RecomputedTokens, LostTokens: s.LostTokens,
			Carry:  s.CarryAfter(k),
			Drafts: s.Drafts, Accepted: s.Accepted, Discarded: s.Discarded,
			Context: s.Context + int64(k)*int64(s.Decodes), Shared: s.Shared, UsedBlocks: -1, EmptyBlocks: -1,
			PaddedRows: s.PaddedRows, PaddedTokens: s.PaddedTokens,
			PaddedContext: s.PaddedContext + int64(k)*int64(s.PaddedRows),
			SwappedBlocks: s.SwappedBlocks, SwapFemtos: s.SwapFemtos, HostFemtos: s.HostFemtos + int64(k)*s.HostSlope,
		}
		if s.Passages != nil {
			it.Passages, it.Worked = passages(s)
		}
		if k == 0 {
			it.Wait = s.Wait
		} else {
			it.Gaps, it.ChunkGaps = s.Decodes, s.Delivery.Later
		}
		if k == s.N-1 {
			it.UsedBlocks, it.EmptyBlocks = s.UsedBlocks, s.EmptyBlocks
		}
		t.Iterations = append(t.Iterations, it)
	}
	if n := s.Cycles(); n > 0 {
		t.chunkGap(s.Delivery.Cycle, int(n))
	}
	for _, g := range s.Delivery.Others {
		t.chunkGap(g.Length, g.N)
	}
	t.BlockFemtos, t.EmptyFemtos = t.BlockFemtos.Add(s.BlockFemtos), t.EmptyFemtos.Add(s.EmptyFemtos)
	t.MostBlocks = max(t.MostBlocks, s.MostBlocks)
}

// Gap implements [event.Observer].
func (t *Recorder) Gap(at clock.Time, gap clock.Duration, n int) {
	for range n {
		t.Gapped = append(t.Gapped, Gap{at, gap})
	}
}

func (t *Recorder) chunkGap(gap clock.Duration, n int) {
	if t.Chunks == nil {
		t.Chunks = make(map[clock.Duration]int)
	}
	t.Chunks[gap] += n
}

// chunkGaps are the gaps between chunks by length.
func (t *Recorder) chunkGaps() (list []Gap) {
	for _, gap := range slices.Sorted(maps.Keys(t.Chunks)) {
		list = append(list, Gap{clock.Time(t.Chunks[gap]), gap})
	}
	return list
}

// Preempted implements [event.Observer].
func (t *Recorder) Preempted(at clock.Time) { t.Preemptions = append(t.Preemptions, at) }

// Dropped implements [event.Observer].
func (t *Recorder) Dropped(at clock.Time, tokens int) { t.Drops = append(t.Drops, Drop{at, tokens}) }

// Moved implements [event.MoveObserver].
func (t *Recorder) Moved(at clock.Time, m event.Move) {
	for i := range t.Moves {
		if x := &t.Moves[len(t.Moves)-1-i]; x.At != at {
			break
		} else if x.Tier == m.Tier && x.Stored == m.Stored {
			x.Blocks += m.Blocks
			x.Bytes += m.Bytes
			return
		}
	}
	t.Moves = append(t.Moves, Move{at, m})
}

// LinkBusy implements [event.MoveObserver].
func (t *Recorder) LinkBusy(at clock.Time, replica, tier int, busy bool) {
	t.Links = append(t.Links, LinkChange{at, tier, busy})
}

// Finished implements [event.Observer].
func (t *Recorder) Finished(rec *event.Record) {
	t.Records = append(t.Records, *rec)
	t.Records[len(t.Records)-1].Request.Content = nil
}

// Step implements [event.StepObserver].
func (t *StepRecorder) Step(s *event.Step) {
	t.Steps = append(t.Steps, Step{slices.Clone(s.Scheduled), slices.Clone(s.Preempted), slices.Clone(s.SwappedOut),
		s.FreeBlocks, s.Running, s.Waiting})
}

// settleLinks keeps the last change of each instant and link, if it is one. It drops what happens after all requests
// have ended.
func (t *Recorder) settleLinks() {
	end := t.lastRelease()
	if n := len(t.Iterations); n > 0 {
		end = max(end, t.Iterations[n-1].End)
	}
	t.Links = slices.DeleteFunc(t.Links, func(c LinkChange) bool { return c.At >= end })
	slices.SortStableFunc(t.Links, func(a, b LinkChange) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.At, b.At))
	})
	var links []LinkChange
	for i, c := range t.Links {
		if i+1 < len(t.Links) && t.Links[i+1].At == c.At && t.Links[i+1].Tier == c.Tier {
			continue
		}
		n := len(links)
		if was := n > 0 && links[n-1].Tier == c.Tier && links[n-1].Busy; was != c.Busy {
			links = append(links, c)
		}
	}
	t.Links = links
}

// lastRelease is the instant at which the last request ended, or 0.
func (t *Recorder) lastRelease() (at clock.Time) {
	for i := range t.Records {
		at = max(at, t.Records[i].Released)
	}
	return at
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

func (t *Recorder) fault(format string, args ...any) {
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// settle sorts the lists and merges events of one instant.
func (t *Recorder) settle() {
	slices.SortFunc(t.Gapped, func(a, b Gap) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Gap, b.Gap)) })
	slices.Sort(t.Preemptions)
	slices.SortStableFunc(t.Moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Tier, b.Tier), compareBool(a.Stored, b.Stored))
	})
	slices.SortFunc(t.Records, func(a, b event.Record) int {
		return cmp.Or(cmp.Compare(a.Released, b.Released), cmp.Compare(a.Request.ID, b.Request.ID))
	})

	slices.SortFunc(t.Drops, func(a, b Drop) int { return cmp.Compare(a.At, b.At) })
	drops := t.Drops[:0]
	for _, d := range t.Drops {
		if n := len(drops); n > 0 && drops[n-1].At == d.At {
			drops[n-1].Tokens += d.Tokens
		} else {
			drops = append(drops, d)
		}
	}
	t.Drops = drops

	var changes []LevelChange
	last := event.Levels{}
	for i, c := range t.Changes {
		if i+1 < len(t.Changes) && t.Changes[i+1].At == c.At || c.Levels == last {
			continue
		}
		changes = append(changes, c)
		last = c.Levels
	}
	t.Changes = changes
	t.settleLinks()
}
