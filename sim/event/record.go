package event

import (
	"clifftop/sim/clock"
	"clifftop/workload"
)

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

// Ending returns how a refusal looks to the client.
func (f Refusal) Ending() workload.Ending {
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
	// LoadedTokens are those of its prompt behind them that were loaded from tiers for the first admission,
	// PulledTokens those that another replica had computed; those loaded after a preemption are LaterCachedTokens too.
	// Loading is how long it waited for its KV to be there: of a request that was handed over, at the replica that
	// computed its prompt.
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
