package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"

	"clifftop/report/stats"
)

// column is a number of a summary under its name in curve.csv.
type column struct {
	name string
	get  func(*Summary) *float64
}

// columns are those of curve.csv after the load. Units are in the names; a cell is empty where the number
// is unknown or has no sample.
func columns() []column {
	return slices.Concat(trafficColumns(), latencyColumns(), engineColumns(), worthColumns())
}

// trafficColumns are what came, over what window, and how much of it was served.
func trafficColumns() []column {
	return []column{
		{"offered", func(s *Summary) *float64 { return count(s.Requests.Offered) }},
		{"completed", func(s *Summary) *float64 { return count(s.Requests.Completed) }},
		{"rejected", func(s *Summary) *float64 { return count(s.Requests.Rejected) }},
		{"rejected_busy", func(s *Summary) *float64 { return count(s.Requests.RejectedBusy) }},
		{"timed_out", func(s *Summary) *float64 { return count(s.Requests.TimedOut) }},
		{"window_s", func(s *Summary) *float64 { return stats.Finite(s.Window.EndS - s.Window.StartS) }},
		{"stationary", func(s *Summary) *float64 { return oneOrZero(s.Window.Stationary) }},
		{"window_residences", func(s *Summary) *float64 { return stats.Finite(s.Residences()) }},
		{"offered_requests_per_s", func(s *Summary) *float64 { return s.Throughput.OfferedRequestsPerS }},
		{"requests_per_s", func(s *Summary) *float64 { return s.Throughput.RequestsPerS }},
		{"output_tokens_per_s", func(s *Summary) *float64 { return s.Throughput.OutputTokensPerS }},
		{"input_tokens_per_s", func(s *Summary) *float64 { return s.Throughput.InputTokensPerS }},
		{"total_tokens_per_s", func(s *Summary) *float64 { return s.Throughput.TotalTokensPerS }},
	}
}

// latencyColumns are the mean and the percentiles of each latency.
func latencyColumns() []column {
	var cols []column
	for _, m := range []struct {
		name string
		of   func(*Summary) *Distribution
	}{
		{"ttft", func(s *Summary) *Distribution { return &s.Latency.TTFT }},
		{"tpot", func(s *Summary) *Distribution { return &s.Latency.TPOT }},
		{"itl", func(s *Summary) *Distribution { return &s.Latency.ITL }},
		{"e2e", func(s *Summary) *Distribution { return &s.Latency.E2E }},
		{"queue", func(s *Summary) *Distribution { return &s.Latency.Queue }},
	} {
		cols = append(cols,
			column{m.name + "_mean_ms", func(s *Summary) *float64 { return m.of(s).Mean }},
			column{m.name + "_p50_ms", func(s *Summary) *float64 { return m.of(s).P50 }},
			column{m.name + "_p90_ms", func(s *Summary) *float64 { return m.of(s).P90 }},
			column{m.name + "_p95_ms", func(s *Summary) *float64 { return m.of(s).P95 }},
			column{m.name + "_p99_ms", func(s *Summary) *float64 { return m.of(s).P99 }},
		)
	}
	return cols
}

// engineColumns are how full the engines were, and what they did.
func engineColumns() []column {
	return []column{
		{"in_system_mean", func(s *Summary) *float64 { return s.Concurrency.InSystem.Mean }},
		{"running_mean", func(s *Summary) *float64 { return s.Concurrency.Running.Mean }},
		{"decoding_mean", func(s *Summary) *float64 { return s.Concurrency.Decoding.Mean }},
		{"queue_depth_mean", func(s *Summary) *float64 { return s.Concurrency.QueueDepth.Mean }},
		{"busy_fraction", func(s *Summary) *float64 { return s.System.BusyFraction }},
		{"mfu", func(s *Summary) *float64 { return s.System.MFU }},
		{"mbu", func(s *Summary) *float64 { return s.System.MBU }},
		{"kv_usage_mean", func(s *Summary) *float64 { return s.System.KVUsage.Mean }},
		{"kv_usage_max", func(s *Summary) *float64 { return s.System.KVUsage.Max }},
		{"kv_reserved_mean", func(s *Summary) *float64 { return s.System.KVUsage.ReservedMean }},
		{"kv_usage_sd", func(s *Summary) *float64 { return s.System.KVUsage.SD }},
		{"preemptions", func(s *Summary) *float64 { return count(s.System.Preemptions) }},
		{"prefix_hit_rate", func(s *Summary) *float64 { return s.System.PrefixHitRate }},
		{"recomputed_tokens", func(s *Summary) *float64 { return count(s.Tokens.Recomputed) }},
		{"error_rate", func(s *Summary) *float64 { return s.System.ErrorRate }},
		{"gap_fraction", func(s *Summary) *float64 { return s.System.GapFraction }},
		{"gap_fraction_seed", func(s *Summary) *float64 { return s.System.GapFractionSeed }},
	}
}

// worthColumns are what the work was worth: by the objective, in money, and to clients that leave or come again.
func worthColumns() []column {
	return []column{
		{"attainment", func(s *Summary) *float64 { return s.Goodput.Attainment }},
		{"goodput_requests_per_s", func(s *Summary) *float64 { return s.Goodput.RequestsPerS }},
		{"goodput_output_tokens_per_s", func(s *Summary) *float64 { return s.Goodput.OutputTokensPerS }},
		{"usd_per_million_output_tokens", func(s *Summary) *float64 {
			if s.Cost == nil {
				return nil
			}
			return s.Cost.USDPerMillionOutputAtLoad
		}},
		{"cancelled", func(s *Summary) *float64 { return count(s.Requests.Cancelled) }},
		{"attempts", func(s *Summary) *float64 { return count(s.Requests.Attempts) }},
		{"retries", func(s *Summary) *float64 { return count(s.Requests.Retries) }},
		{"successful_output_tokens_per_s", func(s *Summary) *float64 { return s.Throughput.SuccessfulOutputTokensPerS }},
		{"wasted_output_tokens", func(s *Summary) *float64 { return count(s.Tokens.Wasted) }},
	}
}

func count(n int64) *float64 { return stats.Finite(float64(n)) }

// oneOrZero is 1 for yes, 0 for no, and nil where it is not known.
func oneOrZero(yes *bool) *float64 {
	switch {
	case yes == nil:
		return nil
	case *yes:
		return stats.Finite(1)
	}
	return stats.Finite(0)
}

// CSVColumns is the header of curve.csv after its first column, which is named after what varies.
// A cell is empty where the number is unknown or has no sample; stationary is 1 or 0.
func CSVColumns() []string {
	var names []string
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

// WriteCSV writes a header and one row, with the columns of curve.csv less the first.
func (s *Summary) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.WriteAll([][]string{CSVColumns(), s.CSVRow()}); err != nil {
		return err
	}
	return out.Error()
}

// CSVRow returns the cells of the summary in a CSV file with the columns of the metric catalogue. Cells of a nil
// summary are empty.
func (s *Summary) CSVRow() []string {
	var cells []string
	for _, c := range columns() {
		var v *float64
		if s != nil {
			v = c.get(s)
		}
		cells = append(cells, string(appendFloat(nil, v)))
	}
	return cells
}

// FewSamplesNote says why the p99 of a latency is missing in tables; it is empty where none is, for want of samples.
func (s *Summary) FewSamplesNote() string {
	if s == nil {
		return ""
	}
	for _, d := range []*Distribution{&s.Latency.TTFT, &s.Latency.TPOT} {
		if n := d.Samples(); n > 0 && n < MinSamplesP99 {
			return fmt.Sprintf("no p99 from fewer than %d samples in a run", MinSamplesP99)
		}
	}
	return ""
}

// Tail is a percentile far out, or nil if there are fewer samples than it takes to know it. Of pooled runs each has to have
// so many: percentiles of few samples do not get better by averaging.
func (d *Distribution) Tail(percentile *float64, least int64) *float64 {
	if d.Samples() < least {
		return nil
	}
	return percentile
}

// Samples is the number of samples that percentiles are made from.
func (d *Distribution) Samples() int64 {
	if d.fewest > 0 {
		return d.fewest
	}
	return d.N
}
