// Package clifftop simulates LLM serving: it loads a scenario and runs it, sweeps its load, compares variants, or plans
// a deployment for it.
//
// A [Scenario] is the content of a scenario file: a model, GPUs, an engine, a workload, and what to report. [Load]
// reads one from a file, [Parse] from bytes. Five functions take a scenario and return a result that encodes to the
// same JSON as the command line prints:
//
//   - [Run] simulates one operating point.
//   - [Sweep] varies the load, or any other key, and returns the throughput–latency curve.
//   - [Compare] runs variants under the same random numbers and judges their differences.
//   - [Plan] ranks the deployments that meet an SLO by their cost.
//
// Results are deterministic: the same scenario and seed give the same bytes on any machine and any number of cores. A
// function that is interrupted through its context returns what it has, marked as partial, with the context's error.
//
// This package is a front door and holds no logic. The packages behind it can be used directly; imports point down this
// list only:
//
//	cmd/cli        the command line; cmd/clifftop is the program
//	experiments    scenario files, runs, sweeps, comparisons, plans, validation: how to ask
//	report         metrics, percentiles, the knee, tables, pictures: what the numbers mean
//	sim            the event loop, serving engines, scheduling policies, routers: what happens
//	workload       requests: their arrivals, lengths, content; traces
//	model          LLMs, GPUs, deployments and step times
//
// A scheduling policy of your own starts at package [clifftop/sim/sched]; docs/architecture.md shows the way of one
// request through all packages.
package clifftop

import (
	"context"

	"clifftop/experiments"
	"clifftop/experiments/compare"
	"clifftop/experiments/planning"
	"clifftop/experiments/scenario"
	"clifftop/experiments/sweep"
)

// Scenario is the content of a scenario file. The zero value is not valid: [Load] and [Parse] fill in the defaults.
type Scenario = scenario.Scenario

// Setting overrides one key of a scenario, as --set KEY=VALUE does: Setting{Key: "engine.max_num_seqs", Value: "256"}.
type Setting = scenario.Setting

// Load reads a scenario file (YAML). An empty path gives the defaults: Llama-3.1-8B on one H100 under chat traffic.
// Settings override the file. Mistakes in the file or the settings are reported together, each with its line and
// column.
func Load(path string, settings ...Setting) (*Scenario, error) {
	return scenario.Load(path, settings...)
}

// Parse is [Load] for the content of a file. Error messages call it name, and relative paths in it start at the folder
// of name.
func Parse(name string, data []byte, settings ...Setting) (*Scenario, error) {
	return scenario.Parse(name, data, settings...)
}

// Run simulates one operating point and says whether the run shows a steady state. The error is about bad input, about
// a run that cannot go on (for example a deadlock of the scheduler), or it is the context's.
func Run(ctx context.Context, s *Scenario, o RunOptions) (*RunResult, error) {
	return experiments.Settled(ctx, s, o)
}

// Sweep simulates a scenario at several values of its load, or of any other key, and returns the throughput–latency
// curve. Without values it searches for saturation first and places the loads around it.
func Sweep(ctx context.Context, s *Scenario, o SweepOptions) (*Curve, error) {
	return sweep.Run(ctx, s, o)
}

// Compare simulates variants with the same random numbers and returns, metric by metric, the paired differences to the
// first variant with confidence intervals and a verdict.
func Compare(ctx context.Context, variants []Variant, o CompareOptions) (*Verdict, error) {
	return compare.Run(ctx, variants, o)
}

// Plan lists deployments (GPUs, precision, parallelism, number of replicas) that meet the scenario's SLO under its
// traffic, ranked by cost. A plan without candidates names what rules each of them out.
func Plan(ctx context.Context, s *Scenario, o PlanOptions) (*PlanResult, error) {
	return planning.New(ctx, s, o)
}
