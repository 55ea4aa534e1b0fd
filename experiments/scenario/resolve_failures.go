package scenario

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"clifftop/experiments/internal/optional"
	"clifftop/experiments/scenario/yamldoc"
	"clifftop/sim"
	"clifftop/sim/clock"
	"clifftop/workload"
)

// resolveLifecycle fills in what is left open in the lives of replicas, and finds out what happens to them.
func resolveLifecycle(s *Scenario, l pools, oneRank bool) (own *Lifecycle, list []sim.Failure, found findings) {
	own = s.Lifecycle
	switch {
	case own == nil:
		return nil, nil, found
	case oneRank:
		return own, nil, s.refuse("lifecycle", "a single attention rank cannot fail or scale alone")
	}
	if own.Autoscale != nil {
		scalers, fault := resolveScalers(s, l)
		if fault != nil {
			found.fault(fault)
		}
		own = own.withScalers(scalers)
	}
	list, more := resolveFailures(s, l)
	found.add(more)
	return own, list, found
}

// maxFailures bounds the failures of one run.
const maxFailures = 10_000

// resolveFailures finds out what happens to which replicas, and when.
func resolveFailures(s *Scenario, l pools) (list []sim.Failure, found findings) {
	firsts := l.firsts()
	for i := range s.Lifecycle.Failures {
		f := &s.Lifecycle.Failures[i]
		key := fmt.Sprint("lifecycle.failures.", i)
		x, fault := newFailure(s, l, f, key)
		if fault != nil {
			found.fault(fault)
			continue
		}
		for j := range list {
			if y := &list[j]; overlap(&x, y) && together(firsts, x.Replica, y.Replica) {
				found.fault(s.Fault(key+".at",
					"replica %d is %s twice at once, at %v and at %v (want one after the other)", x.Replica,
					participle(x.Kind), yamldoc.Duration(y.At), yamldoc.Duration(x.At)))
				break
			}
		}
		if d := s.Run.Duration; d != nil && f.At >= *d {
			found.warn("late_failure", "%s of replica %d at %v comes after the end of the run, %v", f.Kind, x.Replica,
				f.At, *d)
		}
		list = append(list, x)
	}
	if found.faults != nil || s.Lifecycle.RandomCrashes == nil {
		return list, found
	}
	crashes, fault := randomCrashes(s, firsts)
	if fault != nil {
		return list, refuse(fault)
	}
	list = append(list, crashes...)
	slices.SortStableFunc(list, func(a, b sim.Failure) int { return cmp.Compare(a.At, b.At) })
	return list, found
}

func newFailure(s *Scenario, l pools, f *Failure, key string) (x sim.Failure, fault *yamldoc.Fault) {
	first, last, why := l.members(f.Pool)
	if why != "" {
		return x, s.Fault(key+".pool", "%s", why)
	}
	n := last - first + 1
	x = sim.Failure{At: clock.Time(f.At), Replica: first + optional.Value(f.Replica),
		For: optional.Value(f.For).Clock()}
	for _, k := range []struct {
		name  string
		given *int
	}{{"replica", f.Replica}, {"last", f.Last}} {
		if k.given != nil && *k.given >= n {
			of := ""
			if f.Pool != nil {
				of = " of pool " + *f.Pool
			}
			return x, s.Fault(key+"."+k.name, "there is no replica %d%s (want 0 to %d)", *k.given, of, n-1)
		}
	}
	switch f.Kind {
	case "crash":
		x.Kind = sim.Crash
	case "drain":
		x.Kind = sim.Drain
	case "slow":
		x.Kind, x.Permille = sim.Slow, int64(math.Round(optional.Value(f.Factor)*1000))
	case "link-loss":
		x.Kind = sim.LinkLoss
	case "rolling-restart":
		x.Kind, x.Last = sim.Restart, last
		if f.Last != nil {
			x.Last = first + *f.Last
		}
		if x.Last < x.Replica {
			return x, s.Fault(key+".last", "%d is before replica %d, the first (want that or more)", *f.Last,
				optional.Value(f.Replica))
		}
	}
	return x, nil
}

// overlap reports whether two slowdowns, or two link losses, overlap in time.
func overlap(x, y *sim.Failure) bool {
	lasts := x.Kind == sim.Slow || x.Kind == sim.LinkLoss
	return lasts && y.Kind == x.Kind && x.At < y.At.Add(y.For) && y.At < x.At.Add(x.For)
}

// together reports whether two ranks are of one deployment, which shares its failures. The first ranks of all
// deployments are given.
func together(firsts []int, a, b int) bool {
	next, begins := slices.BinarySearch(firsts, max(a, b))
	return a == b || !begins && firsts[next-1] <= min(a, b)
}

func participle(k sim.FailureKind) string {
	if k == sim.Slow {
		return "made slow"
	}
	return "cut off"
}

// randomCrashes draws the crashes of every replica up to the end of the run. The first ranks of all replicas are given.
func randomCrashes(s *Scenario, firsts []int) (list []sim.Failure, fault *yamldoc.Fault) {
	c := s.Lifecycle.RandomCrashes
	if s.Run.Duration == nil {
		return nil, s.Fault("lifecycle.random_crashes", "random crashes need a fixed end of the run (set run.duration)")
	}
	end := s.Run.Duration.Seconds()
	if expected := end / (c.MTBF.Seconds() + c.MTTR.Seconds()) * float64(len(firsts)); expected > maxFailures/2 {
		return nil, s.Fault("lifecycle.random_crashes",
			"random_crashes expects about %.3g crashes in %v (want %d or fewer: a longer mtbf, or a shorter "+
				"run.duration)",
			expected, *s.Run.Duration, maxFailures/2)
	}
	stream := workload.NewRNG(s.Run.Seed, "crashes")
	draws := rand.New(stream)
	for _, i := range firsts {
		at := 0.0
		for k := uint64(0); ; k++ {
			stream.Seek(uint64(i), k)
			at += draws.ExpFloat64() * c.MTBF.Seconds()
			repair := draws.ExpFloat64() * c.MTTR.Seconds()
			if at >= end {
				break
			}
			// A repair lasts: 0 would never end.
			x := sim.Failure{Kind: sim.Crash, Replica: i, At: clock.Time(clock.FromSeconds(at)),
				For: max(1, clock.FromSeconds(repair))}
			list = append(list, x)
			at += repair
		}
	}
	return list, nil
}
