package workload

import (
	"fmt"
	"math/rand/v2"
)

// Outputs draws the output lengths of one class of a [Spec].
type Outputs struct {
	// Weight of the class, relative to the others.
	Weight float64
	// Priority of the requests of the class.
	Priority int16

	bodies bodies
}

// Sample draws the output length for a prompt of input tokens.
func (o *Outputs) Sample(input int32, src rand.Source) int32 {
	if o.bodies.given != nil {
		return o.bodies.given.SampleGiven(input, src)
	}
	return o.bodies.output.Sample(src)
}

// Outputs returns the laws of the output lengths, by class; one of traffic without classes. They serve prompts that
// come from elsewhere.
func (s Spec) Outputs() ([]Outputs, error) {
	classes := s.Classes
	if len(classes) == 0 {
		classes = []ClassSpec{s.all()}
	}
	var f fieldFaults
	var list []Outputs
	for i, c := range classes {
		key := "workload"
		if len(s.Classes) > 0 {
			key = fmt.Sprintf("workload.classes.%d", i)
		}
		o := Outputs{Weight: c.Weight, Priority: c.Priority}
		switch {
		case needs(c.Needs, key, "output", c.Output.Distribution == "", &f):
		case c.Output.Distribution == "given-input":
			o.bodies.given = c.Output.givenInput(key+".output", &f)
		default:
			o.bodies.output = c.Output.build(key+".output", &f)
		}
		o.bodies.cutOutputs(s.MaxTokens)
		list = append(list, o)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	return list, nil
}
