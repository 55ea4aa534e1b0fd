package scenario

import (
	"sync/atomic"

	"clifftop/workload"
	"clifftop/workload/trace"
)

// Recording is a trace and how it is replayed.
type Recording struct {
	Opener   trace.Opener
	Load     trace.Load
	classes  []string                     // their names
	sessions bool                         // requests have sessions
	adapters bool                         // requests may use LoRA adapters
	Timeless bool                         // the trace has no arrivals: a rate makes them
	first    atomic.Pointer[trace.Source] // made when the scenario was resolved, for the first run
}

// Open makes the source of a run.
func (r *Recording) Open() (workload.Source, error) {
	if src := r.first.Swap(nil); src != nil {
		return src, nil
	}
	return trace.Replay(r.Opener, r.Load)
}
