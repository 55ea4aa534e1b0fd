// Package naive is the reference implementation of the serving engine. It is written to be obviously correct, not fast:
// it computes every iteration, sequence by sequence, with plain lists.
//
// [Run] simulates one engine until its source has no more requests. [RunLifetime] adds slowdowns and a crash.
// [Disaggregated] runs several engines that split prefill and decode and share one network.
// Package simtest compares the results with those of the real engine.
package naive
