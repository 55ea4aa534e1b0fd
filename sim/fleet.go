package sim

import (
	"errors"
	"fmt"

	"clifftop/sim/clock"
	"clifftop/sim/engine"
	"clifftop/sim/kv"
	"clifftop/sim/route"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Fleet describes replicas behind routers.
type Fleet struct {
	// Replicas are the serving engines, each with a scheduler of its own. The way from and to the clients is the same
	// for all.
	Replicas []engine.Config
	// Lockstep are the sizes of groups of consecutive replicas that iterate in lock step, as the data-parallel ranks of
	// a model with experts do; nil is one each. The replicas of a group are alike, and their step times are those of
	// a rank beside others that have as much to do.
	Lockstep []int
	// Disaggregation has some replicas compute prompts and the others answers; nil has all do both.
	Disaggregation *Disaggregation
	// Routers take the requests in turn, by request ID. One replica needs none.
	Routers []route.Router
	// Scrape is how often the routers learn what the replicas say of themselves, from 0 on; 0 is always.
	Scrape clock.Duration
	// Lifecycle says how replicas start, fail and end; nil if all are always ready.
	Lifecycle *Lifecycle
}

// Validate reports every fault of the configuration.
func (f *Fleet) Validate() error {
	if len(f.Replicas) == 0 {
		return errors.New("no replicas")
	}
	var faults []error
	for i := range f.Replicas {
		c := &f.Replicas[i]
		if err := c.Validate(); err != nil {
			if len(f.Replicas) > 1 {
				err = fmt.Errorf("replica %d: %w", i, err)
			}
			faults = append(faults, err)
		}
		if first := &f.Replicas[0]; c.NetworkIn != first.NetworkIn || c.NetworkOut != first.NetworkOut {
			faults = append(faults, fmt.Errorf("replica %d: the way to its clients is not that of replica 0", i))
		}
	}
	faults = append(faults, f.validateLockstep()...)
	faults = append(faults, f.validatePipelines()...)
	if f.Disaggregation != nil {
		faults = append(faults, f.Disaggregation.validate(f))
	}
	if len(f.Replicas) > 1 && len(f.Routers) == 0 {
		faults = append(faults, errors.New("no router"))
	}
	if f.Lifecycle != nil {
		faults = append(faults, f.Lifecycle.validate(f))
	}
	if f.Scrape < 0 {
		faults = append(faults, fmt.Errorf("scrape: %v is negative", f.Scrape))
	}
	return errors.Join(faults...)
}

// fleet is what an engine keeps of several replicas together.
type fleet struct {
	routers []*router
	next    tournament // of the replicas' next boundaries
	blocked [sched.NumberOfCauses]int
	ready   []int32        // numbers of the replicas that take requests
	able    []int32        // scratch: those of them that can serve a request
	alike   bool           // all replicas can serve the same requests
	follow  bool           // some router wants to know when answers begin
	holders kv.PrefixIndex // of blocks that can be found, where routers look into caches
	hashed  []int32        // by replica: the size of its blocks, if they are found by hashes; else 0
	// Where routers look into caches: replicas whose cohorts may owe blocks.
	behind   []int32
	isBehind []bool // by replica
	// generation counts the changes of ready.
	generation int

	// The state that routers know of is that of the last scrape before now, and is taken when the first thing after
	// it happens: nothing changed in between.
	period  clock.Duration
	scrape  clock.Time // the one to come; Never where routers know the state of now
	scrapes int
	heard   []route.Metrics // by replica
}

// sync brings the fleet's levels up to date with those of r, which something has happened to.
func (e *Simulation) sync(r *Replica) {
	if e.watchesCaches {
		e.fallsBehind(r)
	}
	now, was := r.Levels(), &r.told
	now.Blocked = sched.NotBlocked
	if now.Waiting > 0 {
		now.Blocked = r.Blocked()
	}
	if len(e.replicas) == 1 && r.own == nil {
		e.levels.Waiting, e.levels.Running, e.levels.Decoding, e.levels.Blocked = now.Waiting, now.Running,
			now.Decoding, now.Blocked
		return
	}
	e.next.set(r.Index(), r.Next())
	if *now == *was {
		return
	}
	l := &e.levels
	l.Waiting += now.Waiting - was.Waiting
	l.Running += now.Running - was.Running
	l.Decoding += now.Decoding - was.Decoding
	if now.Blocked != was.Blocked {
		e.blocked[was.Blocked]--
		e.blocked[now.Blocked]++
		l.Blocked = e.mostBlocked()
	}
	*was = *now
	if r.own != nil {
		r.own.Levels(e.now, now)
	}
}

// mostBlocked is the cause that holds back the heads of the most queues.
func (f *fleet) mostBlocked() sched.Cause {
	most := int(sched.NotBlocked)
	for c := range f.blocked {
		if c != int(sched.NotBlocked) && f.blocked[c] > 0 &&
			(most == int(sched.NotBlocked) || f.blocked[c] > f.blocked[most]) {
			most = c
		}
	}
	return sched.Cause(most)
}

// boundaryNext is the next boundary of a replica, and whose it is: of equal ones, the first replica's.
func (e *Simulation) boundaryNext() (clock.Time, *Replica) {
	if len(e.replicas) == 1 {
		return e.replicas[0].Next(), e.replicas[0]
	}
	at, i := e.next.min()
	return at, e.replicas[i]
}

// fits reports whether some replica can serve r or, where the work is divided, one its prompt and one its answer.
func (e *Simulation) fits(r *workload.Request) bool {
	if s := e.disaggregated; s != nil && !s.direct(r) {
		return e.someFits(e.replicas[:s.Prefills], promptOnly(r)) && e.someFits(e.replicas[s.Prefills:], r)
	} else if s != nil {
		return e.someFits(e.replicas[s.Prefills:], r)
	}
	return e.someFits(e.replicas, r)
}

func (e *Simulation) someFits(among []*Replica, r *workload.Request) bool {
	for _, p := range among {
		if !p.NeverFits(r) {
			return true
		}
	}
	return false
}

// A tournament finds the least of as many instants as there are replicas; of equal ones the first.
type tournament struct {
	at   []clock.Time
	wins []int32 // wins[1] is the winner; node k has the children 2k and 2k+1, and leaves follow the nodes
	size int     // leaves, a power of two
}

func newTournament(n int) tournament {
	size := 1
	for size < n {
		size *= 2
	}
	t := tournament{at: make([]clock.Time, size), wins: make([]int32, 2*size), size: size}
	for i := range t.at {
		t.at[i] = clock.Never
		t.wins[size+i] = int32(i)
	}
	for k := size - 1; k > 0; k-- {
		t.play(k)
	}
	return t
}

// play decides the match of node k.
func (t *tournament) play(k int) {
	a, b := t.wins[2*k], t.wins[2*k+1]
	if t.at[b] < t.at[a] {
		a = b
	}
	t.wins[k] = a
}

// set gives replica i its instant.
func (t *tournament) set(i int, at clock.Time) {
	if t.at[i] == at {
		return
	}
	t.at[i] = at
	for k := (t.size + i) / 2; k > 0; k /= 2 {
		t.play(k)
	}
}

// min is the least instant, and the replica that it belongs to.
func (t *tournament) min() (clock.Time, int) {
	i := t.wins[1]
	return t.at[i], int(i)
}
