package sched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"clifftop/sim/clock"
)

var mlfqRule = Rule{
	Name: "mlfq",
	Does: "skip-join multi-level feedback queue: requests go down a level with each quantum of tokens; lower levels " +
		"are paused, swapped or recomputed",
	Source:  "Wu et al., FastServe, 2023",
	Section: "mlfq",
	New: func() Options {
		return &MLFQ{Quantum: 256, Ratio: 2, Levels: 6, Starvation: 10 * clock.Second}
	},
}

// MLFQ is the skip-join multi-level feedback queue of FastServe (Wu et al., 2023). It approximates shortest job first
// without knowing the length of outputs. Each request has a level, and each iteration serves the highest levels. A
// request that has used up the quantum of its level moves down to the next. A long prompt would use up the quanta of
// the first levels before its first token; so a request skips them, and joins the first level whose quantum covers its
// prefill. A request that was not served for the starvation time moves up to the first level.
//
// A quantum counts tokens that are computed for a request: those of its prompt, without what the prefix cache held when
// it joined, and those of its output. Level i, from 0, has a quantum of Quantum·Ratioⁱ tokens; the last level has no
// limit. Tokens that are computed again after a preemption do not count. FastServe counts time, of which a prompt token
// takes less than an output token.
//
// Within a level, running sequences come before waiting requests, each in their order: that of admission, and that of
// the queue. A running sequence that is not served is paused: it keeps its seat and its KV. It is preempted, the last
// of the lowest level first, when a request of a higher level needs its seat or its blocks: it is swapped to host
// memory if there is room, otherwise recomputed; it keeps its level. A sequence is preempted for a waiting request only
// if that request can then be admitted, as far as blocks are not shared.
//
// Which sequences are paused, and which requests are overtaken, depends on all levels, which change with each token. So
// while any request waits or is paused, each iteration visits every running sequence, and the queue up to the first
// request of the first level.
type MLFQ struct {
	Quantum int `json:"quantum" range:"[1,16777216]" doc:"tokens after which a request leaves the first level"`
	Ratio   int `json:"ratio" range:"[1,1000]" doc:"quantum of a level over the quantum of the level above"`
	Levels  int `json:"levels" range:"[1,64]" doc:"number of levels; the last has no quantum"`

	Starvation clock.Duration `json:"starvation" doc:"time without service before it returns to the first; 0 is never"`

	// Batch is the most sequences that an iteration serves; 0 is as many as there are seats.
	Batch int `json:"batch" range:"[1,1048576]" doc:"most sequences of an iteration; null is max_num_seqs"`

	jobs   []job // of running sequences, in running order, and of some that have left since
	out    []job // of preempted requests, which are the first in the queue, in its order
	paused bool  // some sequence was paused in the last iteration

	// Of one iteration:
	rank     []int   // places in jobs of sequences that can be served and have not been, in the order of serving
	gone     []int64 // requests that were preempted
	stirring bool    // the cached tokens of waiting requests may change by the next iteration
	repeats  int
}

// job is the state of a request that has run.
type job struct {
	request int64
	seq     Seq // None for one that does not run
	level   int
	begun   int32      // tokens that were computed when its quantum began
	done    int32      // the most tokens that were ever computed
	holds   int32      // tokens that are computed now
	since   clock.Time // since when it is not served; Never if it was served in the last iteration
}

var _ Scheduler = (*MLFQ)(nil)

// Make implements [Options].
func (p *MLFQ) Make(*Keys) Scheduler { made := *p; return &made }

// Defaults implements [Options].
func (*MLFQ) Defaults() Defaults { return Defaults{Synchronous: true, NoPrefixCaching: true} }

// Validate implements [Scheduler].
func (p *MLFQ) Validate(l Limits) error {
	faults := []error{needsPages("mlfq", l), needsTokens("mlfq", l)}
	if l.Ordered {
		faults = append(faults, errors.New("policy mlfq: its levels are the order; the queue itself is first in, "+
			"first out"))
	}
	if p.Quantum < 1 || p.Ratio < 1 || p.Levels < 1 {
		faults = append(faults, fmt.Errorf("mlfq: quantum %d, ratio %d, levels %d are not allowed (want 1 or more of "+
			"each)",
			p.Quantum, p.Ratio, p.Levels))
	}
	if p.Starvation < 0 || p.Batch < 0 {
		faults = append(faults, errors.New("mlfq: the starvation time or the batch is negative"))
	}
	return errors.Join(faults...)
}

// Schedule implements [Scheduler].
func (p *MLFQ) Schedule(v View) {
	p.repeats, p.stirring, p.gone = 1, false, p.gone[:0]
	_, waits := v.Waiting(0)
	decodes := v.NextPrefill(None) == None
	if !waits && !p.paused && decodes && p.fits(v.Decoding()) && v.DecodeFirst() {
		p.repeats = forever
		return
	}
	p.update(v)
	next, waits := p.best(v)
	served := 0
	if n := len(p.rank); decodes && p.fits(n) && (!waits || n == 0 || p.jobs[p.rank[n-1]].level <= next.level) &&
		v.DecodeFirst() {
		p.repeats = p.steady(next, waits)
		for _, i := range p.rank {
			p.jobs[i].since = clock.Never
		}
		served, p.rank = n, p.rank[:0]
	}
	p.fill(v, served, next, waits)
	p.pause(v)
}

// fits reports whether an iteration may serve this many sequences.
func (p *MLFQ) fits(served int) bool { return p.Batch == 0 || served <= p.Batch }

// update updates the jobs, and ranks the running sequences that can be served.
func (p *MLFQ) update(v View) {
	p.rank = p.rank[:0]
	n, from := 0, 0
	for s := v.First(); s != None; s = v.Next(s) {
		at, missing := v.Progress(s), v.Missing(s)
		for p.jobs[from].request != at.Request { // it has left
			from++
		}
		j := p.jobs[from]
		from++
		if missing > 0 {
			j.holds = at.Prompt + at.Generated - missing
			j.done = max(j.done, j.holds)
			p.relevel(v, &j)
			p.rank = append(p.rank, n)
		}
		j.seq = s
		p.jobs[n] = j
		n++
	}
	p.jobs = p.jobs[:n]
	slices.SortStableFunc(p.rank, func(a, b int) int { return cmp.Compare(p.jobs[a].level, p.jobs[b].level) })

	n, from = 0, 0
	for w, ok := v.Waiting(0); ok && w.Preempted; w, ok = v.Waiting(n) {
		for p.out[from].request != w.Request { // its client has left
			from++
		}
		p.out[n] = p.out[from]
		p.relevel(v, &p.out[n])
		n, from = n+1, from+1
	}
	p.out = p.out[:n]
}

// relevel moves a job to its current level.
func (p *MLFQ) relevel(v View, j *job) {
	if p.Starvation > 0 && j.since != clock.Never && v.Now().Sub(j.since) >= p.Starvation {
		j.level, j.begun = 0, j.done
	}
	for j.level < p.Levels-1 && p.left(j) <= 0 {
		j.begun += int32(p.quantum(j.level))
		j.level++
	}
}

// left returns the rest of the quantum of a job, in tokens.
func (p *MLFQ) left(j *job) int64 { return p.quantum(j.level) - int64(j.done-j.begun) }

func (p *MLFQ) quantum(level int) int64 {
	const most = 1 << 31 // is more than any sequence has
	q := int64(p.Quantum)
	for ; level > 0 && q < most && p.Ratio > 1; level-- {
		q *= int64(min(p.Ratio, most))
	}
	return q
}

// entrant is the waiting request that is admitted next.
type entrant struct {
	job
	Waiting
	place int // in the queue
}

// best returns the first request of the highest level in the queue.
func (p *MLFQ) best(v View) (best entrant, ok bool) {
	for i := 0; !ok || best.level > 0; i++ {
		w, waits := v.Waiting(i)
		if !waits {
			break
		}
		p.stirring = p.stirring || w.Live || w.Cached > 0
		if j := p.waiting(v, i, w); !ok || j.level < best.level {
			best, ok = entrant{j, w, i}, true
		}
	}
	return best, ok
}

// waiting returns the job of the i-th request of the queue.
func (p *MLFQ) waiting(v View, i int, w Waiting) job {
	if i < len(p.out) {
		return p.out[i]
	}
	j := job{request: w.Request, begun: w.Cached, done: w.Cached, since: clock.Time(w.Urgency.Arrival)}
	for j.level < p.Levels-1 && p.quantum(j.level) < int64(w.Known-w.Cached) {
		j.level++
	}
	p.relevel(v, &j)
	return j
}

// steady returns the number of iterations for which all running sequences come before next, which waits, as they do
// now.
func (p *MLFQ) steady(next entrant, waits bool) int {
	switch {
	case !waits:
		return forever
	case p.stirring, p.Starvation > 0 && (next.place > 0 || next.level > 0): // time may raise a request over others
		return 1
	}
	n := int64(forever)
	for _, i := range p.rank {
		if j := &p.jobs[i]; j.level < p.Levels-1 {
			n = min(n, p.left(j))
		}
	}
	return int(n)
}

// fill serves running sequences and admits waiting requests, from the highest level down, while the iteration has room.
// served sequences have been served already.
func (p *MLFQ) fill(v View, served int, next entrant, waits bool) {
	why := NotBlocked
	for p.fits(served+1) && v.Budget() > 0 {
		moved := len(p.gone)
		switch {
		case waits && why == NotBlocked && (len(p.rank) == 0 || next.level < p.jobs[p.rank[0]].level):
			if why = p.admit(v, next); why != NotBlocked {
				continue
			}
			next, waits = p.best(v)
		case len(p.rank) == 0:
			v.Blocked(why)
			return
		case !p.serve(v):
			v.Blocked(LacksKV)
			return
		case moved < len(p.gone): // to the queue
			next, waits = p.best(v)
		}
		served++
	}
	if why == NotBlocked {
		why = p.obstacle(v)
	}
	v.Blocked(why)
}

// obstacle returns the cause that prevents further admissions when the iteration is full.
func (p *MLFQ) obstacle(v View) Cause {
	switch {
	case v.Budget() == 0:
		return LacksBudget
	case v.Seats() == 0:
		return LacksSeats
	}
	return HeldByPolicy
}

// serve gives the first of the rank its tokens, and reports whether the pool had room, after preempting sequences of
// lower rank.
func (p *MLFQ) serve(v View) bool {
	i := p.rank[0]
	s := p.jobs[i].seq
	n := min(v.Missing(s), v.Budget())
	for !v.Grow(s, n) {
		if len(p.rank) == 1 {
			return false
		}
		p.evict(v)
	}
	v.Give(s, n)
	p.jobs[i].since, p.rank = clock.Never, p.rank[1:]
	return true
}

// admit admits next, for which sequences of lower levels are preempted, or returns what it lacks.
func (p *MLFQ) admit(v View, next entrant) Cause {
	if slices.Contains(p.gone, next.request) {
		return HeldByPolicy
	}
	keep, why := p.makeWay(v, next)
	if why != NotBlocked {
		return why
	}
	for ; len(p.rank) > keep; next.place++ { // they return to the head of the queue
		p.evict(v)
	}
	w, _ := v.Waiting(next.place) // blocks that it shared with them may have gone free
	tokens := min(w.Known-max(w.Cached, w.Computed), v.Budget())
	if why := obstacle(v, tokens, v.BlocksFor(w.Known)-w.Held); why != NotBlocked {
		return why
	}
	next.seq, next.since = v.Admit(next.place, tokens), clock.Never
	p.jobs = append(p.jobs, next.job)
	if next.place < len(p.out) {
		p.out = slices.Delete(p.out, next.place, next.place+1)
	}
	return NotBlocked
}

// makeWay returns how many of the rank can stay when next is admitted, or what it lacks even without all lower levels.
func (p *MLFQ) makeWay(v View, next entrant) (keep int, why Cause) {
	keep = len(p.rank)
	asks, seats := v.BlocksFor(next.Known)-next.Held-v.FreeBlocks(), v.Seats()
	for asks > 0 || seats < 1 {
		if keep == 0 || p.jobs[p.rank[keep-1]].level <= next.level {
			if seats < 1 {
				return 0, LacksSeats
			}
			return 0, LacksKV
		}
		keep--
		asks, seats = asks-v.BlocksFor(p.jobs[p.rank[keep]].holds), seats+1
	}
	return keep, NotBlocked
}

// evict preempts the last of the rank.
func (p *MLFQ) evict(v View) {
	last := len(p.rank) - 1
	j := &p.jobs[p.rank[last]]
	p.rank = p.rank[:last]
	if !v.SwapOut(j.seq) {
		v.Preempt(j.seq)
	}
	j.seq, j.since = None, min(j.since, v.Now())
	p.out = slices.Insert(p.out, 0, *j)
	p.gone = append(p.gone, j.request)
}

// pause notes which sequences were not served.
func (p *MLFQ) pause(v View) {
	p.paused = len(p.rank) > 0
	for _, i := range p.rank {
		p.jobs[i].since = min(p.jobs[i].since, v.Now())
	}
	p.jobs = slices.DeleteFunc(p.jobs, func(j job) bool { return j.seq == None })
}

// Repeats implements [Scheduler]. If all running sequences are served, levels matter only to waiting requests. As long
// as these are on no higher level than all running sequences none is admitted, until a sequence moves down. Moving up,
// which is a matter of time, cannot be predicted in iterations.
func (p *MLFQ) Repeats(View) int { return p.repeats }
