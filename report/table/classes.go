package table

import (
	"fmt"

	"clifftop/report"
	"clifftop/report/layout"
)

// classGrid has a row for each class.
func classGrid(s *report.Summary, t *layout.Text) {
	if len(s.Classes) == 0 {
		return
	}
	rows := [][]string{{"class", "offered", "req/s", "tok/s", "TTFTp50", "p95", "TPOTp50", "p95", "good"}}
	for i := range s.Classes {
		k := &s.Classes[i]
		l := &k.Latency
		good := "–"
		if a := k.Goodput.Attainment; a != nil {
			good = layout.Percent(*a)
		}
		rows = append(rows, []string{k.Name, fmt.Sprint(k.Requests.Offered), layout.Cell(k.Throughput.RequestsPerS),
			layout.Cell(k.Throughput.OutputTokensPerS),
			layout.Cell(l.TTFT.P50), layout.Cell(l.TTFT.P95), layout.Cell(l.TPOT.P50), layout.Cell(l.TPOT.P95), good})
	}
	section(t, rows)
}
