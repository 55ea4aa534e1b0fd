// Package workload generates requests: when they arrive, how long they are, and which tokens they share.
//
// A [Source] returns [Request] values in order of arrival. The simulator knows nothing else about traffic. Start
// with [New], which makes synthetic traffic from a [Spec], the workload section of a scenario:
//
//	spec := workload.Spec{
//		Arrivals: []workload.Phase{{Process: "poisson", Rate: 8}},
//		Input:    workload.LengthsSpec{Distribution: "lognormal", Mean: 512, CV: 0.8},
//		Output:   workload.LengthsSpec{Distribution: "fixed", Value: 247},
//		Requests: 10000,
//	}
//	source, err := workload.New(spec, seed)
//
// Package [clifftop/workload/trace] replays recorded traffic. [NewClients] adds client behaviour to any source:
// timeouts, retries, cancellations and reading time. Each attempt is then a [Request] of its own; its [Client]
// links it to the first attempt.
//
// [FindPreset] returns descriptions of real traffic, each with its data source. Two small interfaces are the
// extension points: [Lengths], a distribution of token counts, and process, an arrival process. Adding one takes
// a file that implements the interface and a case in the switch of [LengthsSpec] or [Phase].
//
// Random numbers depend only on the seed, their purpose and their position ([RNG]): request k keeps its lengths
// when arrivals, other requests or the simulated system change. Drawn numbers are rounded to whole tokens and
// nanoseconds, so that traffic is identical on all platforms.
package workload
