package naive

import (
	"cmp"

	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/sim/sched"
)

// sequence is a request and its state.
type sequence struct {
	rec event.Record
	// visible is when it reaches the queue, or is found too long for it; abortAt is when the abort of its client
	// reaches the server.
	visible, abortAt clock.Time
	tooLong          bool
	// prompt and output are its lengths; the output is cut at the maximum model length. declared is the longest output
	// that the engine must expect.
	prompt, output, declared int32

	// ended means that it has left the engine.
	ended bool
	// key is its key in the order of the queue when it joined last.
	key int64
	// skipped means that a policy passed over it while it waited, passed that the current one does.
	skipped, passed bool
	// verified is the number of its decode iterations with drafts.
	verified int
	// scheduled and delivered are the output tokens that were given to iterations, and those whose iteration has been
	// processed.
	scheduled, delivered int32
	// pipelined means that it runs on a pipeline, ahead that iterations are composed before it is known which drafts
	// are accepted.
	pipelined, ahead bool
	// unpredicted means that the engine does not foresee the end at the declared length.
	unpredicted bool
	// highest is the largest number of computed tokens that it ever had, including cached ones.
	highest  int32
	returned int64 // when it last went to the tail of the queue; 0 is never

	admission
	chunks
	kv     kvState
	hosted int // blocks in host memory
	transferState
}

// admission is the state of a sequence since its last admission.
type admission struct {
	serial   int64 // counts admissions, so that running order is that of serials
	computed int32 // tokens whose KV is in the cache or scheduled to be; of a swapped-out one, in host memory
	given    int32 // tokens given in the iteration being composed
	inFlight int32 // those of the computed tokens that are in iterations in flight
	found    int32 // tokens found in the prefix cache
	lostFrom int32 // those that would be found too but for evictions
	lostTo   int32
	loaded   int32 // tokens brought back from host memory or loaded by the connector
	produces bool  // has scheduled a token since, so that it is past its prefill
	decoding bool  // has been delivered a token since
	windowed int   // blocks charged for windowed layers
	reserved int   // blocks that it has reserved since its admission, in all
	booked   int32 // tokens that a policy has booked blocks for
	drafts   int32 // for its next iteration, as far as the longest sequence goes
	padding  int32 // dummy drafts in the iteration being composed, which admits it
	// With asynchronous scheduling the drafts in flight count as accepted: unseen is the number of tokens that the
	// iterations in flight do not produce although it is scheduled, rejected the number of drafts among them.
	unseen, rejected int32
}

// transferState is the state of a sequence with a KV connector.
type transferState struct {
	loading    bool // its KV is being loaded
	pulled     bool // the last load was from another replica
	loadSerial int  // counts loads
	leased     bool // it has ended, and its blocks are kept until another replica has read them
}

func (s *sequence) clientLeft() bool { return s.rec.Left != clock.Never }

// fullyScheduled reports whether the whole output is scheduled, and the engine knows it: an iteration in flight
// produces one token at least.
func (s *sequence) fullyScheduled() bool {
	if s.ahead {
		return s.scheduled > s.delivered && s.delivered+1 >= s.declared
	}
	return s.scheduled == s.declared && !s.unpredicted
}

// awaitsToken reports whether a token of it is in flight on a pipeline, so that it cannot be scheduled.
func (s *sequence) awaitsToken() bool { return s.pipelined && s.scheduled > s.delivered }

// known is the number of tokens that the sequence has, including those in flight.
func (s *sequence) known() int32 { return s.prompt + s.scheduled + s.unseen }

// missing is the number of known tokens that are neither computed nor given.
func (s *sequence) missing() int32 {
	if s.fullyScheduled() || s.awaitsToken() {
		return 0
	}
	if s.drafts+s.padding > 0 && s.given > 0 {
		return 0
	}
	return s.known() + s.drafts + s.padding - s.computed - s.given
}

// decodes reports whether it is past its prefill and has output left.
func (s *sequence) decodes() bool { return s.produces && !s.fullyScheduled() && !s.awaitsToken() }

// inPrefill reports whether it has prefill tokens left.
func (s *sequence) inPrefill() bool { return !s.produces && s.missing() > 0 }

func (s *sequence) urgency() sched.Urgency {
	return sched.Urgency{Key: s.key, Arrival: int64(s.rec.Request.Arrival), Returned: s.returned,
		Request: s.rec.Request.ID}
}

func (s *sequence) progress() sched.Progress {
	p := sched.NewProgress(&s.rec.Request)
	p.Prompt, p.Generated, p.MaxTokens = s.prompt, s.scheduled+s.unseen, s.declared
	return p
}

// compareUrgency is negative if p is before q in an ordered queue.
func compareUrgency(p, q sched.Urgency) int {
	return cmp.Or(cmp.Compare(p.Key, q.Key), cmp.Compare(max(p.Arrival, p.Returned), max(q.Arrival, q.Returned)),
		cmp.Compare(p.Returned, q.Returned), cmp.Compare(p.Request, q.Request))
}
