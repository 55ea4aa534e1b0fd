package scenario

import (
	"reflect"
	"slices"
	"sync"

	"clifftop/model"
)

// shared has the rules of scenarios that were made of one another, and their step timers: tables of step times fill
// while a simulation runs, and serve the next one too.
type shared struct {
	rules  *Rules
	mu     sync.Mutex
	timers []*onceTimer // the latest last
}

// onceTimer is a step timer that is made when it is first asked for.
type onceTimer struct {
	of    []any // what it depends on
	once  sync.Once
	timer model.StepTimer
	err   error
}

// maxTimers bounds the number that are kept; a timer takes up to a megabyte.
const maxTimers = 256

// timer returns the timer that make makes. If an earlier scenario asked for a timer of equal values, it returns that
// one. Timers may be used by several simulations at once.
func (s *shared) timer(make func() (model.StepTimer, error), of ...any) (model.StepTimer, error) {
	if s == nil {
		return make()
	}
	t := s.entry(of)
	t.once.Do(func() { t.timer, t.err = make() })
	return t.timer, t.err
}

// entry returns the entry of equal values, or a new one.
func (s *shared) entry(of []any) *onceTimer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range slices.Backward(s.timers) {
		if reflect.DeepEqual(t.of, of) {
			return t
		}
	}
	if len(s.timers) == maxTimers {
		s.timers = s.timers[1:]
	}
	t := &onceTimer{of: of}
	s.timers = append(s.timers, t)
	return t
}
