// Package validation holds simulated runs against measured ones.
//
// [Read] reads measured runs from CSV, one row for each run or stage of a run. [Plan] turns rows into simulations: the
// stages of one experiment are one run, and a row that no scenario can express is kept with the reason. [Run] simulates
// them side by side, and [Report] has the errors of each row and summaries by model, GPU and load.
//
// What a file of measurements leaves open is filled in by rules: properties of an engine's
// version, of a GPU or of a model's published settings, never of one run. Each result says which
// rules were applied to it.
package validation
