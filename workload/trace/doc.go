// Package trace reads recorded requests, and replays them at any load.
//
// [Open] reads one trace from an io.Reader, row by row in constant memory; results of benchmarks, which
// are one JSON document, are read whole. It tells the format by the header or by the keys of the first
// object, undoes gzip, and holds every row to the rules of [Code]. [Scan] reads a trace through and sums it up. [Replay] makes a [workload.Source] of a trace that
// can be opened more than once, cut, thinned, superposed or sped up as a [Load] says:
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
// [Formats] lists the formats. Another one is a file with a layout, and a line in the list that knows it.
// [OpenServeGen] generates the traffic that the clients of ServeGen describe.
package trace
