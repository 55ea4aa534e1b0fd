// Package workload says who asks for what, and when.
//
// A [Source] hands out [Request] values in the order of their arrival; that is all the simulator
// knows of traffic. There are two kinds. Synthetic traffic is described by a [Spec], the workload
// part of a scenario, and made by [New]:
//
//	spec := workload.Spec{
//		Arrivals: []workload.Stage{{Process: "poisson", Rate: 8}},
//		Input:    workload.LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8},
//		Output:   workload.LengthsSpec{Distribution: "fixed", Value: 247},
//		Requests: 10000,
//	}
//	source, err := workload.New(spec, seed)
//
// Recorded traffic is replayed by package [clifftop/workload/trace].
//
// [NewClients] gives the requests of a source clients who give up, send again, lose interest, and read: each
// attempt is then a [Request] of its own, and [Client] says which one of which request.
//
// [FindPreset] looks up ready descriptions of real traffic, each with its origin. Under a Spec lie two
// small interfaces, which one may use alone: [Lengths], a law of token counts, and [Process], a law of
// arrivals. A new law is one file that implements the interface, and a line in the switch that
// knows its name.
//
// Every number depends on the seed, its purpose and its place ([RNG]): the k-th request keeps
// its lengths whatever happens to arrivals, to other requests, or in the simulated system. Drawn
// numbers are rounded to whole tokens and nanoseconds at once, so that traffic is the same on
// every platform.
package workload
