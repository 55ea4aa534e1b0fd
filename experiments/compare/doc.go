// Package compare runs variants of a scenario with the same random numbers and judges their differences. Start with
// [Run].
package compare
