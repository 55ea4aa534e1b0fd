package trace

import (
	"fmt"
	"io"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Source replays a trace as a [workload.Source]. Rows arrive at their recorded times, whether or not earlier turns
// of their session have been completed. The follow-ups of a row wait for outputs.
type Source struct {
	*Transformed
	next Row
	id   int64
	end  clock.Time
	err  error
	over bool
	conversations
}

// Replay returns the source of a trace at a load. It returns the errors of [Transform].
func Replay(open Opener, l Load) (*Source, error) {
	changed, err := Transform(open, l)
	if err != nil {
		return nil, err
	}
	s := &Source{Transformed: changed, end: clock.Never, conversations: newConversations()}
	if l.Duration > 0 {
		s.end = clock.Time(l.Duration)
	}
	s.advance()
	return s, nil
}

func (s *Source) advance() {
	if s.over {
		return
	}
	r, err := s.reader.Next()
	switch {
	case err == io.EOF:
		s.over = true
	case err != nil:
		s.over, s.err = true, err
	case r.Arrival > clock.Time(clock.MaxRun) && s.end == clock.Never:
		s.over, s.err = true, fmt.Errorf("row %d arrives after more than %v (want a slice, or speedup)", r.ID,
			clock.MaxRun)
		closeReader(s.reader)
	case r.Arrival >= s.end:
		s.over = true
		closeReader(s.reader)
	default:
		s.next = r
	}
}

// Peek returns the arrival of the next request. Requests that wait for an output are not included.
func (s *Source) Peek() (clock.Time, bool) {
	if at, ok := s.ready(); ok && (s.over || at < s.next.Arrival) {
		return at, true
	}
	return s.next.Arrival, !s.over
}

// Next returns the next request.
func (s *Source) Next() workload.Request {
	var r Row
	if at, ok := s.ready(); ok && (s.over || at < s.next.Arrival) {
		r = s.resume()
	} else {
		r = s.next
		s.advance()
	}
	r.ID = s.id
	s.id++
	s.sent(&r)
	return r.Request
}

// Done releases the follow-ups of a request that has ended.
func (s *Source) Done(r *workload.Request, end workload.End) bool {
	s.answered(r, end.At, s.end)
	return false
}

// Err returns the error that ended the trace early, or nil.
func (s *Source) Err() error { return s.err }

var _ workload.Source = (*Source)(nil)
