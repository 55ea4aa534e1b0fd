// Package plan holds the result of capacity planning and the arithmetic of its costs.
//
// [Result] lists the candidates (a GPU, its parallelism, the number of replicas) with their cost and how much of the
// SLO they use. The search for candidates is in [clifftop/experiments/planning].
//
// Start with [Result]; [Autoscale], [OnPrem] and [APIBreakEven] compute alternatives to the plan.
package plan
