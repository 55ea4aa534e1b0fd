package simtest

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// Diff describes the earliest difference between two runs, or is empty if they are equal. Steps are
// compared only if both recordings have some, the blocks in use where both know them.
func Diff(a, b *Recorder) string {
	a.settle()
	b.settle()
	differences := []difference{
		compare("arrival", a.arrivals(), b.arrivals(), func(x flatArrival) clock.Time { return x.At }),
		compare("iteration", a.blurred(b), b.blurred(a), func(x Iteration) clock.Time { return x.Start }),
		compare("preemption", a.Preemptions, b.Preemptions, func(x clock.Time) clock.Time { return x }),
		compare("change of levels", a.Changes, b.Changes, func(x LevelChange) clock.Time { return x.At }),
		compare("gap", a.Gapped, b.Gapped, func(x Gap) clock.Time { return x.At - clock.Time(x.Gap) }),
		compare("chunk gap", a.chunkGaps(), b.chunkGaps(), func(Gap) clock.Time { return clock.Never - 1 }),
		compare("drop", a.Drops, b.Drops, func(x Drop) clock.Time { return x.At }),
		compare("move", a.Moves, b.Moves, func(x Move) clock.Time { return x.At }),
		compare("link", a.Links, b.Links, func(x LinkChange) clock.Time { return x.At }),
		compare("record", a.records(), b.records(), func(x flatRecord) clock.Time { return x.Record.Released }),
	}
	if len(a.Steps) > 0 && len(b.Steps) > 0 {
		differences = append(differences, compareSteps(a, b))
	}
	differences = slices.DeleteFunc(differences, func(d difference) bool { return d.text == "" })
	switch {
	case len(differences) > 0:
		return slices.MinFunc(differences, func(x, y difference) int { return cmp.Compare(x.at, y.at) }).text
	case a.BlockFemtos != b.BlockFemtos:
		return fmt.Sprintf("sum of BlockFemtos: %v, other %v", a.BlockFemtos, b.BlockFemtos)
	case a.MostBlocks != b.MostBlocks:
		return fmt.Sprintf("largest MostBlocks: %d, other %d", a.MostBlocks, b.MostBlocks)
	case a.EmptyFemtos != b.EmptyFemtos:
		return fmt.Sprintf("sum of EmptyFemtos: %v, other %v", a.EmptyFemtos, b.EmptyFemtos)
	case !slices.Equal(a.faults, b.faults):
		return fmt.Sprintf("faults: %q, other %q", a.faults, b.faults)
	}
	return ""
}

// blurred is the iterations without the blocks in use where the other recording does not know them.
func (t *Recorder) blurred(other *Recorder) []Iteration {
	list := slices.Clone(t.Iterations)
	for i := range list {
		if i < len(other.Iterations) && other.Iterations[i].UsedBlocks < 0 {
			list[i].UsedBlocks, list[i].EmptyBlocks = -1, -1
		}
	}
	return list
}

// flatArrival and flatRecord are equal if their requests have equal content: each run may have its own copies of the
// clients.
type (
	flatArrival struct {
		Arrival
		Client workload.Client
	}
	flatRecord struct {
		Record event.Record
		Client workload.Client
	}
)

func flat(r *workload.Request) (c workload.Client) {
	if r.Client != nil {
		c, r.Client = *r.Client, nil
	}
	return c
}

func (t *Recorder) arrivals() []flatArrival {
	list := make([]flatArrival, len(t.Arrivals))
	for i, a := range t.Arrivals {
		c := flat(&a.Request)
		list[i] = flatArrival{a, c}
	}
	return list
}

func (t *Recorder) records() []flatRecord {
	list := make([]flatRecord, len(t.Records))
	for i, rec := range t.Records {
		c := flat(&rec.Request)
		list[i] = flatRecord{rec, c}
	}
	return list
}

// difference is what two lists differ in first. The text is empty if in nothing.
type difference struct {
	at   clock.Time
	text string
}

// compare finds the first element in which two lists differ.
func compare[T comparable](what string, a, b []T, at func(T) clock.Time) difference {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(b):
			return difference{at(a[i]), fmt.Sprintf("%s %d: %+v, other none", what, i, a[i])}
		case i >= len(a):
			return difference{at(b[i]), fmt.Sprintf("%s %d: none, other %+v", what, i, b[i])}
		case a[i] != b[i]:
			return difference{min(at(a[i]), at(b[i])),
				fmt.Sprintf("%s %d: %s\n in %+v", what, i, fields(a[i], b[i]), a[i])}
		}
	}
	return difference{}
}

func compareSteps(a, b *Recorder) difference {
	for i := range min(len(a.Steps), len(b.Steps), len(a.Iterations)) {
		x, y := a.Steps[i], b.Steps[i]
		if !slices.Equal(x.Scheduled, y.Scheduled) || !slices.Equal(x.Preempted, y.Preempted) ||
			!slices.Equal(x.SwappedOut, y.SwappedOut) || x.FreeBlocks != y.FreeBlocks ||
			x.Running != y.Running || x.Waiting != y.Waiting {
			return difference{a.Iterations[i].Start, fmt.Sprintf("step %d: %+v\n other %+v", i, x, y)}
		}
	}
	return difference{}
}

// fields names the fields in which two values differ.
func fields(a, b any) string {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	if x.Kind() != reflect.Struct {
		return fmt.Sprintf("%v, other %v", a, b)
	}
	var list []string
	for i := range x.NumField() {
		if p, q := x.Field(i).Interface(), y.Field(i).Interface(); p != q {
			list = append(list, fmt.Sprintf("%s %+v, other %+v", x.Type().Field(i).Name, p, q))
		}
	}
	return strings.Join(list, "; ")
}
