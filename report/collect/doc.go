// Package collect measures one run: a [Collector] observes the simulation and returns a [clifftop/report.Summary].
//
// Memory use is constant. Integrals over time are kept in integers of 128 bits, and the measurement window begins and
// ends at the edges of time buckets, so every number is a sum of whole buckets. Percentiles of requests use all samples
// up to [ExactSamples]; beyond that, and always for inter-token latencies, they come from histograms with a relative
// error of at most 1/256.
//
// Start with [New], pass the collector to the simulation as its observer, and call [Collector.Summary] at the end.
package collect
