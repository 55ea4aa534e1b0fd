package sim

import (
	"clifftop/sim/clock"
	"clifftop/sim/sched"
	"clifftop/workload"
)

// Observer is told what happens in a run. Calls come in an order that depends on the scenario and
// seed alone. The arguments are valid only during the call.
//
// Levels come in order of time. Spans and records are reported when they are known: those of one replica in order of
// time, under asynchronous scheduling up to two iterations before their last instants; those of another replica may
// come when later ones have been reported.
type Observer interface {
	// Edge is the next instant past another at which the observer wants the accounting cut: no span of more
	// than one iteration is reported across it. [clock.Never] when it does not care.
	Edge(past clock.Time) clock.Time
	// Arrived tells that a client sent a request.
	Arrived(at clock.Time, r *workload.Request)
	// Levels tells that one of the levels has a new value from the instant at on.
	Levels(at clock.Time, l *Levels)
	// Span tells that like iterations ran.
	Span(s *Span)
	// Gap tells of n equal inter-token gaps, ended at the instant at, that no span carries: of
	// sequences that were preempted or held between two tokens.
	Gap(at clock.Time, gap clock.Duration, n int)
	// Preempted tells that a running sequence lost its KV blocks.
	Preempted(at clock.Time)
	// Dropped tells that tokens counted by a span that ends at the instant at were not
	// delivered, because their client had left.
	Dropped(at clock.Time, tokens int)
	// Finished tells how a request ended. Every request that arrived is finished once, unless the
	// run stops first.
	Finished(rec *Record)
}

// FleetObserver is an [Observer] that tells the replicas of a fleet apart.
type FleetObserver interface {
	Observer
	// OfReplica returns the observer that is told, beside this one, of what happens at one replica, as if it were alone:
	// of the requests that the router sends there, as arrived when they were sent by their clients and in the system
	// from when they were sent there. It returns nil if nobody wants to know.
	OfReplica(i int) Observer
}

// MoveObserver is an Observer that wants to know what KV moves between the pool and the tiers of a [Connector].
type MoveObserver interface {
	Observer
	// Moved tells what begins to move at the instant at.
	Moved(at clock.Time, m Move)
	// LinkBusy tells that the link of a tier has something to carry from the instant at on, or nothing any more.
	LinkBusy(at clock.Time, replica, tier int, busy bool)
}

// Move is KV blocks on their way to a tier, if they are stored, or from it.
type Move struct {
	Replica, Tier int
	Stored        bool
	Blocks        int
	Bytes         int64
}

// LifeObserver is an [Observer] of a fleet whose replicas start, fail and end.
type LifeObserver interface {
	Observer
	// ReplicaState tells that a replica is in another state from the instant at on. Until it is told for the first time
	// a replica is [Ready].
	ReplicaState(at clock.Time, replica int, s State)
}

// Levels are the numbers of requests by state, and why the first waiting one is not admitted.
type Levels struct {
	System   int // sent and not yet ended
	Waiting  int // in the engine's queue, preempted ones included
	Running  int // holding a seat in the running batch
	Decoding int // running, and past their first token
	Held     int // at the router, as long as no replica takes requests
	// Blocked says why the head of the queue was not admitted at the last scheduling;
	// [sched.NotBlocked] when nobody waits or everybody who could was admitted. For a fleet it is what holds back
	// the heads of the most queues.
	Blocked sched.Cause
}

func (l *Levels) equal(m *Levels) bool {
	return l.System == m.System && l.Waiting == m.Waiting && l.Running == m.Running &&
		l.Decoding == m.Decoding && l.Held == m.Held && l.Blocked == m.Blocked
}

// Span is a run of like iterations on one replica: the same sequences decode in each. Iterations
// with prefill chunks are reported one at a time.
type Span struct {
	clock.Progression
	// Replica is the number of the replica in its fleet.
	Replica int
	// Wait is how long the GPU stood idle before iteration 0 since the previous iteration. The
	// first inter-token gap is longer by it.
	Wait clock.Duration
	// Decodes is the number of sequences that decode in each iteration. Each gains one token, or several with
	// speculative decoding, at the iteration's end, and the gap since its previous one is as long as the iteration. In
	// iteration 0 that holds for Gaps of them; the others are reported through Gap.
	Decodes, Gaps int
	// FirstTokens is the number of tokens produced at the iteration's end by sequences that completed a
	// prefill: first tokens, and the next tokens of those resumed after a preemption.
	FirstTokens int
	// PrefillTokens are prompt tokens computed for the first time in each iteration;
	// RecomputedTokens had been computed before a preemption.
	PrefillTokens, RecomputedTokens int
	// LostTokens are those of PrefillTokens that the prefix cache had, and lost: without evictions they would have been
	// found. See [clifftop/sim/kv.RememberedEvictions] and, of a radix cache, [clifftop/sim/kv.RememberedLeaves].
	LostTokens int
	// Drafts are the tokens that each iteration verified beside those of the decodes, with speculative decoding, and
	// Accepted those found right. They are produced too, but for Discarded ones past the end of an answer.
	Drafts, Accepted, Discarded int
	// PaddedRows are rows that each iteration computed for nobody, with a context of PaddedContext
	// tokens in iteration 0 that grows by PaddedRows; PaddedTokens are the tokens by which chunks
	// were padded, and those that a rank ran for nobody because it iterates in lock step with others. They cost time and are in no other count.
	PaddedRows, PaddedTokens int
	PaddedContext            int64
	// SwappedBlocks is the number of KV blocks copied to and from host memory, and SwapFemtos the part of
	// each iteration that the copies take, in femtoseconds.
	SwappedBlocks int
	SwapFemtos    int64
	// HostFemtos is the part of iteration 0 in which the GPU waits for the host, in femtoseconds. It grows by
	// HostSlope from each iteration to the next, which is negative where the host is being overtaken.
	HostFemtos, HostSlope int64
	// Carry is what was left over, in femtoseconds, when the time of the iterations before was shared out: see Share.
	Carry int64
	// Context and Shared are those of [clifftop/model.Batch] for iteration 0; Context grows by
	// Decodes from each iteration to the next.
	Context, Shared int64
	// UsedBlocks is the number of referenced KV blocks after scheduling the last iteration.
	UsedBlocks int
	// BlockFemtos is the integral of referenced KV blocks over the iterations, in
	// block-femtoseconds.
	BlockFemtos Uint128
	// EmptyBlocks are those of UsedBlocks that hold nothing yet, since sequences reserved them ahead of need, and
	// EmptyFemtos is their integral.
	EmptyBlocks int
	EmptyFemtos Uint128
	// Passages are those through the stages of a pipeline, in order; nil where there is none. The iteration is then told
	// from where the one before it ended, or from its composition, to its own end, so that spans do not overlap, and
	// each is alone in its span. The passages begin earlier where others were in flight.
	Passages []Passage
}

// Passage is an iteration in a stage of a pipeline, which works for Femtos femtoseconds from Enter and a remainder of
// femtoseconds on.
type Passage struct {
	Enter             clock.Time
	Remainder, Femtos int64
}

// Leave is the end of the passage.
func (p *Passage) Leave() clock.Time {
	return p.Enter + clock.Time((p.Remainder+p.Femtos)/clock.FemtosPerPico)
}

// passing is the time of all passages.
func (s *Span) passing() (femtos int64) {
	for i := range s.Passages {
		femtos += s.Passages[i].Femtos
	}
	return femtos
}

// Output is the number of answer tokens that an iteration produces.
func (s *Span) Output() int { return s.Decodes + s.FirstTokens + s.Accepted - s.Discarded }

// Computed is the number of tokens that an iteration computes, those for nobody left out.
func (s *Span) Computed() int {
	return s.Decodes + s.Drafts + s.PrefillTokens + s.RecomputedTokens
}

// Rejected is the number of them that were drafts of no use.
func (s *Span) Rejected() int { return s.Drafts - s.Accepted + s.Discarded }

// Outcome is how a request ended.
type Outcome uint8

// The outcomes.
const (
	Completed Outcome = iota
	Rejected          // refused by the engine; its record says why
	TimedOut          // its client left because it took too long, whether or not the engine served it
	Cancelled         // its client lost interest, likewise
	Failed            // its replica failed, or could not be reached
)

// String is the outcome in lower case.
func (o Outcome) String() string {
	return [...]string{"completed", "rejected", "timed_out", "cancelled", "failed"}[o]
}

// Refusal says why a request was rejected.
type Refusal uint8

// The refusals, and [NotRefused] for none.
const (
	NotRefused Refusal = iota
	NeverFits          // on arrival: it exceeds the model's context or the KV pool
	Busy               // at the engine's queue: too many requests or tokens are there before it
	NotReady           // at the router: no replica takes requests, and too many wait for one
)

// String is the refusal in lower case.
func (f Refusal) String() string {
	return [...]string{"none", "never fits", "busy", "not ready"}[f]
}

// ending is what a refusal is for the client.
func (f Refusal) ending() workload.Ending {
	if f == NeverFits {
		return workload.RefusedTooLong
	}
	return workload.RefusedBusy
}

// Record is the life of one request. Instants that were not reached are [clock.Never].
type Record struct {
	Request workload.Request
	// Replica is the number of the replica that it was sent to, last; -1 if it was sent to none.
	Replica int
	// HandedOver says that its prompt was computed by another replica, number PrefilledBy. Between is how long, after
	// that one had let go of the seat, it was in no engine's queue or batch.
	HandedOver  bool
	PrefilledBy int
	Between     clock.Duration
	Outcome     Outcome
	// Ending is how it ended for the client, and Again says that the client sends it once more.
	Ending workload.Ending
	Again  bool
	// Left is when the client gave up. The engine may have served the request nevertheless: LastToken tells.
	Left clock.Time
	// Queued is when the front end had handed the request to the engine's queue; Scheduled when
	// it was first admitted to the running batch.
	Queued, Scheduled clock.Time
	// PassedOver says that an iteration was composed between Queued and Scheduled, without the request: it waited for
	// more than the end of the iteration that was running when it came.
	PassedOver bool
	// FirstToken and LastToken are ends of iterations; ClientFirst and ClientLast are when the
	// client sees the tokens, after the front end's streaming delay and the network's; it sees none that was sent when
	// it was settled that it would leave.
	FirstToken, LastToken   clock.Time
	ClientFirst, ClientLast clock.Time
	// Released is when the engine let go of the seat and the blocks.
	Released clock.Time
	// Refusal says why a rejected request was.
	Refusal Refusal
	// Tokens is the number of answer tokens that the engine delivered, be there still a client or not.
	Tokens int32
	// CachedTokens is the part of the prompt found in the prefix cache on first admission. LaterCachedTokens
	// were found there after a preemption, though it had never had them: others had computed them meanwhile. All
	// other tokens of prompt and answer, but for the last, were computed for it once and, but for the
	// RecomputedTokens, only once.
	CachedTokens, LaterCachedTokens int32
	// LoadedTokens are those of its prompt behind them that were loaded from tiers for the first admission, PulledTokens those
	// that another replica had computed; those loaded after a preemption are LaterCachedTokens too. Loading is how long it
	// waited for its KV to be there: of a request that was handed over, at the replica that computed its prompt.
	LoadedTokens int32
	PulledTokens int32
	Loading      clock.Duration
	// RecomputedTokens were prefilled again after preemptions.
	RecomputedTokens int32
	// LostTokens were computed for it because the prefix cache had lost them.
	LostTokens  int32
	Preemptions int32
	// GPU is the GPU time that it took.
	GPU GPUTime
}
