package collect

import (
	"math"

	"clifftop/report/stats"
	"clifftop/sim/clock"
)

// Warmup says what is cut from the start of a run before it is measured. The zero Warmup cuts nothing.
type Warmup struct {
	// Auto finds the cut by MSER-5 on the TTFT and the queue length over time; it is at most half
	// the run.
	Auto bool
	// Duration is the cut where Auto is false.
	Duration clock.Duration
}

// MSER5 finds how many leading values of a series to cut so that the mean of the rest is known best.
// It averages five values at a time and minimises the variance of the remaining averages over
// their number (White 1997), cutting at most half of them. NaN marks a missing value. settled is
// false when the best cut is half the series: it has then not settled down, or is too short.
func MSER5(series []float64) (cut int, settled bool) {
	cut = mser5(series, len(series))
	return cut, cut == 0 || cut/5 < len(series)/5/2
}

// mser5 is the cut of [MSER5] where it is at most so many values, rounded up to whole batches.
func mser5(series []float64, most int) int {
	batches := make([]float64, 0, len(series)/5)
	for i := 0; i+5 <= len(series); i += 5 {
		sum, n := 0.0, 0.0
		for _, v := range series[i : i+5] {
			if !math.IsNaN(v) {
				sum += v
				n++
			}
		}
		batches = append(batches, sum/n)
	}
	return 5 * mser(batches, min((most+4)/5, len(batches)/2))
}

// mser is the number d of leading values, at most most, for which Σ(z-mean)²/n² over the n values
// behind them is least. NaN values do not count.
func mser(z []float64, most int) int {
	// Sums of what lies behind d, by a walk from the end, around a shift that keeps them small.
	shift := 0.0
	for _, v := range z {
		if !math.IsNaN(v) {
			shift = v
		}
	}
	best, least := 0, math.Inf(1)
	n, sum, squares := 0.0, 0.0, 0.0
	for d := len(z) - 1; d >= 0; d-- {
		if v := z[d] - shift; !math.IsNaN(v) {
			n++
			sum += v
			squares += v * v
		}
		if d > most || n == 0 {
			continue
		}
		spread := max(0, squares-sum*sum/n)
		// What is left of a constant after rounding is nothing.
		if spread < 1e-12*squares {
			spread = 0
		}
		if s := spread / (n * n); s <= least {
			best, least = d, s
		}
	}
	return best
}

// The start of a series is compared with so many parts of the rest, and differs where it lies so many standard errors
// from their mean. By Student's t with the 6 degrees of freedom that are left, a single start does so once
// in two thousand times; but the cut is chosen among hundreds as the one behind which the series is calmest.
const (
	startParts  = 10
	startErrors = 7
)

// startDiffers reports whether the mean of the first values differs from that of the others by more than chance. The
// error is that of the means of long parts, since neighbours in a queue are alike, told by the differences of
// neighbouring parts, which a trend hardly changes:
//
//	s² = Σ(x̄ᵢ₊₁ - x̄ᵢ)²/2(k-1)        J. von Neumann, Annals of Mathematical Statistics 12, 1941
func startDiffers(series []float64, cut int) bool {
	n := len(series) - cut
	parts := make([]float64, 0, startParts)
	for k := range startParts {
		if m := knownMean(series[cut+k*n/startParts : cut+(k+1)*n/startParts]); !math.IsNaN(m) {
			parts = append(parts, m)
		}
	}
	start := knownMean(series[:cut])
	if len(parts) < startParts/2 || math.IsNaN(start) {
		return false
	}
	squares := 0.0
	for i, m := range parts[1:] {
		squares += (m - parts[i]) * (m - parts[i])
	}
	variance := squares / float64(2*(len(parts)-1))
	se := math.Sqrt(variance * (float64(n)/startParts/float64(cut) + 1/float64(len(parts))))
	return math.Abs(start-stats.Mean(parts)) > startErrors*se
}

// knownMean is the mean of the values that are not NaN; NaN where there is none.
func knownMean(series []float64) float64 {
	sum, n := 0.0, 0.0
	for _, v := range series {
		if !math.IsNaN(v) {
			sum += v
			n++
		}
	}
	return sum / n
}

// growth is the slope of a series by least squares, per step.
func growth(series []float64) float64 {
	n := float64(len(series))
	var sum, moment float64
	for i, v := range series {
		sum += v
		moment += v * (float64(i) - (n-1)/2)
	}
	return moment * 12 / (n * (n*n - 1))
}
