package table

import (
	"fmt"
	"io"
	"math"
	"strings"

	"clifftop/report"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// sparklineWidth is the number of characters of a sparkline. The text beside it fits on the same line.
const sparklineWidth = 48

// WriteSparklines draws how a run went in a few lines, one character for a part of its time: the requests that ran and
// waited, the KV cache, the tokens produced, and the replicas that were ready, where they come and go. Each line begins
// at 0 and says what its highest character is. Runs of few parts are not drawn.
func WriteSparklines(w io.Writer, points []report.SeriesPoint) error {
	if len(points) < sparklineWidth/2 {
		return nil
	}
	t := &layout.Text{}
	end := points[len(points)-1].EndS
	t.Printf("\n%s0 to %s, one character for %s\n", label("over time"), layout.Seconds(end),
		layout.Seconds(end/float64(min(sparklineWidth, len(points)))))
	for _, line := range []struct {
		name string
		of   func(p *report.SeriesPoint) float64
		most func(v float64) string
	}{
		{"running", func(p *report.SeriesPoint) float64 { return p.RunningMean }, layout.Digits},
		{"queued", func(p *report.SeriesPoint) float64 { return p.QueueMean }, layout.Digits},
		{"KV", func(p *report.SeriesPoint) float64 { return stats.OrNaN(p.KVUsageMean) }, layout.Percent},
		{"tokens/s", func(p *report.SeriesPoint) float64 {
			return float64(p.OutputTokens) / (p.EndS - p.StartS)
		}, layout.Digits},
		{"ready", func(p *report.SeriesPoint) float64 { return stats.OrNaN(p.ReplicasReady) }, layout.Digits},
	} {
		values := make([]float64, len(points))
		for i := range points {
			values[i] = line.of(&points[i])
		}
		if drawn, most := layout.Spark(values, sparklineWidth); !math.IsNaN(most) {
			t.Printf("%s%s  up to %s\n", label(line.name), drawn, line.most(most))
		}
	}
	_, err := t.WriteTo(w)
	return err
}

func label(name string) string { return fmt.Sprintf("%-13s", strings.TrimSpace(name)) }
