package collect

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"clifftop/report"
	"clifftop/report/curve"
	"clifftop/report/layout"
	"clifftop/report/table"
	"clifftop/sim/clock"
)

// Tables keep to 80 columns, whatever they have to say.
func TestTableWidth(t *testing.T) {
	slo := limited("ttft", 95, 200*clock.Millisecond)
	slo.Attainment = .9
	for _, n := range []int{0, 1, 50, 3000} {
		c := New(Options{SLO: slo, Warmup: Warmup{Auto: true}, UsableBlocks: 1e6, USDPerHour: 12.34,
			Work: &Work{1, 1, 1, 1, 1, 1, 1, 1}})
		c.AddWarning("uncalibrated", strings.Repeat("the constants of this card are guesses; ", 5))
		queueRun(c, n, 0, func(i int) float64 { return 1.3 })
		s := c.Summary()
		var b bytes.Buffer
		for _, p := range []report.Profile{report.DefaultProfile(),
			{Name: "impatient", TTFT: report.DefaultProfile().TTFT, TPOT: report.DefaultProfile().TPOT}} {
			if err := table.Write(s, &b, p); err != nil {
				t.Fatal(err)
			}
		}
		big := curve.New("rate", []curve.Point{{Value: 1, Summary: s}, {Value: 1234.5678, Summary: s}})
		if err := big.WriteTable(&b); err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(b.String(), "\n") {
			if utf8.RuneCountInString(line) > layout.Width {
				t.Errorf("%d requests: %d columns: %s", n, utf8.RuneCountInString(line), line)
			}
		}
		if refused := strings.Contains(b.String(), "no p99 from"); refused != (n > 0 && n < 1000) {
			t.Errorf("%d requests: p99 refused: %v\n%s", n, refused, b.String())
		}
	}
}
