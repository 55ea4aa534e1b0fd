package report

import (
	"fmt"
	"io"

	"clifftop/report/layout"

	"clifftop/report/stats"
)

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
	for _, m := range metricsAt(csvPaths()...) {
		names = append(names, m.CSV)
	}
	return names
}

// WriteCSV writes a header and one row, with the columns of curve.csv less the first.
func (s *Summary) WriteCSV(w io.Writer) error {
	out := layout.NewCSVWriter(w)
	if err := out.WriteAll([][]string{CSVColumns(), s.CSVRow()}); err != nil {
		return err
	}
	return out.Error()
}

// CSVRow returns the cells of the summary in a CSV file with the columns of the metric catalogue. Cells of a nil
// summary are empty.
func (s *Summary) CSVRow() []string {
	var cells []string
	for _, m := range metricsAt(csvPaths()...) {
		var v *float64
		if s != nil {
			v = m.Of(s)
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

// Tail is a percentile far out, or nil if there are fewer samples than it takes to know it. Of pooled runs each has to
// have so many: percentiles of few samples do not get better by averaging.
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
