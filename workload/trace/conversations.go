package trace

import (
	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// conversations tracks the sessions of a replay: follow-ups and overlapping requests.
type conversations struct {
	waiting     map[int64]followers // by the ID of the request that they wait for
	pending     pq.Queue[followers] // completed, by the send time of the next turn
	inFlight    map[int32]int32     // requests of each session in the system
	overlapping int64
}

// followers are the turns after a request.
type followers struct {
	request workload.Request // provides session and class
	then    []Turn
}

func newConversations() conversations {
	return conversations{waiting: map[int64]followers{}, inFlight: map[int32]int32{}}
}

// Overlapping returns the number of requests that were sent while an earlier request of their session was not
// answered. It is above 0 if the replay is slower than the recorded system, because rows do not wait.
func (c *conversations) Overlapping() int64 { return c.overlapping }

// ready returns when the next turn of any session is sent.
func (c *conversations) ready() (clock.Time, bool) {
	if c.pending.Len() == 0 {
		return 0, false
	}
	return clock.Time(c.pending.Top().Key), true
}

func (c *conversations) resume() Row {
	next := c.pending.Pop()
	s := next.Value
	r := Row{Request: s.request, Then: s.then[1:]}
	t := s.then[0]
	r.Arrival, r.Turn = clock.Time(next.Key), s.request.Turn+1
	r.InputTokens, r.OutputTokens, r.Content = t.InputTokens, t.OutputTokens, t.Content
	return r
}

// sent records a request in flight.
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

// answered schedules the turn that waited for the output of the request, unless that is after the end of the traffic.
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
	if next := at.Add(f.then[0].Wait); next < end {
		c.pending.Push(pq.Item[followers]{Value: f, Key: int64(next), Tie: f.request.ID})
	}
}
