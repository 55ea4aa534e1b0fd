package trace

import (
	"clifftop/sim/clock"
	"clifftop/workload"
	"clifftop/workload/internal/heap"
)

// conversations are the sessions of a replay: what is to follow, and what overlaps.
type conversations struct {
	waiting     map[int64]followers // by the request that they wait for
	pending     heap.Heap[sending]  // answered, and waiting for the time
	inFlight    map[int32]int32     // requests of each session
	overlapping int64
}

// followers are the turns after a request.
type followers struct {
	request workload.Request // whose session and class they have
	then    []Turn
}

// sending is the next turn of a session, and when it is sent; ties go to the request that was sent first.
type sending struct {
	at clock.Time
	followers
}

func (s *sending) before(t *sending) bool {
	return s.at < t.at || s.at == t.at && s.request.ID < t.request.ID
}

func newConversations() conversations {
	return conversations{
		waiting: map[int64]followers{}, inFlight: map[int32]int32{}, pending: heap.Heap[sending]{Before: (*sending).before},
	}
}

// Overlapping is the number of requests up to now that were sent while an earlier one of their session had
// no answer yet: the replay is slower than the system that was recorded, and does not wait.
func (c *conversations) Overlapping() int64 { return c.overlapping }

// ready is when the next turn of any session is sent.
func (c *conversations) ready() (clock.Time, bool) {
	if c.pending.Len() == 0 {
		return 0, false
	}
	return c.pending.Top().at, true
}

// resume is that turn as a row.
func (c *conversations) resume() Row {
	s := c.pending.Pop()
	r := Row{Request: s.request, Then: s.then[1:]}
	t := s.then[0]
	r.Arrival, r.Turn = s.at, s.request.Turn+1
	r.InputTokens, r.OutputTokens, r.Content = t.InputTokens, t.OutputTokens, t.Content
	return r
}

// sent notes a request on its way.
func (c *conversations) sent(r *Row) {
	if len(r.Then) > 0 {
		c.waiting[r.ID] = followers{r.Request, r.Then}
	}
	if r.Session != 0 {
		if c.inFlight[r.Session] > 0 {
			c.overlapping++
		}
		c.inFlight[r.Session]++
	}
}

// answered lets what waited for the request come, before the end of the traffic.
func (c *conversations) answered(r *workload.Request, at, end clock.Time) {
	if r.Session != 0 {
		if n := c.inFlight[r.Session]; n > 1 {
			c.inFlight[r.Session] = n - 1
		} else {
			delete(c.inFlight, r.Session)
		}
	}
	if len(c.waiting) == 0 {
		return
	}
	f, ok := c.waiting[r.ID]
	if !ok {
		return
	}
	delete(c.waiting, r.ID)
	if s := (sending{at.Add(f.then[0].Wait), f}); s.at < end {
		c.pending.Push(s)
	}
}
