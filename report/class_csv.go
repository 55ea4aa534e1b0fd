package report

import (
	"encoding/csv"
	"io"
	"strings"
)

// WriteClasses writes classes.csv of a run: a row for each class, with the columns of curve.csv that requests tell.
func WriteClasses(w io.Writer, list []Class) error {
	out := csv.NewWriter(w)
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
	for i, name := range CSVColumns() {
		switch name {
		case "offered", "completed", "rejected", "offered_requests_per_s", "requests_per_s", "output_tokens_per_s",
			"input_tokens_per_s",
			"prefix_hit_rate", "attainment", "goodput_requests_per_s", "goodput_output_tokens_per_s":
		default:
			if !strings.HasSuffix(name, "_ms") || strings.HasPrefix(name, "itl_") {
				continue
			}
		}
		names, keep = append(names, name), append(keep, i)
	}
	return names, keep
}
