package workload

import "clifftop/sim/clock"

// Client says how the client of a request waits, and which attempt of it this is. Once a request was handed
// out its Client does not change; first attempts may share one.
type Client struct {
	// FirstTimeout is how long after Arrival the client leaves if it has not been sent the first token, and Timeout
	// if the answer is not complete; 0 is never.
	FirstTimeout, Timeout clock.Duration
	// Cancel is how long after Arrival the user loses interest in an answer that is not complete; 0 is never. It is
	// not a timeout, and is not tried again.
	Cancel clock.Duration
	// Silent says that the server is not told of a departure, and goes on.
	Silent bool
	// MayRetry says that there may be further attempts, which repeat the text of this one.
	MayRetry bool
	// Earlier are the ways in which earlier attempts ended.
	Earlier Causes
	// Attempt counts the attempts from 0.
	Attempt int32
	// First and Sent are ID and arrival of the first attempt; they are read in later ones only.
	First int64
	Sent  clock.Time
}

// Waits is the client who gives up after so long a time; nil, who never does, if that is 0.
func ClientWithTimeout(timeout clock.Duration) *Client {
	if timeout == 0 {
		return nil
	}
	return &Client{Timeout: timeout}
}

// Attempt counts the attempts of which r is one from 0.
func (r *Request) Attempt() int32 {
	if r.Client == nil {
		return 0
	}
	return r.Client.Attempt
}

// First is the ID of the first attempt of which r is one, and the instant at which it was sent: that of the logical
// request.
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
	TimedOutFirst         // there was no first token in time
	TimedOut              // the answer was not complete in time
	Cancelled             // the user lost interest
	RefusedBusy           // the server was busy
	RefusedTooLong        // the request can never be served
	Disconnected          // the server failed, or could not be reached
)

// String is the ending in lower case.
func (e Ending) String() string {
	return [...]string{"answered", "ttft timeout", "timeout", "cancelled", "busy", "too long", "disconnected"}[e]
}

// GaveUp says that the client gave up, and was not refused or answered.
func (e Ending) GaveUp() bool { return e >= TimedOutFirst && e <= Cancelled }

// Causes is a set of endings: why there were further attempts.
type Causes uint8

// With is the set with e.
func (s Causes) With(e Ending) Causes { return s | 1<<e }

// Has reports whether e is in the set.
func (s Causes) Has(e Ending) bool { return s>>e&1 == 1 }

// End is how and when an attempt ended for its client.
type End struct {
	How Ending
	// At is the instant at which the client knows.
	At clock.Time
	// First is when the client saw the first token; [clock.Never] if it did not.
	First clock.Time
	// Tokens is the number of answer tokens that it received.
	Tokens int32
}
