package curve

import (
	"io"
	"strconv"

	"clifftop/report/layout"

	"clifftop/report"
)

// WriteCSV writes curve.csv: a header, and a row for each point.
func (c *Curve) WriteCSV(w io.Writer) error {
	out := layout.NewCSVWriter(w)
	if err := out.Write(append([]string{c.Over}, report.CSVColumns()...)); err != nil {
		return err
	}
	for i, p := range c.Points {
		s, err := c.Summary(i)
		if err != nil {
			return err
		}
		row := append([]string{strconv.FormatFloat(p.Value, 'g', -1, 64)}, s.CSVRow()...)
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
