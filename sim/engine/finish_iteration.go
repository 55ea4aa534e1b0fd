package engine

import (
	"slices"

	"clifftop/sim/event"
)

// finish completes the composition: it puts back the members of the cohort that got no token, verifies drafts, makes
// sequences whose prefill is complete decode, and lists those with output.
func (it *batchBuilder) finish() {
	r := it.r
	it.current.stepped = it.stepped
	if it.slow || it.stepped && r.lagging > 0 {
		it.putBack()
	}
	for _, i := range it.current.firsts {
		r.fair.Produced(r.seqs.at(i).client, 1)
	}
	it.verify()
	r.seqs.sortBySerial(it.current.firsts)
	if r.pipe != nil {
		r.cohort.singly = false
		if it.decodes > 0 || len(it.chunks) > 0 {
			r.pipe.leaveBehind(it.stepped, it.missed)
			it.missed = it.missed[:0]
		}
	}
	for _, i := range it.current.firsts {
		switch s := r.seqs.at(i); {
		case s.issued >= s.slots:
			s.phase = finishing
		case r.cfg.Speculative.On():
			it.speculate(s)
		default:
			r.joinCohort(i)
			it.joined++
		}
	}
	r.cohort.singly = false
	if it.walked = it.visitsSenders(); it.walked || it.current.partial {
		it.walkSenders()
	}
	if !r.detailed {
		for _, i := range it.chunkSeqs {
			r.seqs.at(i).given = 0
		}
		for _, i := range it.current.firsts {
			r.seqs.at(i).given = 0
		}
		for k := range it.current.verified {
			r.seqs.at(it.current.verified[k].seq).given = 0
		}
		if it.slow {
			for i := r.running.first; i != none; i = r.seqs.at(i).next {
				r.seqs.at(i).given = 0
			}
		}
	}
}

// visitsSenders reports whether the front end must know each sequence that has output: they do not follow from the
// running order.
func (it *batchBuilder) visitsSenders() bool {
	return (!it.r.line.Free() || it.r.observed) && (it.slow || it.preempted > 0 || it.r.pipe != nil || len(it.current.verified) > 0 ||
		it.mixed && len(it.current.firsts) > 0 || it.r.cfg.Speculative.On())
}

// walkSenders lists the sequences with output, in batch order.
func (it *batchBuilder) walkSenders() {
	r := it.r
	r.out.Senders = r.out.Senders[:0]
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		completes := s.joinBatch == it.current.number
		decodes := s.phase == decoding && s.joinBatch < it.current.number && it.hasToken(s) && !r.inOtherCohort(s)
		verifies := s.given > 0 && (s.phase == speculating || s.phase == finishing) && s.fresh > 0
		if completes || decodes || verifies {
			it.addSender(i, s)
		}
	}
	if it.current.partial {
		for k := range r.out.Senders {
			it.current.emitters = append(it.current.emitters, r.out.Senders[k].Seq)
		}
	}
}

// reportStep reports the iteration to the observers, sequence by sequence.
func (it *batchBuilder) reportStep() {
	r := it.r
	st := &r.step
	st.Span = &r.span
	st.Preempted, st.SwappedOut = it.victims, it.swaps
	st.FreeBlocks, st.Running, st.Waiting = r.space.free(), r.levels.Running, r.levels.Waiting
	st.Scheduled = st.Scheduled[:0]
	for i := r.running.first; i != none; i = r.seqs.at(i).next {
		s := r.seqs.at(i)
		share := event.Share{Request: s.rec.Request.ID}
		if s.serial > it.serials {
			share.Cached, share.Loaded = s.reused, s.loaded
		}
		row := it.current.rowOf(i)
		switch {
		case row != nil:
			share.Tokens, share.Drafts = s.given, s.given-min(row.fresh, 1)
			share.Produced, share.Emits = row.fresh, row.fresh > 0
		case slices.Contains(it.chunkSeqs, i), s.joinBatch == it.current.number:
			share.Tokens = s.given
			if share.Emits = s.joinBatch == it.current.number; share.Emits {
				share.Produced, share.Drafts = 1, s.dummies
			}
		case s.lastBatch == it.current.number && s.phase == finishing,
			it.stepped && s.phase == decoding && !s.lagging && s.joinBatch < it.current.number && !r.inOtherCohort(s):
			share.Tokens, share.Produced, share.Emits = 1, 1, true
		default:
			continue
		}
		share.Ends = s.slots == s.output && slices.Contains(it.current.finishes, i) || slices.Contains(it.current.lasts, i)
		st.Scheduled = append(st.Scheduled, share)
		s.given = 0
	}
	r.obs.Step(st)
	it.victims, it.swaps = it.victims[:0], it.swaps[:0]
}
