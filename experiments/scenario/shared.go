package scenario

import (
	"encoding/json"
	"reflect"
	"sync"

	"clifftop/model"
)

// shared is what scenarios that were made of one another need again and again: tabulating the step times of a
// deployment takes longer than many a run.
type shared struct {
	rules    *Rules
	mu       sync.Mutex
	timers   map[timerKey]*onceTimer
	machines []described
}

// described is a deployment with its JSON form.
type described struct {
	deployment *model.Deployment
	text       []byte
}

// maxMachines is the number of deployments that are remembered: a scenario has few, but for a search over them.
const maxMachines = 8

// MachineJSON is the JSON form of a deployment, which is long: that of an equal one if there was one lately.
func (s *shared) machine(d *model.Deployment) ([]byte, error) {
	if s == nil {
		return json.Marshal(d)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.machines {
		if reflect.DeepEqual(m.deployment, d) {
			return m.text, nil
		}
	}
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if len(s.machines) == maxMachines {
		s.machines = s.machines[1:]
	}
	s.machines = append(s.machines, described{d, text})
	return text, nil
}

// timerKey is what a step timer depends on, in JSON.
type timerKey struct{ parts, machine string }

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
	s.mu.Lock()
	if s.timers == nil || len(s.timers) >= maxTimers {
		s.timers = map[timerKey]*onceTimer{}
	}
	t := s.timers[timerKey{string(key), string(machine)}]
	if t == nil {
		t = &onceTimer{}
		s.timers[timerKey{string(key), string(machine)}] = t
	}
	s.mu.Unlock()
	t.once.Do(func() { t.timer, t.err = make() })
	return t.timer, t.err
}
