// Package calibration fits a few constants of a GPU and its host to measurements of one's own: how much of the peak
// and of the bandwidth the kernels reach, what every step and every sequence in it costs beside, and how long the front
// end takes. Measurements are whole runs, as package validation reads them, or single iterations.
//
// The fit minimises the logarithms of simulated over measured numbers under a pseudo-Huber loss, with a prior that holds each
// constant near the catalogue's: what the measurements do not tell stays as it was. The model is linearised around the
// best guess and fitted again a few times. Each number's error is reported as it was before, as it is after, and as it
// would be had its run not been in the fit.
package calibration
