package sim

import (
	"clifftop/internal/faults"
	"clifftop/sim/engine"
)

// validate reports what is wrong with the lifecycle of a fleet.
func (l *Lifecycle) validate(f *Fleet) error {
	found := new(faults.List)
	found.Check(l.Renew != nil, "lifecycle: Renew is missing")
	found.Check(l.Grace >= 0 && l.Probe >= 0, "lifecycle: a grace of %v or a probe of %v is negative", l.Grace, l.Probe)
	lead, err := l.leaders(len(f.Replicas))
	if err != nil {
		found.Add(err)
		return found.Err()
	}
	f.validateTogether(lead, found)
	for i := range l.Failures {
		l.validateFailure(i, lead, found)
	}
	l.validateScalers(f, lead, found)
	return found.Err()
}

// validateTogether reports lockstep groups that do not share a lifecycle, and prefill and decode replicas that do.
func (f *Fleet) validateTogether(lead []int32, found *faults.List) {
	n, first := len(lead), 0
	for _, ranks := range f.Lockstep {
		found.Check(ranks < 2 || first+ranks > n || groupSize(lead, first) == ranks,
			"lifecycle: replicas %d to %d are in lock step, but not in one group of the lifecycle", first,
			first+ranks-1)
		first += ranks
	}
	d := f.Disaggregation
	found.Check(d == nil || d.Prefills < 0 || d.Prefills >= n || int(lead[d.Prefills]) == d.Prefills,
		"lifecycle: a group has both prefill and decode replicas")
}

// validateFailure reports what is wrong with failure i, or conflicts with an earlier one.
func (l *Lifecycle) validateFailure(i int, lead []int32, found *faults.List) {
	x, n := &l.Failures[i], len(lead)
	found.Check(x.Replica >= 0 && x.Replica < n, "failure %d: there is no replica %d of %d", i, x.Replica, n)
	found.Check(x.Kind != Restart || x.Last >= x.Replica && x.Last < n,
		"failure %d: there are no replicas %d to %d of %d", i, x.Replica, x.Last, n)
	found.Check(x.At >= 0 && x.For >= 0, "failure %d: at %v for %v is negative", i, x.At, x.For)
	lasting := x.Kind == Slow || x.Kind == LinkLoss
	found.Check(!lasting || x.For > 0, "failure %d: %v without end is not allowed", i, x.Kind)
	found.Check(x.Kind != Slow || x.Permille >= 1000 && x.Permille <= engine.MaxSlowdown,
		"failure %d: step times times %d/1000 are not allowed (want 1 to %d times)",
		i, x.Permille, engine.MaxSlowdown/1000)
	if !lasting {
		return
	}
	for j := range l.Failures[:i] {
		y := &l.Failures[j]
		found.Check(y.Kind != x.Kind || !alike(lead, y.Replica, x.Replica) || x.At >= y.At.Add(y.For) ||
			y.At >= x.At.Add(x.For),
			"failures %d and %d: %v of replica %d twice at a time", j, i, x.Kind, x.Replica)
	}
}

// alike reports whether two replicas are in one group. Numbers outside the fleet are allowed.
func alike(lead []int32, a, b int) bool {
	return a == b || min(a, b) >= 0 && max(a, b) < len(lead) && lead[a] == lead[b]
}

// validateScalers reports what is wrong with the scalers. A replica may have only one.
func (l *Lifecycle) validateScalers(f *Fleet, lead []int32, found *faults.List) {
	scaled := make([]bool, len(lead))
	for i := range l.Scalers {
		s := &l.Scalers[i]
		if s.First < 0 || s.Last < s.First || s.Last >= len(lead) || s.Policy == nil {
			found.Check(false, "scaler %d: no policy, or no replicas %d to %d of %d", i, s.First, s.Last, len(lead))
			continue
		}
		s.validate(i, f, lead, found)
		for k := s.First; k <= s.Last; k++ {
			found.Check(!scaled[k], "scaler %d: replica %d has another one", i, k)
			scaled[k] = true
		}
	}
}

// validate reports what is wrong with scaler i, which has a policy and replicas.
func (s *Scaler) validate(i int, f *Fleet, lead []int32, found *faults.List) {
	n, count := len(lead), 0
	for k := s.First; k <= s.Last; k++ {
		if int(lead[k]) == k {
			count++
		}
	}
	found.Check(int(lead[s.First]) == s.First && (s.Last == n-1 || int(lead[s.Last+1]) == s.Last+1),
		"scaler %d: replicas %d to %d are no whole groups", i, s.First, s.Last)
	found.Check(s.Least >= 0 && s.Least <= s.Most && s.Most <= count,
		"scaler %d: %d to %d of %d replicas are not allowed", i, s.Least, s.Most, count)
	found.Check(s.Initial >= 0 && s.Initial <= count, "scaler %d: %d of %d replicas are not allowed at first", i,
		s.Initial, count)
	d := f.Disaggregation
	found.Check(d == nil || s.Last < d.Prefills || s.First >= d.Prefills,
		"scaler %d: replicas %d to %d are for both prefill and decode", i, s.First, s.Last)
	found.Check(s.Scrape > 0 && s.Phase >= 0 && s.Keep >= 0, "scaler %d: a scrape every %v from %v on is not allowed",
		i, s.Scrape, s.Phase)
	found.Add(s.Policy.Validate(s.Least))
}
