// Package live runs a scenario against the wall clock: programs submit requests as they come, and get each chunk of
// output at its simulated instant. It is a driver of [clifftop/sim.Simulation], as experiments.Run is: the scheduler,
// the step times and the numbers are the same.
//
// A [Server] owns the simulation; one goroutine handles its events when they are due. [Server.Submit] sends a request
// and returns a [Stream] of its output. A request arrives at the simulated instant that corresponds to the wall clock
// then, and the journal notes that instant. Since the events before it have been handled, and no event after it, a run
// of the journal gives every token at the same picosecond.
package live
