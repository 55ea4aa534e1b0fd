// Package verdict compares variants of a scenario with a baseline and says which differences are real.
//
// Each variant is run several times; run k of all variants shares its random numbers, so that differences are paired.
// [CompareBy] takes the summaries and returns a [Result]: for each metric the difference, its 95 % confidence interval,
// its p-value and a verdict. Tests of several variants are corrected by the method of Holm.
//
// Start with [CompareBy] and [Result].
package verdict
