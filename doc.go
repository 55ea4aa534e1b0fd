// Package clifftop holds no code of its own: the simulator's rooms are the packages below it.
//
//	cmd/cli        the command line; cmd/clifftop is the program
//	experiments    scenarios, runs and sweeps: how to ask
//	report         metrics, percentiles, the knee, tables, pictures: what it means
//	sim            the event loop, replicas, batching policies, the KV pool: what happens
//	workload       who asks for what, and when
//	model          what is served and on what: LLMs, GPUs, deployments, step times
//
// Imports point down this list only; workload and model know nothing of each other.
package clifftop
