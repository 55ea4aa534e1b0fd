// Package calibration fits a few constants of a GPU and its host to measurements: the fractions of peak compute and
// memory bandwidth that kernels reach, the overhead of each step and of each sequence, and the time of the API server.
// Measurements are whole runs, as package validation reads them, or single iterations.
//
// [FitRuns] and [FitIterations] minimize the logarithms of simulated over measured numbers under a pseudo-Huber loss. A
// prior keeps each constant near its value in the catalog, so a constant without evidence stays unchanged. The model is
// linearized around the best estimate and fitted again a few times. The [Result] has the error of each number before
// the fit, after the fit, and for a fit without its run.
package calibration
