// Package iterations compares the step times of the model with measured iterations of real engines.
//
// [Open] reads files of measured iterations and the list runs.csv beside them, which has the configuration of each
// file. [Score] computes the time of each iteration, and [Report] has the errors by kind of iteration, batch size,
// context and prompt tokens.
package iterations
