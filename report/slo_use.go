package report

import "math"

// ClassLimit is a limit of the SLO that applies to a run: of one class, or of the whole traffic.
type ClassLimit struct {
	Class string
	*LimitResult
}

// judged returns the limits that apply to a run: those of its classes, or those of the run if the traffic has no
// classes.
func (s *Summary) judged() []ClassLimit {
	var list []ClassLimit
	for i := range s.Classes {
		k := &s.Classes[i]
		for j := range k.Goodput.Limits {
			list = append(list, ClassLimit{k.Name, &k.Goodput.Limits[j]})
		}
	}
	if list != nil {
		return list
	}
	for i := range s.Goodput.Limits {
		list = append(list, ClassLimit{"", &s.Goodput.Limits[i]})
	}
	return list
}

// HeldTo returns the limits that apply to a run. The key of a limit of a class begins with the name of the class.
func (s *Summary) HeldTo() []LimitResult {
	list := []LimitResult{}
	for _, l := range s.judged() {
		r := *l.LimitResult
		if l.Class != "" {
			r.Key = l.Class + ": " + r.Key
		}
		list = append(list, r)
	}
	return list
}

// SLOUse says how much of the SLO a run takes up: the greatest ratio of a statistic to its limit, and of a missed share
// to what may be missed, over all classes of the traffic. It is 1 or less exactly if the SLO is met, and +Inf if it
// cannot be met, as in a system that does not keep up with its load.
func (s *Summary) SLOUse() float64 {
	all := s.judged()
	if len(all) == 0 || s.Window.Unsettled() {
		return math.Inf(1)
	}
	use, met := 0.0, true
	for _, l := range all {
		if l.Met == nil {
			return math.Inf(1)
		}
		use, met = max(use, l.Use()), met && *l.Met
	}
	if met {
		return min(use, 1) // but for rounding
	}
	return max(use, math.Nextafter(1, 2))
}

// LatencyUse is the same for the limits on latency alone: the factor by which they could be multiplied and still hold.
func (s *Summary) LatencyUse() float64 {
	if s.Window.Unsettled() {
		return math.Inf(1)
	}
	use := 0.0
	for _, l := range s.judged() {
		if l.LimitMs != nil {
			use = max(use, l.Use())
		}
	}
	return use
}

// partOf is a/b, and 0 if a is 0 or less.
func partOf(a, b float64) float64 {
	if a <= 0 {
		return 0
	}
	return a / b
}

// WorstLimit is the limit that is missed most, or the one nearest to that.
func (s *Summary) WorstLimit() *ClassLimit {
	var worst *ClassLimit
	for _, l := range s.judged() {
		if worst == nil || l.Use() > worst.Use() {
			worst = &l
		}
	}
	return worst
}
