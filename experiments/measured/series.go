package measured

// Busy returns the samples from the first to the last one with a request that runs or waits: all of them where no
// sample counts requests or none has one. The engine idles before and after.
func Busy(series []Sample) []Sample {
	first, last := -1, -1
	for i := range series {
		if or(series[i].Running, 0)+or(series[i].Waiting, 0) > 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return series
	}
	for i, at := range series { // other engines at the same times
		if at.At == series[first].At && i < first {
			first = i
		}
		if at.At == series[last].At && i > last {
			last = i
		}
	}
	return series[first : last+1]
}
