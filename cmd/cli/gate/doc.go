// Package gate tests the command line with random scenarios. It has no code outside its tests.
//
// A scenario is drawn from the JSON Schema of scenario files (experiments/scenario.schema.json), so that a new key is
// tested from the day that it exists. ranges_test.go narrows values to those that are quick to simulate. What the
// scenario refuses is removed from it until the rest is valid. Commands run in this process, so that a case takes
// milliseconds.
//
//   - TestScenarios asserts what must hold of the output of any run: no failure but the documented ones, no panic, no
//     number that physics forbids, percentiles in order, requests conserved, rows that agree with the summary.
//   - TestRelations asserts relations between the runs of two scenarios: names change nothing, a sweep's point equals
//     a run, doubled prices double the cost.
//   - TestFaults asserts that a scenario with one bad value is refused with one line that names its key.
//   - TestCorpus asserts nothing. It writes the scenarios of .ci/corpus.
//
// The tests are small in the short tier. -rapid.checks=5000 runs the whole: 5,000 scenarios, and as many cases of
// relations and of faults. With -v it lists the keys of the schema that no valid scenario had.
//
//	go test ./cmd/cli/gate -rapid.checks=5000 -timeout 60m
//
// While the gate was written, more than 9,000 scenarios were run in parts. The longest part with the final assertions
// had 1,250 scenarios in 340 s on a busy machine with 2 cores. The whole has not been run in one go yet, and some keys
// are rarely drawn: those of classes, of plan.engine and of llm-d's scorers.
package gate
