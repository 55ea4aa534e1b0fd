// Package verdict compares variants of a scenario with a baseline and says which differences are real.
//
// Each variant is run several times; run k of all variants shares its random numbers, so that differences are paired.
// [CompareBy] takes the summaries and returns a [Result]: for each metric the difference, its 95 % confidence interval,
// its p-value and a verdict. Tests of several variants are corrected by the method of Holm.
//
// [Condition] is a limit on a change, such as e2e_p95<=+2%. A variant fails where a condition surely does not hold, or
// where a number that users feel is surely worse.
//
// Start with [CompareBy] and [Result].
package verdict
