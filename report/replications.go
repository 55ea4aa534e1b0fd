package report

import (
	"fmt"
	"math"

	"clifftop/report/layout"
)

// Methods by which confidence intervals are made.
const (
	ByReplications = "replications" // t or jackknife over runs with other random numbers
	ByBatchMeans   = "batch_means"  // the same over consecutive parts of one run
)

// Replications describes the runs that a summary pools.
type Replications struct {
	Runs  int      `json:"runs"`
	Seeds []uint64 `json:"seeds"`
	// Precision is the relative half width of intervals that was asked for; nil where the number of runs was.
	Precision *float64 `json:"precision"`
	// Widest is the widest of the intervals that precision was asked of, and HalfWidth its half width over the mean.
	Widest    string   `json:"widest,omitempty"`
	HalfWidth *float64 `json:"half_width_fraction"`
	// Stopped says why there were no more runs.
	Stopped string `json:"stopped"`
}

// Reasons to stop replicating.
const (
	StoppedByCount     = "count"         // there were as many as asked for
	StoppedByPrecision = "precision"     // the intervals are as narrow as asked for
	StoppedByCap       = "cap"           // there were as many as allowed, and the intervals are wider
	StoppedByOverload  = "overload"      // there is no steady state to know better
	StoppedByAlike     = "no_randomness" // the seed changes nothing
	StoppedByInterrupt = "interrupted"
)

// String says how many runs there were, and why no more.
func (r *Replications) String() string {
	text := fmt.Sprintf("%d with seeds %d to %d, pooled; ± is half of a 95 %% interval", r.Runs, r.Seeds[0],
		r.Seeds[len(r.Seeds)-1])
	if r.Precision == nil {
		return text
	}
	asked := layout.Percent(*r.Precision)
	got := ""
	if r.HalfWidth != nil {
		got = fmt.Sprintf(": %s is within ±%s", r.Widest, layout.Percent(*r.HalfWidth))
	}
	switch r.Stopped {
	case StoppedByPrecision:
		text += fmt.Sprintf(". Enough for the precision of %s%s", asked, got)
	case StoppedByCap:
		text += fmt.Sprintf(". NOT enough for the precision of %s, but all that are allowed%s", asked, got)
	case StoppedByOverload:
		text += fmt.Sprintf(". More would not give the precision of %s: the system is overloaded", asked)
	case StoppedByAlike:
		text += fmt.Sprintf(". More would not give the precision of %s: the seed changes nothing", asked)
	}
	return text
}

// PrecisionPaths are the numbers that are to be known well before replicating ends.
func PrecisionPaths() []string {
	return []string{"throughput.output_tokens_per_s", "latency_ms.ttft.mean", "latency_ms.tpot.mean",
		"latency_ms.e2e.mean"}
}

// HasIntervals reports whether each of the paths whose number is known has an interval.
func (s *Summary) HasIntervals(paths []string) bool {
	for _, p := range paths {
		if _, ok := s.CI95[p]; !ok && MetricAt(p).Of(s) != nil {
			return false
		}
	}
	return true
}

// Widest finds the widest interval of the paths, as half its width over the value. The path is empty where none has an
// interval, or a value other than 0.
func (s *Summary) Widest(paths []string) (path string, half float64) {
	for _, p := range paths {
		ci, ok := s.CI95[p]
		middle := (ci[0] + ci[1]) / 2
		if !ok || middle == 0 {
			continue
		}
		if h := (ci[1] - ci[0]) / 2 / math.Abs(middle); path == "" || h > half {
			path, half = p, h
		}
	}
	return path, half
}
