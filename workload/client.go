package workload

import "clifftop/sim/clock"

// Client holds the timeouts of an attempt and its number. It does not change after the request was returned by the
// source; first attempts may share one.
type Client struct {
	// FirstTimeout is how long after Arrival the client gives up if it has not received the first token, Timeout if
	// the output is not complete; 0 means never.
	FirstTimeout, Timeout clock.Duration
	// Cancel is how long after Arrival the user cancels an incomplete request; 0 means never. A cancelled request
	// is not retried.
	Cancel clock.Duration
	// Leaves means that the client may leave at any time: see [clifftop/sim.Simulation.Leave].
	Leaves bool
	// Silent means that the server does not learn that the client gave up, and continues to generate.
	Silent bool
	// MayRetry means that further attempts with the same text may follow.
	MayRetry bool
	// Earlier is the set of endings of the earlier attempts.
	Earlier Causes
	// Attempt numbers the attempts from 0.
	Attempt int32
	// First and Sent are the ID and the arrival of the first attempt; they are valid for later attempts only.
	First int64
	Sent  clock.Time
}

// ClientWithTimeout returns a client with a single attempt and a timeout for the complete output; nil if timeout is
// 0.
func ClientWithTimeout(timeout clock.Duration) *Client {
	if timeout == 0 {
		return nil
	}
	return &Client{Timeout: timeout}
}

// Attempt returns the number of earlier attempts of the same logical request.
func (r *Request) Attempt() int32 {
	if r.Client == nil {
		return 0
	}
	return r.Client.Attempt
}

// First returns the ID and the arrival of the first attempt, which identify the logical request.
func (r *Request) First() (id int64, sent clock.Time) {
	if r.Attempt() == 0 {
		return r.ID, r.Arrival
	}
	return r.Client.First, r.Client.Sent
}

// Ending is how an attempt ended for its client.
type Ending uint8

// The endings.
const (
	Answered       Ending = iota
	TimedOutFirst         // no first token before the timeout
	TimedOut              // output not complete before the timeout
	Cancelled             // the user cancelled
	RefusedBusy           // the server rejected the request because of its load
	RefusedTooLong        // the request exceeds the limits of the server
	Disconnected          // the server failed or was unreachable
)

// String returns the ending in lower case, such as "ttft timeout".
func (e Ending) String() string {
	return [...]string{"answered", "ttft timeout", "timeout", "cancelled", "busy", "too long", "disconnected"}[e]
}

// GaveUp reports whether the client ended the attempt by a timeout or a cancellation.
func (e Ending) GaveUp() bool { return e >= TimedOutFirst && e <= Cancelled }

// Causes is a set of endings that led to further attempts.
type Causes uint8

// With returns the set with e added.
func (s Causes) With(e Ending) Causes { return s | 1<<e }

// Has reports whether e is in the set.
func (s Causes) Has(e Ending) bool { return s>>e&1 == 1 }

// End is how and when an attempt ended for its client.
type End struct {
	How Ending
	// At is the instant at which the client learns of the end.
	At clock.Time
	// First is the instant at which the client received the first token; [clock.Never] if it did not.
	First clock.Time
	// Tokens is the number of output tokens that the client received.
	Tokens int32
}
