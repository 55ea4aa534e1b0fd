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
	// visible is when it reaches the queue, or is found too long for it; told is when the server hears that its client
	// has left.
	visible, told clock.Time
	tooLong       bool
	// prompt and answer are its lengths; the answer is cut at the longest sequence allowed. declared
	// is the longest answer that the engine has to expect.
	prompt, answer, declared int32

	// idle says that its last token has been delivered, ended that it is gone for good. Between the
	// two an iteration in flight still has a part of it.
	over, ended bool
	// key is what the order said when it joined the queue last.
	key int64
	// verified is the number of iterations in which it decoded with drafts.
	verified int
	// scheduled and delivered are the answer tokens that were given to iterations, and those
	// whose iteration has been processed.
	scheduled, delivered int32
	// emissions: the serial number and the end of the iteration that gave its last token.
	lastIteration int
	lastEnd       clock.Time
	// pipelined says that it runs on a pipeline.
	pipelined bool
	// highest is the largest number of computed tokens that it ever had, found ones included.
	highest int32

	admission
	kv     kvState
	hosted int // blocks in host memory
	transferState
}

// admission is the state of a sequence since its last admission.
type admission struct {
	serial   int64 // counts admissions, so that running order is that of serials
	computed int32 // tokens whose KV is in the cache or scheduled to be; of a swapped-out one, in host memory
	given    int32 // tokens given in the iteration being composed
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
}

// transferState is the state of a sequence with a KV connector.
type transferState struct {
	loading    bool // its KV is being loaded
	pulled     bool // the last load was from another replica
	loadSerial int  // counts loads
	leased     bool // it has ended, and its blocks are kept until another replica has read them
}

// clientLeft says that its client has left.
func (s *sequence) clientLeft() bool { return s.rec.Left != clock.Never }

// foreseen says that the whole answer is on its way, and that the engine knows.
func (s *sequence) foreseen() bool { return s.over || s.scheduled == s.declared }

// unreachable says that a token of it is in flight on a pipeline: nothing more can be done before it is there.
func (s *sequence) away() bool { return s.pipelined && s.scheduled > s.delivered }

// known is the number of tokens that the sequence has, those on their way included.
func (s *sequence) known() int32 { return s.prompt + s.scheduled }

// missing is the number of known tokens that are neither computed nor given.
func (s *sequence) missing() int32 {
	if s.foreseen() || s.away() {
		return 0
	}
	if s.drafts > 0 && s.given > 0 {
		return 0
	}
	return s.known() + s.drafts - s.computed - s.given
}

// decodes says that it is past its prefill and has tokens to come.
func (s *sequence) decodes() bool { return s.produces && !s.foreseen() && !s.away() }

// inPrefill says that there are tokens of its prefill to give.
func (s *sequence) inPrefill() bool { return !s.produces && s.missing() > 0 }

func (s *sequence) urgency() sched.Urgency {
	return sched.Urgency{Key: s.key, Arrival: int64(s.rec.Request.Arrival), Request: s.rec.Request.ID}
}

func (s *sequence) progress() sched.Progress {
	r := &s.rec.Request
	return sched.Progress{
		Request: r.ID, User: r.User, Session: r.Session, Class: r.Class, Priority: r.Priority,
		Prompt: s.prompt, Generated: s.scheduled, MaxTokens: s.declared,
	}
}

// compareUrgency is negative when p goes before q in an ordered queue.
func compareUrgency(p, q sched.Urgency) int {
	return cmp.Or(cmp.Compare(p.Key, q.Key), cmp.Compare(p.Arrival, q.Arrival), cmp.Compare(p.Request, q.Request))
}
