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

// Failure is something that happens to a replica. Replicas that are not there are spared.
type Failure struct {
	// Kind is what happens. A crash ends the replica with its requests and its cache. A drain accepts no new
	// requests and ends when the others are complete. Slow makes iterations longer. Link-loss makes the replica
	// unreachable while it continues; its output arrives when the link returns. A rolling-restart drains and
	// restarts one replica after the other.
	Kind string `json:"kind" one:"crash drain slow link-loss rolling-restart"`
	// At is when it happens.
	At yamldoc.Duration `json:"at"`
	// Pool is the pool of the replica, which is then counted within it.
	Pool *string `json:"pool,omitempty"`
	// Replica is its number, from 0 on, as results have it; of a rolling-restart that of the first one, by default 0.
	// What happens to a data-parallel rank happens to all ranks of its deployment.
	Replica *int `json:"replica,omitempty" range:"[0,4095]"`
	// Last is the number of the last replica of a rolling-restart, by default the last one that there is.
	Last *int `json:"last,omitempty" range:"[0,4095]"`
	// For is the duration, after which a stopped replica starts again; null is no end.
	For *yamldoc.Duration `json:"for,omitempty" range:"(0,)"`
	// Factor multiplies the iteration time of a slow replica.
	Factor *float64 `json:"factor,omitempty" range:"[1,1000]"`
}

func (*Failure) Variants() (string, map[string]yamldoc.VariantKeys) {
	ends := yamldoc.VariantKeys{Required: []string{"at", "replica"}, Optional: []string{"for"}}
	return "kind", map[string]yamldoc.VariantKeys{
		"":                {Required: []string{"kind"}, Optional: []string{"at", "replica", "last", "for", "factor"}},
		"crash":           ends,
		"drain":           ends,
		"slow":            {Required: []string{"at", "replica", "for", "factor"}},
		"link-loss":       {Required: []string{"at", "replica", "for"}},
		"rolling-restart": {Required: []string{"at"}, Optional: []string{"replica", "last"}},
		"*":               {Optional: []string{"pool"}},
	}
}

// RandomCrashes has every replica crash after an exponential time, and start again after another one. It needs a
// run.duration.
type RandomCrashes struct {
	// MTBF is the mean time from the end of a repair to the next crash.
	MTBF yamldoc.Duration `json:"mtbf" range:"(0,)"`
	// MTTR is the mean time to repair, until the replica starts again; its cold start comes on top.
	MTTR yamldoc.Duration `json:"mttr" range:"(0,)"`
}

func (c *RandomCrashes) Check(d *yamldoc.Decoder, n *yamldoc.Node, key string) {
	d.Require(n, key, "want {mtbf: 6h, mttr: 5m}", "mtbf", "mttr")
}

// maxFailures bounds those of one run.
const maxFailures = 10_000

// failures finds out what happens to which replicas, and when.
func (u fleetResolver) failures() error {
	s := u.Scenario
	var faults yamldoc.Faults
	firsts := u.firsts()
	for i := range s.Lifecycle.Failures {
		f := &s.Lifecycle.Failures[i]
		key := fmt.Sprint("lifecycle.failures.", i)
		x, fault := u.failure(f, key)
		if fault != nil {
			faults = append(faults, fault)
			continue
		}
		for j := range u.Failures {
			if y := &u.Failures[j]; overlap(&x, y) && together(firsts, x.Replica, y.Replica) {
				faults = append(faults, s.Fault(key+".at",
					"replica %d is %s twice at once, at %v and at %v (want one after the other)", x.Replica,
					participle(x.Kind), yamldoc.Duration(y.At), yamldoc.Duration(x.At)))
				break
			}
		}
		if d := s.Run.Duration; d != nil && f.At >= *d {
			u.Warn("late_failure", "%s of replica %d at %v comes after the end of the run, %v", f.Kind, x.Replica, f.At,
				*d)
		}
		u.Failures = append(u.Failures, x)
	}
	if faults != nil {
		return faults
	}
	return u.randomCrashes()
}

// failure is a failure as the simulator takes it.
func (u fleetResolver) failure(f *Failure, key string) (x sim.Failure, fault *yamldoc.Fault) {
	s := u.Scenario
	first, last, why := u.members(f.Pool)
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

// randomCrashes draws the crashes of every replica up to the end of the run.
func (u fleetResolver) randomCrashes() error {
	s := u.Scenario
	c := s.Lifecycle.RandomCrashes
	if c == nil {
		return nil
	}
	if s.Run.Duration == nil {
		return s.Fault("lifecycle.random_crashes", "random crashes need a fixed end of the run (set run.duration)")
	}
	end := s.Run.Duration.Seconds()
	if expected := end / (c.MTBF.Seconds() + c.MTTR.Seconds()) * float64(len(u.firsts())); expected > maxFailures/2 {
		return s.Fault("lifecycle.random_crashes",
			"random_crashes expects about %.3g crashes in %v (want %d or fewer: a longer mtbf, or a shorter run.duration)",
			expected, *s.Run.Duration, maxFailures/2)
	}
	stream := workload.NewRNG(s.Run.Seed, "crashes")
	draws := rand.New(stream)
	for _, i := range u.firsts() {
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
			u.Failures = append(u.Failures, x)
			at += repair
		}
	}
	slices.SortStableFunc(u.Failures, func(a, b sim.Failure) int { return cmp.Compare(a.At, b.At) })
	return nil
}
