package hours

import (
	"math"

	"clifftop/report/stats"
)

// Verdicts of [Evidence.Verdict].
const (
	Yes       = "yes"
	No        = "no"
	Undecided = "undecided"
)

// Evidence is what hours show about the share of all hours that meet the objective.
type Evidence struct {
	// Met of Of hours meet it.
	Met, Of int
	// Low and High are the one-sided bounds of the share by Clopper and Pearson at 95 %.
	Low, High float64
	// Distance is the quantile of the distances that belongs to the share asked for, and DistanceLow and DistanceHigh
	// are its interval at 90 %, so that each side has an error of 5 %. It assumes that the distances are normally
	// distributed.
	Distance, DistanceLow, DistanceHigh float64
}

// Weigh sums up hours for a share that is asked for.
func Weigh(list []Hour, share float64) Evidence {
	e := Evidence{Of: len(list)}
	distances := make([]float64, len(list))
	for i := range list {
		distances[i] = list[i].Distance
		if list[i].Met {
			e.Met++
		}
	}
	const oneSided = .95
	e.Low, e.High = stats.ShareAtLeast(e.Met, e.Of, oneSided), stats.ShareAtMost(e.Met, e.Of, oneSided)
	e.Distance, e.DistanceLow, e.DistanceHigh = stats.QuantileInterval(distances, share, 2*oneSided-1)
	return e
}

// Verdict says whether at least the share of all hours meets the objective. It is yes if the count shows it, or if the
// distances show it and the count does not contradict; it is no likewise.
func (e *Evidence) Verdict(share float64) string {
	seen := float64(e.Met) / math.Max(float64(e.Of), 1)
	switch {
	case e.Of == 0:
	case e.Low >= share, e.DistanceHigh <= 0 && seen >= share:
		return Yes
	case e.High < share, e.DistanceLow > 0 && seen < share:
		return No
	}
	return Undecided
}
