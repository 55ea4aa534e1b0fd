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
type pipeline struct {
	d      *decoders
	spare  []int32 // empty berths
	rest   int32   // during a launch: berth of the members that were left out
	landed int64   // number of the last iteration that was processed

	host  moment   // when the host has finished the last iteration
	left  []moment // when the last iteration leaves each stage
	times []int64  // scratch: femtoseconds in each stage
}

// berths stores the cohorts of a pipeline.
type berths struct {
	list []berth
	seat int32 // the berth whose cohort the engine has
	open int32 // berth of the open cohort or, during a launch, of the iteration that is being launched
}

// berth stores a cohort.
type berth struct {
	cohort  cohort // cohort and lagging are stale while the engine has the cohort
	lagging int
	// The last iteration that gave tokens to the members that do not lag.
	number int64
	end    clock.Time
}

// newPipeline returns a pipeline of n stages, and gives the decoding sequences their berths.
func newPipeline(n int, blockSize int32, d *decoders) *pipeline {
	// One for each iteration in flight, one for the open cohort and one for an iteration that is being launched.
	d.berths = &berths{list: make([]berth, n+2)}
	p := &pipeline{d: d, left: make([]moment, n), times: make([]int64, n)}
	for i := range d.berths.list[1:] {
		d.berths.list[i+1].cohort.init(d.cohort.seqs, blockSize, d.cohort.first != nil)
		p.spare = append(p.spare, int32(i+1))
	}
	return p
}

// sit stores the cohort in its berth, and takes the cohort of berth k.
func (d *decoders) sit(k int32) {
	if k == d.berths.seat {
		return
	}
	b := &d.berths.list[d.berths.seat]
	b.cohort, b.lagging = d.cohort, d.lagging
	b = &d.berths.list[k]
	d.cohort, d.lagging, d.berths.seat = b.cohort, b.lagging, k
}

// leaveBehind separates the members of the open cohort that the composition, which is not empty, gave no token, before
// other sequences join it. These are the missed ones or, unless the cohort has stepped, all.
func (p *pipeline) leaveBehind(stepped bool, missed []int32) {
	n := len(p.spare) - 1
	k := p.spare[n]
	p.spare = p.spare[:n]
	if !stepped && p.d.cohort.size > 0 {
		p.rest, p.d.berths.open = p.d.berths.open, k
		p.d.sit(k)
		return
	}
	p.rest = k
	for _, i := range missed {
		p.move(i, k)
	}
}

// depart ends the launch of iteration f: its cohort is stored in its berth, and the members that were left out are the
// open cohort.
func (p *pipeline) depart(f *iteration) {
	c := p.d.berths
	p.d.space.Settle()
	f.berth = c.open
	b := &c.list[c.open]
	b.number, b.end = f.number, f.end
	c.open = p.rest
	p.d.sit(c.open)
}

// land makes the cohort of f, whose tokens have arrived, the open one, and moves the members that waited into it.
func (p *pipeline) land(f *iteration) {
	d, c := p.d, p.d.berths
	waits := c.open
	p.landed = f.number
	for i := d.running.first; i != none && d.cohort.size > 0; i = d.seqs.at(i).next {
		if s := d.seqs.at(i); s.phase == decoding && s.berth == waits {
			p.move(i, f.berth)
		}
	}
	c.open = f.berth
	d.sit(c.open)
	c.list[waits].cohort.ends.Clear()
	p.spare = append(p.spare, waits)
}

// move puts sequence i of the cohort into that of berth to, as a lagging member.
func (p *pipeline) move(i, to int32) {
	d, from := p.d, p.d.berths.seat
	s := d.seqs.at(i)
	d.leaveCohort(i)
	s.target = s.computed
	d.sit(to)
	d.joinCohort(i)
	s.shared = d.cohort.share
	s.lagging = true
	d.lagging++
	d.sit(from)
}

// lastToken returns the iteration that gave the last tokens of the engine's cohort, and its end.
func (c *berths) lastToken() (number int64, end clock.Time) {
	b := &c.list[c.seat]
	return b.number, b.end
}

// emits reports whether iteration f issues a token of s.
func (c *berths) emits(f *iteration, s *sequence) bool {
	if s.phase == decoding {
		return c.list[s.berth].number == f.number && !s.lagging
	}
	return s.lastBatch == f.number
}

// computes reports whether an iteration in flight computes for s, which was preempted.
func (p *pipeline) computes(s *sequence) bool {
	return p != nil && max(s.lastBatch, s.chunkBatch) > p.landed
}

// inOtherCohort reports whether s, which decodes, is not in the open cohort: it has a token in flight, or was left out
// of the iteration that is being launched.
func (d *decoders) inOtherCohort(s *sequence) bool {
	return d.berths != nil && s.berth != d.berths.open
}

// cohortOf returns the cohort of s, which decodes.
func (d *decoders) cohortOf(s *sequence) *cohort {
	if d.berths == nil || s.berth == d.berths.seat {
		return &d.cohort
	}
	return &d.berths.list[s.berth].cohort
}

// whole returns the sums over all cohorts as one cohort, for checks.
func (p *pipeline) whole() *cohort {
	all := new(cohort)
	all.init(p.d.seqs, int32(len(p.d.cohort.takes.need)), false)
	for k := range p.d.berths.list {
		c := &p.d.berths.list[k].cohort
		if int32(k) == p.d.berths.seat {
			c = &p.d.cohort
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

// pass sends the composed iteration, which alone takes this many femtoseconds, at the instant now through the host and
// then the stages. It enters a stage when it has left the stage before and the iteration before it has left this stage.
// pass returns the time in femtoseconds from the end of the iteration before, or from now if that is later, to its end.
func (p *pipeline) pass(now clock.Time, host clock.Duration, alone int64, t model.StepTimer, g *gpu,
	s *event.Span) (int64, error) {
	begin := moment{at: now}
	p.host = p.host.orLater(begin).plus(int64(host) * clock.FemtosPerPico)
	hop := model.DivideStages(t, &g.batch, alone, p.times)
	s.Passages = s.Passages[:0]
	at := p.host
	for i, femtos := range p.times {
		enter := at.orLater(p.left[i])
		s.Passages = append(s.Passages, event.Passage{Enter: enter.at, Remainder: enter.femtos, Femtos: femtos})
		p.left[i] = enter.plus(femtos)
		at = p.left[i].plus(hop)
	}
	start, end := moment{g.free, g.remainder}, p.left[len(p.left)-1]
	if g.free < now {
		start = begin
	}
	if end.at.Sub(start.at) > clock.MaxFemtos/clock.FemtosPerPico-1 {
		return 0, fmt.Errorf("sim: an iteration takes from %v to %v", start.at, end.at)
	}
	return int64(end.at-start.at)*clock.FemtosPerPico + end.femtos - start.femtos, nil
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
