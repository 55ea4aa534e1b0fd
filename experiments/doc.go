// Package experiments runs scenarios.
//
// [Run] simulates a scenario once, [Replicate] several times with different seeds, runAll runs a list of setups on
// all processors. The packages beside it ask more: sweep for curves and capacities, compare for differences, planning
// for deployments and their cost, traces for recorded traffic, grid and merge for runs divided among tasks.
//
// A scenario is read and resolved by package scenario; its YAML and its error messages by scenario/yamldoc.
package experiments
