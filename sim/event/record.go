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
	Rejected          // rejected; Refusal has the reason
	TimedOut          // its client left after its timeout, whether or not the engine served it
	Cancelled         // its user cancelled, likewise
	Failed            // its replica failed, or could not be reached
)

// String is the outcome in lower case.
func (o Outcome) String() string {
	return [...]string{"completed", "rejected", "timed_out", "cancelled", "failed"}[o]
}

// Refusal is the reason of a rejection.
type Refusal uint8

// The reasons of rejections, and [NotRefused] for none.
const (
	NotRefused Refusal = iota
	NeverFits          // on arrival: it exceeds the model's context or the KV pool
	Busy               // at the engine's queue: the admission limit is reached
	NotReady           // at the router: no replica takes requests, and its queue is full
)

// String is the reason in lower case.
func (f Refusal) String() string {
	return [...]string{"none", "never fits", "busy", "not ready"}[f]
}

// Ending returns the ending that the client sees.
func (f Refusal) Ending() workload.Ending {
	if f == NeverFits {
		return workload.RefusedTooLong
	}
	return workload.RefusedBusy
}

// Record is the result of one request. Instants that were not reached are [clock.Never].
type Record struct {
	Request workload.Request
	// Replica is the number of its last replica; -1 if there was none.
	Replica int
	// HandedOver means that its prompt was computed by another replica, with the number PrefilledBy. Between is how
	// long it was in no engine's queue or batch after that.
	HandedOver  bool
	PrefilledBy int
	Between     clock.Duration
	Outcome     Outcome
	// Ending is how it ended for the client. Again means that the client sends it once more.
	Ending workload.Ending
	Again  bool
	// Left is when the client left. The engine may have served the request all the same: then LastToken is set.
	Left clock.Time
	// Queued is when the request reached the engine's queue; Scheduled when it was first admitted to the running batch.
	Queued, Scheduled clock.Time
	// PassedOver means that an iteration without the request was composed between Queued and Scheduled: it waited for
	// more than the end of the iteration that was running when it arrived.
	PassedOver bool
	// FirstToken and LastToken are ends of iterations; ClientFirst and ClientLast are when the client gets the tokens,
	// after the front end's streaming delay and the network's. It gets none that was sent after its departure was
	// certain. The TTFT is ClientFirst less the instant at which the client first sent the request, see
	// [workload.Request.First].
	FirstToken, LastToken   clock.Time
	ClientFirst, ClientLast clock.Time
	// Released is when the engine released the seat and the blocks.
	Released clock.Time
	// Refusal is the reason of a rejection.
	Refusal Refusal
	// Tokens is the number of output tokens that the engine delivered, even after the client left.
	Tokens int32
	// CachedTokens is the part of the prompt found in the prefix cache on first admission. LaterCachedTokens were found
	// there after a preemption, computed by other requests. All other tokens of prompt and output, except the last,
	// were computed for it once and, except the RecomputedTokens, only once.
	CachedTokens, LaterCachedTokens int32
	// LoadedTokens are the prompt tokens after the cached ones that were loaded from tiers for the first admission;
	// PulledTokens were loaded from another replica. Those loaded after a preemption are LaterCachedTokens too. Loading
	// is how long it waited for KV to be loaded; of a request that was handed over, at the prefill replica.
	LoadedTokens int32
	PulledTokens int32
	Loading      clock.Duration
	// RecomputedTokens were prefilled again after preemptions.
	RecomputedTokens int32
	// LostTokens were computed for it because the prefix cache had evicted them.
	LostTokens  int32
	Preemptions int32
	// GPU is its GPU time.
	GPU GPUTime
}
