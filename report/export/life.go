package export

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/event"
)

// traceLife has the data of a request in the system that a timeline needs beside its record.
type traceLife struct {
	kept      bool // it will be drawn
	seen      bool // by an iteration
	prefills  bool // it computes its prompt, or recomputes
	away      bool // it was preempted and is not back
	last      clock.Time
	chunks    []traceChunk
	absences  []traceAbsence
	recompute bool
}

// traceChunk is a part of a prompt that an iteration computes; traceAbsence the time that a preempted request waits.
type (
	traceChunk struct {
		start, end     clock.Time
		tokens, cached int32
		again          bool
	}
	traceAbsence struct{ start, end clock.Time }
)

// preempted notes that the request lost its seat.
func (l *traceLife) preempted() { l.away, l.prefills, l.recompute = true, true, true }

// scheduled notes what an iteration does for the request.
func (l *traceLife) scheduled(s *event.Share, start, end clock.Time) {
	if !l.seen {
		l.seen, l.prefills, l.away = true, true, false
	}
	if l.away {
		l.absences = append(l.absences, traceAbsence{l.last, start})
		l.away = false
	}
	if s.Loaded > 0 { // its KV is back: it decodes on
		l.prefills = false
	}
	if l.prefills && s.Tokens > 0 {
		l.chunks = append(l.chunks, traceChunk{start, end, s.Tokens, s.Cached, l.recompute})
	}
	if s.Emits {
		l.prefills = false
	}
	l.last = end
}

// traceLanes are the tracks on which the requests of a process are drawn, none over another.
type traceLanes struct {
	process, first int          // first is the thread of the first one
	ends           []clock.Time // of the last request of each
}

// take finds the lane that has been free for the shortest time at the instant from, and fills it up to another.
// Requests come by their ends, for which that takes the fewest lanes.
func (l *traceLanes) take(out *events, from, to clock.Time) track {
	best := -1
	for i, end := range l.ends {
		if end <= from && (best < 0 || end > l.ends[best]) {
			best = i
		}
	}
	if best < 0 {
		best = len(l.ends)
		l.ends = append(l.ends, 0)
		out.named("thread", track{l.process, l.first + best}, fmt.Sprintf("requests %d", best+1), l.first+best)
	}
	l.ends[best] = to
	return track{l.process, l.first + best}
}

// draw writes the slices of a request that has ended: the whole, its phases, and in these its chunks and absences.
func (l *traceLife) draw(out *events, lanes *traceLanes, rec *event.Record) track {
	end := lastSeen(rec)
	d := drawnRequest{out, lanes.take(out, rec.Request.Arrival, end), end}
	d.whole(rec)
	d.slice("front end", rec.Request.Arrival, rec.Queued)
	d.slice("queue", rec.Queued, rec.Scheduled)
	d.slice("prefill", rec.Scheduled, rec.FirstToken)
	d.slice("decode", rec.FirstToken, rec.LastToken)
	d.slice("to the client", rec.LastToken, rec.ClientLast)
	for _, c := range l.chunks {
		if c.end > end {
			break // it ended before
		}
		d.chunk(c)
	}
	for _, a := range l.absences {
		d.slice("preempted", a.start, a.end)
	}
	return d.on
}

// lastSeen is the last instant that is known of a request.
func lastSeen(rec *event.Record) clock.Time {
	end := rec.Request.Arrival
	for _, at := range [...]clock.Time{rec.Queued, rec.LastToken, rec.ClientLast, rec.Released, rec.Left} {
		if at != clock.Never {
			end = max(end, at)
		}
	}
	return end
}

// drawnRequest is where the slices of a request go, and up to when.
type drawnRequest struct {
	out *events
	on  track
	end clock.Time
}

func (d *drawnRequest) whole(rec *event.Record) {
	r, out := &rec.Request, d.out
	id, _ := r.First()
	out.begin('X', d.on, fmt.Sprintf("request %d", id))
	out.during(r.Arrival, d.end)
	out.openArgs()
	out.text("outcome", rec.Outcome.String())
	if rec.Refusal != event.NotRefused {
		out.text("refusal", rec.Refusal.String())
	}
	if n := r.Attempt(); n > 0 {
		out.number("attempt", int64(n))
	}
	if r.Session > 0 {
		out.number("session", int64(r.Session))
	}
	out.number("input_tokens", int64(r.InputTokens))
	out.number("cached_tokens", int64(rec.CachedTokens))
	out.number("output_tokens", int64(rec.Tokens))
	out.number("preemptions", int64(rec.Preemptions))
	out.closeArgs()
	out.end()
}

// slice writes a time of the request, up to its end; nothing of one that did not come.
func (d *drawnRequest) slice(name string, from, to clock.Time) {
	if to = min(to, d.end); from < to {
		d.out.begin('X', d.on, name)
		d.out.during(from, to)
		d.out.end()
	}
}

// chunk writes a part of the prompt.
func (d *drawnRequest) chunk(c traceChunk) {
	name := "chunk"
	if c.again {
		name = "recompute"
	}
	d.out.begin('X', d.on, name)
	d.out.during(c.start, c.end)
	d.out.openArgs()
	d.out.number("tokens", int64(c.tokens))
	d.out.number("cached_tokens", int64(c.cached))
	d.out.closeArgs()
	d.out.end()
}
