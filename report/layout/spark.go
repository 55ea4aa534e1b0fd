package layout

import (
	"math"
	"strings"
)

// sparks are the heights of a sparkline.
var sparks = []rune("▁▂▃▄▅▆▇█")

// Spark draws values in one line of so many characters, from 0 up to the greatest of them: each character is the mean
// of those that fall to it, in parts where they do not divide. NaN stands for nothing, and is drawn as a space. It also
// returns what the highest character stands for, NaN if there is none.
func Spark(values []float64, width int) (line string, most float64) {
	width = min(width, len(values))
	if width <= 0 {
		return "", math.NaN()
	}
	means := make([]float64, width)
	most = math.NaN()
	for i := range means {
		means[i] = share(values, float64(i)*float64(len(values))/float64(width),
			float64(i+1)*float64(len(values))/float64(width))
		if !(means[i] <= most) && !math.IsNaN(means[i]) {
			most = means[i]
		}
	}
	var b strings.Builder
	for _, v := range means {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case most == 0:
			b.WriteRune(sparks[0])
		default:
			b.WriteRune(sparks[min(int(v/most*float64(len(sparks))), len(sparks)-1)])
		}
	}
	return b.String(), most
}

// share is the mean of the values from one place to another, each as long as 1.
func share(values []float64, from, to float64) float64 {
	sum, weight := 0.0, 0.0
	for i := int(from); i < len(values) && float64(i) < to; i++ {
		if w := math.Min(to, float64(i+1)) - math.Max(from, float64(i)); w > 0 && !math.IsNaN(values[i]) {
			sum += w * values[i]
			weight += w
		}
	}
	return sum / weight
}
