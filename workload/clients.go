package workload

import (
	"fmt"
	"math/rand/v2"

	"clifftop/sim/clock"
)

// ClientSpec says how the clients of some traffic behave: how long they wait, what they do when they have waited in
// vain or were refused, and how fast they read. The zero ClientSpec waits for ever and reads at once.
//
// A client that gives up and sends its request again makes a further attempt of one logical request: with the same
// lengths and the same text, so that it may find in a prefix cache what an earlier attempt left there.
type ClientSpec struct {
	// FirstTimeout is how long after sending an attempt the client gives it up if it has not seen the first token, and
	// Timeout if its answer is not complete; 0 is never.
	FirstTimeout, Timeout clock.Duration
	// Cancel is the probability that the user loses interest in a request, and CancelAfter how long that takes,
	// counted from the first attempt. Who has gone does not try again.
	Cancel      float64
	CancelAfter Delay
	// Retries is how often a request is sent again at most, and RetryOn after which endings of an attempt: those of
	// TimedOutFirst, TimedOut, RefusedBusy and Disconnected that it has. Others are final.
	Retries int32
	RetryOn Causes
	// Backoff is the wait before a further attempt.
	Backoff Backoff
	// RetryAfter is the wait that a busy server asks for, if clients heed it; 0 is none. Clients take it in place of
	// the backoff where it is at most [MaxRetryAfter], and without jitter.
	RetryAfter clock.Duration
	// RetryBudget bounds the further attempts of all clients together to this part of the requests; 0 is no bound. It is a
	// bucket of tokens that starts empty and holds [RetryBurst] of them at most: every first attempt puts
	// RetryBudget in, a further one takes 1 out, and is not made if that is not there.
	RetryBudget float64
	// Silent says that the server is not told when a client gives up, and goes on.
	Silent bool
	// Reading is how fast the user reads, in tokens per second: an answer has been read when it is complete, or when
	// the user, who began with the first token, comes to the last one, whichever is later. The next request of the
	// user, or of the session, waits for that. 0 is at once.
	Reading float64
}

const (
	// MaxRetryAfter is the longest wait asked for by a server that clients heed, as OpenAI's do.
	MaxRetryAfter = clock.Minute
	// RetryBurst is the number of further attempts that a retry budget can save up.
	RetryBurst = 10
	// MaxRetries bounds the attempts of one request.
	MaxRetries = 1000
)

// Retryable are the endings after which a client may send a request again.
const Retryable = Causes(1<<TimedOutFirst | 1<<TimedOut | 1<<RefusedBusy | 1<<Disconnected)

// ValidateClients reports all faults of the descriptions, each a [*FieldError], joined into one error. They are those
// of all requests, or one for each class.
func ValidateClients(kinds ...ClientSpec) error {
	var f fieldFaults
	for i, s := range kinds {
		key := "clients"
		if len(kinds) > 1 {
			key = fmt.Sprintf("workload.classes.%d.clients", i)
		}
		s.check(key, &f)
	}
	return f.Err()
}

func (s ClientSpec) check(key string, f *fieldFaults) {
	time := func(name string, d clock.Duration) {
		if d < 0 || d > clock.MaxRun {
			f.add(key+"."+name, "%v is not allowed (want 0 to %v)", d, clock.MaxRun)
		}
	}
	time("ttft_timeout", s.FirstTimeout)
	time("timeout", s.Timeout)
	time("retry_after", s.RetryAfter)
	if s.Timeout > 0 && s.FirstTimeout > s.Timeout {
		f.add(key+".ttft_timeout", "%v is more than the timeout of the whole answer, %v (want as much or less)", s.FirstTimeout, s.Timeout)
	}
	f.number(key+".cancel.probability", s.Cancel, s.Cancel >= 0 && s.Cancel <= 1, "0 to 1")
	if s.Cancel > 0 {
		s.CancelAfter.check(key+".cancel.after", f)
	}
	if s.Retries < 0 || s.Retries > MaxRetries {
		f.add(key+".retries", "%d is not allowed (want 0 to %d)", s.Retries, MaxRetries)
	}
	if s.RetryOn&^Retryable != 0 {
		f.add(key+".retry_on", "an answer, a cancellation or a request that is too long is final (want timeouts, refusals by a busy server and lost connections)")
	}
	if s.Retries > 0 && s.RetryOn == 0 {
		f.add(key+".retry_on", "is empty, but retries is %d (want timeout, busy, connection or several)", s.Retries)
	}
	s.Backoff.check(key+".backoff", f)
	f.number(key+".retry_budget", s.RetryBudget, s.RetryBudget >= 0 && s.RetryBudget <= 1, "more than 0, at most 1, or null for no bound")
	f.number(key+".reading", s.Reading, s.Reading >= 0, "more than 0 tokens/s, or null for at once")
}

// OnlyWaits reports whether these clients do nothing but wait.
func (s ClientSpec) OnlyWaits() bool {
	return s.FirstTimeout == 0 && s.Timeout == 0 && s.Cancel == 0 && s.Retries == 0 && s.Reading == 0
}

// Backoff is how long a client waits before it sends a request again: before retry k, from 0,
// d = min(Cap, Base·Factor^k), spread by the jitter.
type Backoff struct {
	Base, Cap clock.Duration
	// Factor is 1 or more.
	Factor float64
	// Jitter spreads the wait, with U uniform in (0, 1]: none (also when empty), full d·U, equal d/2 + d/2·U, or
	// openai d·(1 − U/4), which is what OpenAI's clients do.
	Jitter string
}

// Wait draws the wait before retry k, rounded to nanoseconds.
func (b Backoff) Wait(k int32, src rand.Source) clock.Duration {
	d, limit := b.Base.Seconds(), b.Cap.Seconds()
	for ; k > 0 && d < limit; k-- {
		d *= b.Factor
	}
	d = min(d, limit)
	u := 1 - uniform(src)
	switch b.Jitter {
	case "full":
		d *= u
	case "equal":
		d *= 0.5 + float64(u/2)
	case "openai":
		d *= 1 - float64(u/4)
	}
	return gap(d)
}

func (b Backoff) check(key string, f *fieldFaults) {
	if b == (Backoff{}) {
		return
	}
	if b.Base < 0 || b.Base > clock.MaxRun {
		f.add(key+".base", "%v is not allowed (want 0 to %v)", b.Base, clock.MaxRun)
	}
	if b.Cap < b.Base || b.Cap > clock.MaxRun {
		f.add(key+".cap", "%v is not allowed (want base, %v, to %v)", b.Cap, b.Base, clock.MaxRun)
	}
	f.number(key+".factor", b.Factor, b.Factor >= 1, "1 or more")
	switch b.Jitter {
	case "", "none", "full", "equal", "openai":
	default:
		f.add(key+".jitter", "%q is not known (want none, full, equal or openai)", b.Jitter)
	}
}
