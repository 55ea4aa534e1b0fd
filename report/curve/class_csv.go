package curve

import (
	"io"
	"strconv"

	"clifftop/report/layout"

	"clifftop/report"
)

// WriteClassesCSV writes classes.csv of a sweep: a row for each class of each point, after the point's value.
func (c *Curve) WriteClassesCSV(w io.Writer) error {
	out := layout.NewCSVWriter(w)
	names, keep := report.ClassColumns()
	if err := out.Write(append([]string{c.Over, "class"}, names...)); err != nil {
		return err
	}
	for at, p := range c.Points {
		s, err := c.Summary(at)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		for i := range s.Classes {
			k := &s.Classes[i]
			if err := out.Write(append([]string{strconv.FormatFloat(p.Value, 'g', -1, 64), k.Name},
				k.CSVRow(keep)...)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}
