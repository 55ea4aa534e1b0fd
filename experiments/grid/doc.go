// Package grid divides a list of runs among tasks that know nothing of each other, and keeps what came of each run
// in a file of its own, so that a batch scheduler can start, kill and restart the tasks as it likes.
//
// A [Shard] says which runs of the list are a task's. A [Store] is a directory of results. A result's name is a hash
// of all that it depends on, and it gets that name when it is whole, so that one that is there is right, whoever
// made it and when. A [Manifest] names the results of the whole list: with it, and nothing else, the results of
// the tasks can be joined.
package grid
