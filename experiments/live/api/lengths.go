package api

import (
	"fmt"
	"math/rand/v2"

	"clifftop/experiments/scenario"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// lengths draws the output lengths of requests that do not say theirs.
type lengths struct {
	seed    uint64
	classes []string // their names
	laws    []workload.Outputs
	upTo    []float64 // cumulative weights of the classes
	sample  []sampled // of a trace, in place of laws
}

// sampled is a request of the scenario's trace.
type sampled struct {
	class  uint16
	output int32
}

// maxSampled is the number of requests that are read of a trace.
const maxSampled = 10_000

// newLengths returns the output lengths of a scenario's traffic.
func newLengths(u *scenario.Setup) (*lengths, error) {
	l := &lengths{seed: u.Scenario.Run.Seed}
	if r := u.Traffic.Recording; r != nil {
		return l, l.read(u, r)
	}
	var err error
	if l.laws, err = u.Traffic.Spec.Outputs(); err != nil {
		return nil, err
	}
	sum := 0.0
	for i := range l.laws {
		sum += l.laws[i].Weight
		l.upTo = append(l.upTo, sum)
		l.classes = append(l.classes, u.ClassName(uint16(i)))
	}
	return l, nil
}

// read takes the first requests of a trace.
func (l *lengths) read(u *scenario.Setup, r *scenario.Recording) error {
	src, err := r.Open()
	if err != nil {
		return err
	}
	most := uint16(0)
	for len(l.sample) < maxSampled {
		if _, ok := src.Peek(); !ok {
			break
		}
		q := src.Next()
		src.Done(&q, workload.End{At: q.Arrival, First: clock.Never, Tokens: q.OutputTokens})
		l.sample = append(l.sample, sampled{q.Class, q.OutputTokens})
		most = max(most, q.Class)
	}
	if err := src.Err(); err != nil {
		return err
	}
	if len(l.sample) == 0 {
		return fmt.Errorf("workload.trace has no requests to take output lengths from")
	}
	for i := range int(most) + 1 {
		l.classes = append(l.classes, u.ClassName(uint16(i)))
	}
	return nil
}

// classOf returns the index of a class, or -1.
func (l *lengths) classOf(name string) int {
	for i, c := range l.classes {
		if c == name && name != "" {
			return i
		}
	}
	return -1
}

// drawn has the values that the scenario's traffic draws for a request.
type drawn struct {
	class    uint16
	priority int16
	output   int32
}

// draw returns the class and the output length of a request, by its number. class is the index of a class, or -1 for a
// draw.
func (l *lengths) draw(request int64, class int, input int32) (d drawn) {
	draws := workload.NewRNG(l.seed, "served")
	draws.Seek(uint64(request), 0)
	random := rand.New(draws)
	if l.sample != nil {
		at := random.IntN(len(l.sample))
		for range l.sample { // the next one of the class, if there is one
			if class < 0 || int(l.sample[at].class) == class {
				break
			}
			at = (at + 1) % len(l.sample)
		}
		return drawn{class: l.sample[at].class, output: l.sample[at].output}
	}
	x := random.Float64()
	if class < 0 {
		class = 0
		for class < len(l.upTo)-1 && x*l.upTo[len(l.upTo)-1] >= l.upTo[class] {
			class++
		}
	}
	o := &l.laws[class]
	return drawn{uint16(class), o.Priority, o.Sample(input, draws)}
}
