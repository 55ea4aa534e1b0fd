package trace

import "slices"

// RecordColumns returns the names of the columns that clifftop record adds to Clifftop's own format: the outcome of the
// request, and measurements at the client. A replay does not use them.
//
//	outcome        completed, cancelled (by the client), rejected (HTTP status 429 or 503) or failed
//	status         the HTTP status of the response
//	received       output tokens that the client got
//	counted        how they were counted: usage, chunks or text
//	ttft_s         seconds from the arrival to the first output of a stream
//	e2e_s          seconds from the arrival to the last output, or to the end of a response that is no stream
//	gap_mean_s, gap_p50_s, gap_p99_s, gap_max_s
//	               seconds between chunks with output: the mean, percentiles and the maximum
//	cached_tokens  tokens of the prompt that the server found in its prefix cache, if it says so
//	model          the name of the model in the request
func RecordColumns() []string {
	return []string{"outcome", "status", "received", "counted", "ttft_s", "e2e_s", "gap_mean_s",
		"gap_p50_s", "gap_p99_s", "gap_max_s", "cached_tokens", "model"}
}

// recordFormat is Clifftop's own format with the columns of clifftop record. A request without output was rejected or
// failed.
func recordFormat() format {
	f := nativeFormat()
	f.Format = Format{"clifftop-record", "CSV of clifftop, with outcome, ttft_s and other columns that " +
		"clifftop record measured", "Clifftop's own"}
	f.need = [][]string{append(slices.Clone(nativeColumns), "outcome", "ttft_s")}
	f.may = append(slices.Clone(f.may), RecordColumns()...)
	f.failures = true
	return f
}
