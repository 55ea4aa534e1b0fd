// Package trace reads recorded requests and replays them at any load. Start with [Replay], or with [Open] to read
// the rows of one file. README.md explains how to add a trace format.
//
// [Open] reads a trace from an io.Reader, row by row in constant memory; benchmark results that are one JSON
// document are read as a whole. It detects the format by the header or the keys of the first object, decompresses
// gzip, and checks each row against the rules of [Code]. [Scan] reads a trace to its end and returns statistics.
// [Replay] makes a [workload.Source] of a trace that can be opened more than once. A [Load] selects rows and thins,
// superposes or accelerates them:
//
//	open := func() (*trace.File, error) {
//		file, err := os.Open(path)
//		if err != nil {
//			return nil, err
//		}
//		return trace.Open(file, path, trace.Options{})
//	}
//	source, err := trace.Replay(open, trace.Load{Rate: 12, Seed: 1})
//
// [Formats] lists the formats. [OpenServeGen] generates traffic from ServeGen's descriptions of clients.
package trace
