package collect

import (
	"clifftop/report"
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
	spread := func(f *fraction) report.HourSpread {
		values := make([]float64, n)
		for i := range values {
			num, den := 0.0, 0.0
			for k := i * width; k < (i+1)*width; k++ {
				num += f.num[k]
				den += f.den[k]
			}
			values[i] = num / den
		}
		return report.SpreadOfHours(values, false)
	}
	h := &report.Hours{Of: n, LengthS: clock.Duration(int64(width) * c.line.width).Seconds()}
	latencies := c.latencyFractions(w)
	h.TTFT, h.TPOT, h.E2E = spread(&latencies[ttft]), spread(&latencies[tpot]), spread(&latencies[e2e])
	output := fraction{num: make([]float64, w.to-w.from), den: make([]float64, w.to-w.from)}
	for i := range output.num {
		output.num[i] = float64(c.line.buckets[w.from+i].output)
		output.den[i] = clock.Duration(c.line.width).Seconds()
	}
	h.OutputTokens = spread(&output)
	return h
}
