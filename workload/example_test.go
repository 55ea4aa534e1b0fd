package workload_test

import (
	"fmt"

	"clifftop/sim/clock"
	"clifftop/workload"
)

// Poisson traffic with lognormal prompt lengths and a fixed output length.
func ExampleNew() {
	spec := workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: 8}},
		Input:    workload.LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8, Max: 8192},
		Output:   workload.LengthsSpec{Distribution: "fixed", Value: 247},
		Requests: 3,
	}
	source, err := workload.New(spec, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, ok := source.Peek(); ok; _, ok = source.Peek() {
		r := source.Next()
		fmt.Println(r.ID, r.Arrival, r.InputTokens, r.OutputTokens)
	}
	// Output:
	// 0 0.042590848000s 343 247
	// 1 0.126409499000s 279 247
	// 2 0.419227940000s 295 247
}

// Two users in a closed loop wait for one second between an output and the next request.
func ExampleNew_closed() {
	source, err := workload.New(workload.Spec{
		Arrivals: []workload.Phase{{Process: "closed", Users: 2, ThinkTime: workload.Delay{Mean: clock.Second}}},
		Input:    workload.LengthsSpec{Distribution: "fixed", Value: 100},
		Output:   workload.LengthsSpec{Distribution: "fixed", Value: 10},
		Requests: 4,
	}, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for at, ok := source.Peek(); ok; at, ok = source.Peek() {
		r := source.Next()
		fmt.Printf("user %d at %g s\n", r.User, at.Seconds())
		source.Done(&r, workload.End{At: at.Add(500 * clock.Millisecond)}) // served at once
	}
	// Output:
	// user 0 at 0 s
	// user 1 at 0 s
	// user 0 at 1.5 s
	// user 1 at 1.5 s
}

// All faults are reported together.
func ExampleSpec_Validate() {
	spec := workload.Spec{
		Arrivals: []workload.Phase{{Process: "poisson", Rate: -1}},
		Input:    workload.LengthsSpec{Distribution: "gamma", Mean: 512},
		Output:   workload.LengthsSpec{Distribution: "fixed", Value: 247},
	}
	fmt.Println(spec.Validate())
	// Output:
	// workload.arrivals.rate: -1 is not allowed (want more than 0, at most 1e7)
	// workload.input.cv: 0 is not allowed (want more than 0)
}

// A preset with another request rate.
func ExampleFindPreset() {
	p, err := workload.FindPreset("chat-azure23")
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, err := p.Spec.WithRate(12)
	if err != nil {
		fmt.Println(err)
		return
	}
	input, output, err := spec.MeanTokens()
	fmt.Printf("%s: %s at %g/s, %.0f tokens in, %.0f out, %v\n", p.Provenance, spec.Arrivals[0].Process, spec.Rate(),
		input, output, err)
	_, err = workload.FindPreset("chat-azur")
	fmt.Println(err)
	// Output:
	// fitted: cox at 12/s, 1158 tokens in, 211 out, <nil>
	// workload.preset: "chat-azur" is not known (want chat-azure23 or chat-azure24)
}

func ExampleMean() {
	fmt.Printf("%.1f\n", workload.Mean(workload.Clipped{Law: workload.LognormalOf(512, 0.8), Min: 1, Max: 1000}))
	// Output: 467.8
}
