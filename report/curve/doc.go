// Package curve analyses a sweep of loads: knee, peak, collapse, scaling law (USL), throughput bounds, capacity and the
// warning signs of overload.
//
// Start with [New], which takes the summaries of all loads and returns a [Curve]; [Read] does the same for results that
// are on disk, with one of them in memory at a time. defaultThresholds lists what the analysis calls high or flat.
package curve
