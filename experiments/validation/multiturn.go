package validation

import (
	"cmp"
	"fmt"
	"slices"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Runs of several turns: users replay recorded sessions. The prompt of a turn is the recorded history, so that the
// recorded answer, and not the generated one, is part of the next prompt. The loop is closed: a turn is sent when the
// one before it has ended and the recorded pause is over. Only the first turn of a session comes at its recorded time.

// turn is one request of a session.
type turn struct {
	recorded
	session, trace string
	number         int
	cached         int     // tokens that an unlimited cache would have
	pause          float64 // seconds from the end of the turn before; of the first turn, its arrival
}

// blockOfSessions is the number of tokens of a block in files of sessions.
const blockOfSessions = 64

// longestPause is that of the client, in seconds.
const longestPause = 60

// sessionsOf sorts the requests of a file into sessions, in the order of their first requests. The pause before a turn is
// the measured one, because clients choose it: after an answer that did not come, it is the recorded one of the session.
func sessionsOf(list []recorded) [][]turn {
	var names []string
	of := map[string][]turn{}
	for _, q := range list {
		if of[q.session] == nil {
			names = append(names, q.session)
		}
		of[q.session] = append(of[q.session], turn{recorded: q, session: q.session, trace: q.trace, number: q.turn,
			cached: q.cachedBlocks * blockOfSessions})
	}
	var all [][]turn
	for _, name := range names {
		turns := of[name]
		slices.SortStableFunc(turns, func(a, b turn) int { return cmp.Compare(a.arrival, b.arrival) })
		for i := range turns {
			t := &turns[i]
			t.pause = t.arrival
			if i == 0 {
				continue
			}
			before := turns[i-1].last
			if t.pause = t.arrival - before; before < 0 || t.pause < 0 {
				t.pause = min(t.think, longestPause)
			}
		}
		all = append(all, turns)
	}
	slices.SortStableFunc(all, func(a, b []turn) int { return cmp.Compare(a[0].arrival, b[0].arrival) })
	return all
}

// meanOutput is the mean length of the answers that came, at least 1.
func meanOutput(list []recorded) int {
	sum, n := 0, 0
	for _, q := range list {
		if q.output > 0 {
			sum, n = sum+q.output, n+1
		}
	}
	return max(1, sum/max(1, n))
}

// conversation is a session that is replayed.
type conversation struct {
	turns    []workload.Request // without their times
	pauses   []clock.Duration
	next     int
	at       clock.Time // of the next turn, if it is known
	awaiting bool       // the turn before has not ended
}

// talks is the source of sessions.
type talks struct {
	list []conversation
	end  clock.Time // no turn is sent from then on
	id   int64
}

// newTalks makes the source of sessions for a run of so many seconds. Answers of unknown length have the mean one.
func newTalks(sessions [][]turn, output int, seconds float64) (*talks, error) {
	s := &talks{end: clock.Time(clock.FromSeconds(seconds))}
	for n, turns := range sessions {
		c := conversation{at: clock.Time(clock.FromSeconds(turns[0].pause))}
		var text workload.Content
		for i, t := range turns {
			if t.input < 1 {
				return nil, fmt.Errorf("session %s, turn %d: %d input tokens (want 1 or more)", t.session, t.number, t.input)
			}
			keep := 0
			if i > 0 {
				// Blocks are rounded down: what is cached up to the last whole block is the whole prompt before.
				before := turns[i-1].input
				if keep = min(t.cached, t.input); before-keep < blockOfSessions {
					keep = min(before, t.input)
				}
			}
			text = appendText(text, keep, t.input, fmt.Sprint(t.trace, "/", t.session, "/", t.number))
			r := workload.Request{Content: &workload.Content{Segments: slices.Clone(text.Segments)}, Session: int32(n) + 1,
				User: int32(n), Turn: int32(i), InputTokens: int32(t.input), OutputTokens: int32(t.output)}
			if r.OutputTokens < 1 {
				r.OutputTokens = int32(output)
			}
			c.turns, c.pauses = append(c.turns, r), append(c.pauses, clock.FromSeconds(t.pause))
		}
		s.list = append(s.list, c)
	}
	return s, nil
}

// appendText keeps so many tokens of a text and adds a segment of a name, so that it has a length.
func appendText(text workload.Content, keep, length int, name string) workload.Content {
	var list []workload.Segment
	left := int32(keep)
	for _, s := range text.Segments {
		if left <= 0 {
			break
		}
		s.Tokens = min(s.Tokens, left)
		left -= s.Tokens
		list = append(list, s)
	}
	if more := int32(length) - (int32(keep) - left); more > 0 {
		list = append(list, workload.Segment{ID: workload.SegmentID(name), Tokens: more})
	}
	return workload.Content{Segments: list}
}

// due is the conversation whose turn is next; nil if none is known.
func (s *talks) due() *conversation {
	var first *conversation
	for i := range s.list {
		c := &s.list[i]
		if c.awaiting || c.next == len(c.turns) || c.at >= s.end {
			continue
		}
		if first == nil || c.at < first.at {
			first = c
		}
	}
	return first
}

// Peek returns the arrival of the next turn that waits for no answer.
func (s *talks) Peek() (clock.Time, bool) {
	if c := s.due(); c != nil {
		return c.at, true
	}
	return 0, false
}

// Next sends that turn.
func (s *talks) Next() workload.Request {
	c := s.due()
	r := c.turns[c.next]
	r.ID, r.Arrival = s.id, c.at
	s.id++
	c.next++
	c.awaiting = true
	return r
}

// Done starts the pause before the next turn of the session.
func (s *talks) Done(r *workload.Request, end workload.End) bool {
	c := &s.list[r.Session-1]
	c.awaiting = false
	if c.next < len(c.turns) {
		c.at = end.At.Add(c.pauses[c.next])
	}
	return false
}

// Err is always nil.
func (s *talks) Err() error { return nil }

var _ workload.Source = (*talks)(nil)
