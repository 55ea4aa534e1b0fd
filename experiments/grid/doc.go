// Package grid divides a list of runs among independent tasks and keeps the result of each run in its own file, so that
// a batch scheduler can start, kill and restart tasks at any time.
//
// A [Shard] selects the runs of one task. A [Store] is a directory of results. The name of a result is a hash of all
// its inputs, and the file gets this name when it is complete, so a result that exists is correct, no matter which task
// wrote it. A [Manifest] lists the results of all runs. [Join] needs nothing else to join the results of the tasks.
package grid
