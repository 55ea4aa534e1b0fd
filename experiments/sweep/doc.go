// Package sweep varies the load, or another key of a scenario, and finds its saturation and its capacity. [Run] makes
// a curve, [Capacity] searches for the highest load that meets the SLO, [Saturation] estimates the highest
// throughput.
package sweep
