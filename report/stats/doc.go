// Package stats computes the statistics of results: means, intervals, percentiles and the [Histogram].
//
// Results have the same bytes on every platform. Sums are therefore taken in the order of the values, and quantiles of
// distributions are rounded to 12 digits; see [Rounded]. A number that is unknown is a nil pointer; see [Finite].
//
// Start with [Histogram] for large samples, [Percentiles] for exact ones, and [MeanInterval] or [RatioInterval] for
// confidence intervals.
package stats
