package report

import (
	"io"

	"clifftop/report/layout"
)

// WriteClasses writes classes.csv of a run: a row for each class, with the columns of curve.csv that requests tell.
func WriteClasses(w io.Writer, list []Class) error {
	out := layout.NewCSVWriter(w)
	names, keep := ClassColumns()
	if err := out.Write(append([]string{"class"}, names...)); err != nil {
		return err
	}
	for i := range list {
		if err := out.Write(append([]string{list[i].Name}, list[i].CSVRow(keep)...)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// ClassColumns are the columns of curve.csv that requests tell, and their places.
func ClassColumns() (names []string, keep []int) {
	for i, path := range csvPaths() {
		if inClasses(path) {
			names, keep = append(names, MetricAt(path).CSV), append(keep, i)
		}
	}
	return names, keep
}
