package event_test

import (
	"fmt"
	"slices"
	"testing"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// plain implements no optional interface.
type plain struct{ log *[]string }

func (p plain) note(format string, args ...any) {
	*p.log = append(*p.log, fmt.Sprintf(format, args...))
}

func (p plain) Arrived(clock.Time, *workload.Request) { p.note("arrived") }
func (p plain) Finished(*event.Record)                { p.note("finished") }

// full implements all of them.
type full struct{ plain }

func (f full) Levels(clock.Time, *event.Levels)          { f.note("levels") }
func (f full) Span(*event.Span)                          { f.note("span") }
func (f full) Edge(past clock.Time) clock.Time           { return past + 5 }
func (f full) Gap(clock.Time, clock.Duration, int)       { f.note("gap") }
func (f full) Preempted(clock.Time)                      { f.note("preempted") }
func (f full) Dropped(clock.Time, int)                   { f.note("dropped") }
func (f full) Step(*event.Step)                          { f.note("step") }
func (f full) CacheChanged(*event.CacheChange)           { f.note("cache") }
func (f full) OfReplica(i int) event.Observer            { return plain{f.log} }
func (f full) Moved(clock.Time, event.Move)              { f.note("moved") }
func (f full) LinkBusy(clock.Time, int, int, bool)       { f.note("busy") }
func (f full) ReplicaState(clock.Time, int, event.State) { f.note("state") }

// tell reports one event of each kind.
func tell(f *event.Fanout) {
	f.Arrived(0, nil)
	f.Finished(nil)
	f.Levels(0, nil)
	f.Span(nil)
	f.Gap(0, 0, 1)
	f.Preempted(0)
	f.Dropped(0, 1)
	f.Step(nil)
	f.CacheChanged(nil)
	f.Moved(0, event.Move{})
	f.LinkBusy(0, 0, 0, true)
	f.ReplicaState(0, 0, event.Ready)
}

// A Fanout forwards all interfaces, also through another Fanout, and of a plain observer only the events that it wants.
func TestFanout(t *testing.T) {
	var log, plainLog []string
	inner := event.Join(full{plain{&log}})
	f := event.Join(nil, plain{&plainLog}, inner)
	tell(f)
	want := []string{"arrived", "finished", "levels", "span", "gap", "preempted", "dropped", "step", "cache", "moved",
		"busy", "state"}
	if !slices.Equal(log, want) {
		t.Errorf("a full observer gets %v, want %v", log, want)
	}
	if !slices.Equal(plainLog, want[:2]) {
		t.Errorf("a plain observer gets %v, want %v", plainLog, want[:2])
	}
	if got := f.Edge(10); got != 15 {
		t.Errorf("edge at %d, want 15", got)
	}
	if !f.WantsSteps() || !f.WantsCaches() || f.Replica(3) == nil || f.OfReplica(3) == nil {
		t.Error("steps or replicas get lost")
	}
}

// A plain observer asks for nothing that costs time.
func TestPlainObserver(t *testing.T) {
	f := event.Join(plain{new([]string)})
	if f.WantsSteps() || f.WantsCaches() || f.Replica(0) != nil || f.OfReplica(0) != nil || f.Edge(7) != clock.Never {
		t.Error("a plain observer asks for steps, replicas or edges")
	}
}
