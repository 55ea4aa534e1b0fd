package scenario

import (
	"slices"
	"sync/atomic"

	"clifftop/workload"
	"clifftop/workload/trace"
)

// DefaultPreset is the traffic of a scenario that names none.
const DefaultPreset = "chat-azure23"

// Traffic makes the requests of a run.
type Traffic struct {
	Spec      workload.Spec
	Closed    bool
	Recording *Recording            // nil for synthetic traffic
	clients   []workload.ClientSpec // of all requests, or of each class
	Requests  int64                 // expected; 0 when unknown
	Rate      float64               // mean requests per second; 0 when it follows from the service
}

// Dispersion is that of synthetic open traffic without phases, in requests; ok is false for other traffic.
func (t *Traffic) Dispersion() (d workload.Dispersion, ok bool) {
	if t.Recording != nil {
		return d, false
	}
	return t.Spec.Dispersion()
}

// Expected is about the number of requests of a run; 0 if it follows from the service.
func (t *Traffic) Expected() int64 {
	if t.Requests > 0 || t.Recording != nil {
		return t.Requests
	}
	return int64(t.Rate * t.Spec.Duration.Seconds())
}

// UsesAdapters reports whether requests may use LoRA adapters.
func (t *Traffic) UsesAdapters() bool {
	if r := t.Recording; r != nil {
		return r.adapters
	}
	return t.Spec.Adapters.Count > 0 || slices.ContainsFunc(t.Spec.Classes, func(c workload.ClassSpec) bool {
		return c.Adapters.Count > 0
	})
}

func (t *Traffic) hasSessions() bool {
	if t.Recording != nil {
		return t.Recording.sessions
	}
	return t.Spec.Sessions != nil || slices.ContainsFunc(t.Spec.Classes, func(c workload.ClassSpec) bool {
		return c.Sessions != nil
	})
}

// source makes the source of a run with a seed, whose clients are patient.
func (t *Traffic) source(seed uint64) (workload.Source, error) {
	if t.Recording != nil {
		return t.Recording.Open()
	}
	return workload.New(t.Spec, seed)
}

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
