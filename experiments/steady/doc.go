// Package steady finds the saturation rates of a system and says whether a run shows a steady state. [Find] is the one
// estimator behind run, sweep, compare, plan and the playground. [Judge] compares a run with it.
package steady
