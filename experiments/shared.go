package experiments

import (
	"encoding/json"
	"sync"

	"clifftop/model"
)

// shared is what scenarios that were made of one another need again and again: tabulating the step times of a
// deployment takes longer than many a run.
type shared struct {
	mu     sync.Mutex
	timers map[string]*onceTimer
}

// onceTimer is a step timer that is made when it is first asked for.
type onceTimer struct {
	once  sync.Once
	timer model.StepTimer
	err   error
}

// maxTimers bounds the number that are kept; a timer takes up to a megabyte.
const maxTimers = 256

// timer gives the timer that make makes for a machine, in JSON, and of what is described by parts, from an earlier
// scenario if there was one of the kind. Timers are immutable.
func (s *shared) timer(make func() (model.StepTimer, error), machine []byte, parts ...any) (model.StepTimer, error) {
	if s == nil {
		return make()
	}
	key, err := json.Marshal(parts)
	if err != nil {
		return make()
	}
	key = append(key, machine...)
	s.mu.Lock()
	if s.timers == nil || len(s.timers) >= maxTimers {
		s.timers = map[string]*onceTimer{}
	}
	t := s.timers[string(key)]
	if t == nil {
		t = &onceTimer{}
		s.timers[string(key)] = t
	}
	s.mu.Unlock()
	t.once.Do(func() { t.timer, t.err = make() })
	return t.timer, t.err
}
