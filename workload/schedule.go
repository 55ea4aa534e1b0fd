package workload

import (
	"clifftop/internal/pq"
	"clifftop/sim/clock"
)

// schedule orders numbered senders (users, conversations or sources) by the instant at which they send next; of equal
// instants the lower number comes first.
type schedule struct{ pq.Queue[struct{}] }

func (s *schedule) push(at clock.Time, sender int32) {
	s.Push(pq.Item[struct{}]{Key: int64(at), Tie: int64(sender)})
}

// next returns the earliest instant; the schedule must not be empty.
func (s *schedule) next() clock.Time { return clock.Time(s.Top().Key) }

func (s *schedule) pop() (at clock.Time, sender int32) {
	item := s.Pop()
	return clock.Time(item.Key), int32(item.Tie)
}
