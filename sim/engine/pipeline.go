package engine

import (
	"errors"
	"fmt"

	"clifftop/model"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/sched"
)

// pipeline is the state of pipeline parallelism. It keeps as many iterations in flight as it has stages. A sequence
// with a token in flight lacks no token, so that the decoding sequences are divided into cohorts: one for each
// iteration in flight, and the open cohort of the sequences without a token in flight. Each is a [cohort] with its own
// count of steps, and has a berth, which stores it. The engine has the cohort of one berth at a time. This is normally
// the open one, and comments in other files refer to it. To change a cohort in flight, sit exchanges it for the
// engine's cohort for a while.
//
// A launched iteration takes with it the members of the open cohort that it gives a token, and the sequences that
// complete their prefill in it. The members that it leaves out are the open cohort from then on. They join the cohort
// of the next iteration that is processed, one by one, as lagging members: each of them keeps the iteration of its last
// token in its own fields.
//
// A nil pipeline means no pipeline parallelism. The methods called at a composition, a launch and a result do nothing
// then.
type pipeline struct {
	r      *Engine
	berths []berth
	spare  []int32 // empty berths
	seat   int32   // the berth whose cohort the engine has
	open   int32   // berth of the open cohort or, during a launch, of the iteration that is being launched
	rest   int32   // during a launch: berth of the members that were left out
	landed int64   // number of the last iteration that was processed

	host  moment   // when the host has finished the last iteration
	left  []moment // when the last iteration leaves each stage
	times []int64  // scratch: femtoseconds in each stage
}

// berth stores a cohort.
type berth struct {
	cohort  cohort // cohort and lagging are stale while the engine has the cohort
	lagging int
	// The last iteration that gave tokens to the members that do not lag.
	number int64
	end    clock.Time
}

func newPipeline(r *Engine) *pipeline {
	n := r.cfg.Stages
	r.most, r.maxSpan = n, 1
	// One for each iteration in flight, one for the open cohort and one for an iteration that is being launched.
	p := &pipeline{r: r, berths: make([]berth, n+2), left: make([]moment, n), times: make([]int64, n)}
	for i := range p.berths[1:] {
		p.berths[i+1].cohort.init(&r.seqs, r.cfg.BlockSize, r.cohort.first != nil)
		p.spare = append(p.spare, int32(i+1))
	}
	return p
}

// sit stores the engine's cohort in its berth, and gives the engine the cohort of berth k.
func (p *pipeline) sit(k int32) {
	if k == p.seat {
		return
	}
	r := p.r
	b := &p.berths[p.seat]
	b.cohort, b.lagging = r.cohort, r.lagging
	b = &p.berths[k]
	r.cohort, r.lagging, p.seat = b.cohort, b.lagging, k
}

// part separates the members of the open cohort that the composition gave no token, before other sequences join it.
func (p *pipeline) part(it *batchBuilder) {
	if p != nil {
		p.leaveBehind(it)
	}
}

func (p *pipeline) leaveBehind(it *batchBuilder) {
	p.r.cohort.singly = false
	if it.decodes == 0 && len(it.chunks) == 0 {
		return // nothing is launched
	}
	k := p.spare[len(p.spare)-1]
	p.spare = p.spare[:len(p.spare)-1]
	if !it.stepped && p.r.cohort.size > 0 {
		p.rest, p.open = p.open, k
		p.sit(k)
		return
	}
	p.rest = k
	for _, i := range it.missed {
		p.move(i, k)
	}
	it.missed = it.missed[:0]
}

// depart ends the launch of iteration f: its cohort is stored in its berth, and the members that were left out are the
// open cohort.
func (p *pipeline) depart(f *iteration) {
	if p != nil {
		p.launched(f)
	}
}

func (p *pipeline) launched(f *iteration) {
	p.r.space.Settle()
	f.berth = p.open
	b := &p.berths[p.open]
	b.number, b.end = f.number, f.end
	p.open = p.rest
	p.sit(p.open)
}

// land makes the cohort of f, whose tokens have arrived, the open one, and moves the members that waited into it.
func (p *pipeline) land(f *iteration) {
	if p != nil {
		p.openCohort(f)
	}
}

func (p *pipeline) openCohort(f *iteration) {
	r, waits := p.r, p.open
	p.landed = f.number
	for i := r.running.first; i != none && r.cohort.size > 0; i = r.seqs.at(i).next {
		if s := r.seqs.at(i); s.phase == decoding && s.berth == waits {
			p.move(i, f.berth)
		}
	}
	p.open = f.berth
	p.sit(p.open)
	p.berths[waits].cohort.ends.Clear()
	p.spare = append(p.spare, waits)
}

// move puts sequence i of the engine's cohort into the cohort of berth to, as a lagging member.
func (p *pipeline) move(i, to int32) {
	r, from := p.r, p.seat
	s := r.seqs.at(i)
	r.leaveCohort(i)
	s.target = s.computed
	p.sit(to)
	r.joinCohort(i)
	s.shared = r.cohort.share
	s.lagging = true
	r.lagging++
	p.sit(from)
}

// leaveOtherCohort takes sequence i, which decodes, out of its cohort, if that is not the engine's, and reports whether
// it did.
func (p *pipeline) leaveOtherCohort(i int32) bool { return p != nil && p.leaveInFlight(i) }

func (p *pipeline) leaveInFlight(i int32) bool {
	from, at := p.seat, p.r.seqs.at(i).berth
	if at == from {
		return false
	}
	p.sit(at)
	p.r.leaveCohort(i)
	p.sit(from)
	return true
}

// lastToken returns the iteration that gave the last tokens of the engine's cohort, and its end.
func (p *pipeline) lastToken() (number int64, end clock.Time) {
	b := &p.berths[p.seat]
	return b.number, b.end
}

// emits reports whether iteration f issues a token of s.
func (p *pipeline) emits(f *iteration, s *sequence) bool {
	if s.phase == decoding {
		return p.berths[s.berth].number == f.number && !s.lagging
	}
	return s.lastBatch == f.number
}

// computes reports whether an iteration in flight computes for s, which was preempted.
func (p *pipeline) computes(s *sequence) bool {
	return p != nil && max(s.lastBatch, s.chunkBatch) > p.landed
}

// inOtherCohort reports whether s, which decodes, is not in the open cohort: it has a token in flight, or was left out
// of the iteration that is being launched.
func (d *decoders) inOtherCohort(s *sequence) bool { return d.pipe != nil && s.berth != d.pipe.open }

// cohortOf returns the cohort of s, which decodes.
func (d *decoders) cohortOf(s *sequence) *cohort {
	if d.pipe == nil || s.berth == d.pipe.seat {
		return &d.cohort
	}
	return &d.pipe.berths[s.berth].cohort
}

// steps returns the number of steps of the cohort of s, which decodes.
func (d *decoders) steps(s *sequence) int64 { return d.cohortOf(s).steps }

// whole returns the sums over all cohorts as one cohort, for checks.
func (p *pipeline) whole() *cohort {
	all := new(cohort)
	all.init(&p.r.seqs, p.r.cfg.BlockSize, false)
	for k := range p.berths {
		c := &p.berths[k].cohort
		if int32(k) == p.seat {
			c = &p.r.cohort
		}
		all.size += c.size
		all.context += c.context
		all.squares += c.squares
		all.debt += c.debt
		all.empty += c.empty
		all.growing += c.growing
		for i := range all.takes.need {
			all.takes.need[i] += c.takes.need[i]
			all.booked.need[i] += c.booked.need[i]
		}
	}
	return all
}

// moment is an instant and a remainder in femtoseconds, less than a picosecond.
type moment struct {
	at     clock.Time
	femtos int64
}

// plus returns the moment this many femtoseconds later.
func (m moment) plus(femtos int64) moment {
	femtos += m.femtos
	return moment{m.at + clock.Time(femtos/clock.FemtosPerPico), femtos % clock.FemtosPerPico}
}

// orLater returns the later of two moments.
func (m moment) orLater(o moment) moment {
	if o.at > m.at || o.at == m.at && o.femtos > m.femtos {
		return o
	}
	return m
}

// pass sends the composed iteration, which alone takes this many femtoseconds, through the host and then the stages. It
// enters a stage when it has left the stage before and the iteration before it has left this stage. pass returns the
// time in femtoseconds from the end of the iteration before, or from now if that is later, to its end. Without a
// pipeline it returns alone.
func (p *pipeline) pass(alone int64) int64 {
	if p == nil {
		return alone
	}
	return p.passStages(alone)
}

func (p *pipeline) passStages(alone int64) int64 {
	r := p.r
	rows := r.it.decodes + len(r.it.chunks)
	now := moment{at: r.now}
	p.host = p.host.orLater(now).plus(int64(r.cfg.CPUStep+clock.Duration(rows)*r.cfg.CPUPerSequence) * clock.FemtosPerPico)
	hop := model.DivideStages(r.cfg.Timer, &r.gpu.batch, alone, p.times)
	s := &r.span
	s.Passages = s.Passages[:0]
	at := p.host
	for i, femtos := range p.times {
		enter := at.orLater(p.left[i])
		s.Passages = append(s.Passages, event.Passage{Enter: enter.at, Remainder: enter.femtos, Femtos: femtos})
		p.left[i] = enter.plus(femtos)
		at = p.left[i].plus(hop)
	}
	start, end := moment{r.gpu.free, r.gpu.remainder}, p.left[len(p.left)-1]
	if r.gpu.free < r.now {
		start = now
	}
	if end.at.Sub(start.at) > clock.MaxFemtos/clock.FemtosPerPico-1 {
		r.fault = fmt.Errorf("sim: an iteration takes from %v to %v", start.at, end.at)
		return 0
	}
	return int64(end.at-start.at)*clock.FemtosPerPico + end.femtos - start.femtos
}

// maxStages is the maximum number of pipeline stages.
const maxStages = 1 << 10

// validatePipeline returns errors for the features that pipeline stages do not support.
func (c *Config) validatePipeline() (faults []error) {
	if c.Stages < 1 || c.Stages > maxStages {
		return []error{fmt.Errorf("pipeline stages: %d is not allowed (want 1 to %d)", c.Stages, maxStages)}
	}
	without := func(on bool, what string) {
		if on {
			faults = append(faults, errors.New("pipeline stages: they do not go with "+what))
		}
	}
	without(c.Speculative.On(), "speculative decoding")
	without(c.Radix, "a radix cache")
	without(c.Contiguous, "contiguous KV")
	without(c.HostBlocks > 0, "swap space")
	without(c.Connector != nil, "KV that is loaded or offloaded")
	_, fair := c.Order.(sched.Fair)
	without(fair, "an order that shares service among clients")
	if p, ok := c.Scheduler.(sched.Pipelined); ok {
		if err := p.Pipelined(); err != nil {
			faults = append(faults, err)
		}
	} else if c.Scheduler != nil {
		faults = append(faults, fmt.Errorf("pipeline stages: policy %T does not go with them", c.Scheduler))
	}
	return faults
}
