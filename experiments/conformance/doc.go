// Package conformance replays records of real schedulers: which tokens the scheduler of an engine gave to which request
// in each iteration. A policy of package sched conforms if it makes the same decisions.
//
// [Read] reads a file of records. [Run] replays each [Case] on the simulator, and returns a [Report] with the number of
// cases that agree, by profile, and the first [Difference] of each other case. A profile is a set of cases with the
// same features. A case that no engine configuration can express is listed with the reason, and never counts as
// agreeing.
//
// A file is a sequence of JSON objects, and may be compressed with gzip. The first object names the format, the
// scheduler and its commit, and the number of cases; each further one is a case. The formats are vllm-1 (vllm.go) and
// sglang-1 (sglang.go).
package conformance
