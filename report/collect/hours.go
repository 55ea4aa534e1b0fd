package collect

import (
	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// hours compares the hours of a window, which begin with it and are as many whole buckets as fit an hour best. It is
// nil for less than two of them.
func (c summariser) hours(w *window) *report.Hours {
	width := int((3600*int64(clock.Second) + c.line.width/2) / c.line.width)
	n := 0
	if width > 0 {
		n = (w.to - w.from) / width
	}
	if n < 2 {
		return nil
	}
	length := clock.Duration(int64(width) * c.line.width).Seconds()
	means := c.latencyFractions(w)
	kept := c.kept.split(n, func(x *sample) int { return (c.line.index(x.arrival) - w.from) / width })
	var hours []*report.Summary
	for i := range n {
		s := &report.Summary{}
		from := w.from + i*width
		part := window{kept: &kept[i], from: from, to: from + width,
			start: max(w.start, clock.Time(int64(from)*c.line.width)),
			until: clock.Time(int64(from+width) * c.line.width)}
		part.end = part.until
		sum, d := c.line.total(part.from, part.to)
		c.latencies(s, &part, &sum, d)
		mean := func(f *fraction) *float64 {
			num, den := 0.0, 0.0
			for k := i * width; k < (i+1)*width; k++ {
				num += f.num[k]
				den += f.den[k]
			}
			return stats.Ratio(num, den)
		}
		l := &s.Latency
		l.TTFT.Mean, l.TPOT.Mean, l.E2E.Mean = mean(&means[ttft]), mean(&means[tpot]), mean(&means[e2e])
		s.Throughput.OutputTokensPerS = stats.Ratio(float64(sum.output), length)
		hours = append(hours, s)
	}
	return report.CompareHours(hours, length, false)
}
