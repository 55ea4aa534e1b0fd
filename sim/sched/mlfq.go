package sched

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"clifftop/sim/clock"
)

// MLFQ is the skip-join multi-level feedback queue of FastServe (Wu et al., 2023), which approximates shortest job
// first without knowing how long answers are. Each request has a level, and each iteration serves those of the highest
// levels. One that has used up the quantum of its level goes down to the next. A long prompt would use up the quanta of
// the first levels without a token to show for it; so a request skips them, and joins the first level whose quantum
// covers its prefill. Whoever was not served for the starvation time goes up to the first level.
//
// A quantum counts tokens that are computed for a request: those of its prompt, without what the prefix cache held when
// it joined, and those of its answer, all alike. Level i, from 0, has a quantum of Quantum·Ratioⁱ tokens; the last
// level has no end. What is computed again after a preemption does not count. FastServe counts time, of which a token
// of a prompt takes less than one of an answer.
//
// Of a level alike, those who run go before those who wait, and each go in their order: that of admission, and that of
// the queue. A running sequence that is not among those to be served is paused: it keeps its seat and its KV. It is
// taken out, the last of the lowest level first, when one of a higher level needs its seat or its blocks, to host
// memory if there is room, or else to be recomputed; it keeps its level. Nobody is taken out for the sake of a waiting
// request unless that lets it in, as far as blocks are not shared.
//
// Who has to be paused, and who may be overtaken, depends on the level of everybody, which changes with each token. So
// while anybody waits or is paused every running sequence is looked at in each iteration, and the queue as far as the
// first request of the first level.
type MLFQ struct {
	// Quantum is that of the first level, in tokens, and Ratio that of a level to the one above it. Levels is
	// their number; with one of them nobody is ever overtaken.
	Quantum, Ratio, Levels int
	// Starvation is how long somebody is not served before they go up to the first level; 0 is for ever.
	Starvation clock.Duration
	// Batch is the most sequences that an iteration serves; 0 is as many as there are seats.
	Batch int

	jobs   []job // of running sequences, in running order, and of some that have left since
	out    []job // of preempted requests, which stand first in the queue, in its order
	paused bool  // somebody was, in the last iteration

	// Of one iteration:
	rank     []int   // places in jobs of those who can be served and have not been, the first to serve first
	gone     []int64 // requests that were taken out
	stirring bool    // the cache may hold more or less of those who wait by the next iteration
	repeats  int
}

// job is what is remembered of a request that has run.
type job struct {
	request int64
	seq     Seq // None for one that does not run
	level   int
	begun   int32      // tokens that were computed when its quantum began
	done    int32      // the most tokens that were ever computed
	holds   int32      // tokens that are computed now
	since   clock.Time // it is not served; Never if it was in the last iteration
}

var _ Scheduler = (*MLFQ)(nil)

// Validate implements [Scheduler].
func (p *MLFQ) Validate(l Limits) error {
	faults := []error{needsPages("mlfq", l), needsTokens("mlfq", l)}
	if l.Ordered {
		faults = append(faults, errors.New("policy mlfq: its levels are the order; the queue itself is first in, first out"))
	}
	if p.Quantum < 1 || p.Ratio < 1 || p.Levels < 1 {
		faults = append(faults, fmt.Errorf("mlfq: quantum %d, ratio %d, levels %d are not allowed (want 1 or more of each)", p.Quantum, p.Ratio, p.Levels))
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

// fits says whether an iteration may serve so many.
func (p *MLFQ) fits(served int) bool { return p.Batch == 0 || served <= p.Batch }

// update brings the jobs up to date, and ranks those of the running sequences that can be served.
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

// relevel takes a job to the level where it belongs by now.
func (p *MLFQ) relevel(v View, j *job) {
	if p.Starvation > 0 && j.since != clock.Never && v.Now().Sub(j.since) >= p.Starvation {
		j.level, j.begun = 0, j.done
	}
	for j.level < p.Levels-1 && p.left(j) <= 0 {
		j.begun += int32(p.quantum(j.level))
		j.level++
	}
}

// left is what is left of the quantum of a job, in tokens.
func (p *MLFQ) left(j *job) int64 { return p.quantum(j.level) - int64(j.done-j.begun) }

// quantum is that of a level, in tokens.
func (p *MLFQ) quantum(level int) int64 {
	const most = 1 << 31 // is more than any sequence has
	q := int64(p.Quantum)
	for ; level > 0 && q < most && p.Ratio > 1; level-- {
		q *= int64(min(p.Ratio, most))
	}
	return q
}

// entrant is the waiting request that is to be admitted next.
type entrant struct {
	job
	Waiting
	place int // in the queue
}

// best is the first request of the highest level in the queue.
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

// waiting is the job of the i-th request of the queue.
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

// steady is the number of iterations for which all who run go before next, which waits, as they do now.
func (p *MLFQ) steady(next entrant, waits bool) int {
	switch {
	case !waits:
		return forever
	case p.stirring, p.Starvation > 0 && (next.place > 0 || next.level > 0): // time may raise somebody over others
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

// fill serves those who run, and admits those who wait, from the highest level down, while the iteration has room. So
// many have been served.
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

// obstacle is why nobody more is admitted when the iteration is full.
func (p *MLFQ) obstacle(v View) Cause {
	switch {
	case v.Budget() == 0:
		return LacksBudget
	case v.Seats() == 0:
		return LacksSeats
	}
	return HeldByPolicy
}

// serve gives the first of the rank its tokens, and reports whether there was room in the pool, once those of lower
// rank had given way.
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

// admit admits next, for which sequences of lower levels give way, or says what it lacks.
func (p *MLFQ) admit(v View, next entrant) Cause {
	if slices.Contains(p.gone, next.request) {
		return HeldByPolicy
	}
	keep, why := p.makeWay(v, next)
	if why != NotBlocked {
		return why
	}
	for ; len(p.rank) > keep; next.place++ { // they go to the head of the queue
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

// makeWay says how many of the rank can stay when next is admitted, or what it lacks without all of a lower
// level.
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

// evict takes out the last of the rank.
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

// pause notes who is left over.
func (p *MLFQ) pause(v View) {
	p.paused = len(p.rank) > 0
	for _, i := range p.rank {
		p.jobs[i].since = min(p.jobs[i].since, v.Now())
	}
	p.jobs = slices.DeleteFunc(p.jobs, func(j job) bool { return j.seq == None })
}

// Repeats implements [Scheduler]. Where everybody is served, levels matter only to those who wait. As long as these are
// on no higher level than all who run nobody is admitted, until somebody goes down; who goes up, which is a
// matter of time, cannot be told in iterations.
func (p *MLFQ) Repeats(View) int { return p.repeats }
