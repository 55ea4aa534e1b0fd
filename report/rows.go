package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"clifftop/report/layout"
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

// CurveColumns is the header of curve.csv after its first column, which is named after what varies.
// A cell is empty where the number is unknown or has no sample; stationary is 1 or 0.
func CurveColumns() []string {
	var names []string
	for _, c := range columns() {
		names = append(names, c.name)
	}
	return names
}

// WriteCSV writes curve.csv: a header, and a row for each point.
func (c *Curve) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write(append([]string{c.Over}, CurveColumns()...)); err != nil {
		return err
	}
	for i, p := range c.Points {
		s, err := c.Summary(i)
		if err != nil {
			return err
		}
		row := append([]string{strconv.FormatFloat(p.Value, 'g', -1, 64)}, s.row()...)
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteCSV writes a header and one row, with the columns of curve.csv less the first.
func (s *Summary) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.WriteAll([][]string{CurveColumns(), s.row()}); err != nil {
		return err
	}
	return out.Error()
}

func (s *Summary) row() []string {
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

// WriteMarkdown writes the points as a Markdown table for people, and below it what they show.
func (c *Curve) WriteMarkdown(w io.Writer) error {
	c, err := c.Shown()
	if err != nil {
		return err
	}
	var b strings.Builder
	head, rows := c.brief()
	b.WriteString("| " + strings.Join(head, " | ") + " |\n|" + strings.Repeat("---:|", len(head)) + "\n")
	for _, row := range rows {
		b.WriteString("| " + strings.Join(row, " | ") + " |\n")
	}
	if text := c.Omits(); text != "" {
		b.WriteString("\n" + text + "\n")
	}
	if lines := c.Findings(); len(lines) > 0 {
		b.WriteString("\n")
		for _, line := range lines {
			b.WriteString("* " + line[0] + ": " + line[1] + "\n")
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// brief are the few columns that fit a page. Beside a rate stands the one that there was.
func (c *Curve) brief() (head []string, rows [][]string) {
	isRate, precision := lastPart(c.Over) == "rate", 6
	if isRate {
		precision = 5
	}
	head = []string{lastPart(c.Over), "req/s", "out tok/s", "TTFT p50 ms", "p99 ms", "TPOT p50 ms", "p99 ms", "busy", "KV max"}
	if isRate {
		head = slices.Insert(head, 1, "offered")
	}
	for _, p := range c.Points {
		row := []string{layout.Significant(p.Value, precision)}
		if p.Short {
			row[0] += "*"
		}
		s := p.Summary
		if s == nil {
			s = &Summary{}
		}
		half := []string{"  ±"}
		for _, n := range pointNumbers(s, isRate) {
			row = append(row, layout.Cell(n.value))
			half = append(half, s.half(n.path, n.value))
		}
		rows = append(rows, row)
		if s.CI95Method == ByReplications && slices.ContainsFunc(half[1:], func(cell string) bool { return cell != "" }) {
			rows = append(rows, half)
		}
	}
	return head, rows
}

// FewSamplesNote says why percentiles of the table are missing; it is empty where none is, for want of samples.
func (c *Curve) fewSamples() string {
	for _, p := range c.Points {
		if text := p.Summary.FewSamplesNote(); text != "" {
			return text
		}
	}
	return ""
}

// FewSamplesNote says why the p99 of a latency is missing in tables; it is empty where none is, for want of samples.
func (s *Summary) FewSamplesNote() string {
	if s == nil {
		return ""
	}
	for _, d := range []*Distribution{&s.Latency.TTFT, &s.Latency.TPOT} {
		if n := d.samples(); n > 0 && n < MinSamplesP99 {
			return fmt.Sprintf("no p99 from fewer than %d samples in a run", MinSamplesP99)
		}
	}
	return ""
}

// quantity is a number of a summary, with its path there.
type quantity struct {
	path  string
	value *float64
}

// pointNumbers are the numbers of a row of a curve's table.
func pointNumbers(s *Summary, offered bool) []quantity {
	l, x := &s.Latency, &s.Throughput
	row := []quantity{
		{"throughput.offered_requests_per_s", x.OfferedRequestsPerS},
		{"throughput.requests_per_s", x.RequestsPerS}, {"throughput.output_tokens_per_s", x.OutputTokensPerS},
		{"latency_ms.ttft.p50", l.TTFT.P50}, {"latency_ms.ttft.p99", l.TTFT.Tail(l.TTFT.P99, MinSamplesP99)},
		{"latency_ms.tpot.p50", l.TPOT.P50}, {"latency_ms.tpot.p99", l.TPOT.Tail(l.TPOT.P99, MinSamplesP99)},
		{"system.busy_fraction", s.System.BusyFraction}, {"system.kv_usage.max", s.System.KVUsage.Max},
	}
	if !offered {
		row = row[1:]
	}
	return row
}

// Tail is a percentile far out, or nil if there are fewer samples than it takes to know it. Of pooled runs each has to have
// so many: percentiles of few samples do not get better by averaging.
func (d *Distribution) Tail(percentile *float64, least int64) *float64 {
	if d.samples() < least {
		return nil
	}
	return percentile
}

// samples is the number of samples that percentiles are made from.
func (d *Distribution) samples() int64 {
	if d.fewest > 0 {
		return d.fewest
	}
	return d.N
}
