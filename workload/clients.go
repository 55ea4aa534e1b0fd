package workload

import (
	"fmt"
	"math/rand/v2"

	"clifftop/sim/clock"
)

// ClientSpec describes how clients behave: timeouts, retries, cancellations and reading speed. The zero ClientSpec
// waits without limit and reads instantly.
//
// A retry is a further attempt of the same logical request, with the same lengths and the same text. It may
// therefore find cached blocks of an earlier attempt.
type ClientSpec struct {
	// FirstTimeout is how long a client waits for the first token after sending an attempt, Timeout how long it
	// waits for the complete output; 0 means no limit.
	FirstTimeout, Timeout clock.Duration
	// Cancel is the probability that the user cancels a request, CancelAfter the time until then, counted from the
	// first attempt. A cancelled request is not retried.
	Cancel      float64
	CancelAfter Delay
	// Retries is the maximum number of further attempts. RetryOn is the set of endings that are retried:
	// TimedOutFirst, TimedOut, RefusedBusy or Disconnected. All others are final.
	Retries int32
	RetryOn Causes
	// Backoff is the wait before a further attempt.
	Backoff Backoff
	// RetryAfter is the wait that a busy server requests in its Retry-After header; 0 means none. Clients use it
	// instead of the backoff, without jitter, if it is at most [MaxRetryAfter].
	RetryAfter clock.Duration
	// RetryBudget limits the retries of all clients together to this fraction of the requests; 0 means no limit. It
	// is a token bucket that starts empty and holds at most [RetryBurst] tokens: each first attempt adds
	// RetryBudget, each retry takes 1 and is dropped if the bucket has less.
	RetryBudget float64
	// Silent means that the server does not learn that a client gave up, and continues to generate.
	Silent bool
	// Reading is the user's reading speed in tokens per second. The user starts at the first token and finishes
	// when the output is complete and read to its end; the next request of the user or session waits until then. 0
	// means instantly.
	Reading float64
}

const (
	// MaxRetryAfter is the longest Retry-After wait that clients accept, as in OpenAI's client library.
	MaxRetryAfter = clock.Minute
	// RetryBurst is the capacity of the retry budget, in retries.
	RetryBurst = 10
	// MaxRetries limits ClientSpec.Retries.
	MaxRetries = 1000
)

// Retryable is the set of endings after which a client may retry.
const Retryable = Causes(1<<TimedOutFirst | 1<<TimedOut | 1<<RefusedBusy | 1<<Disconnected)

// ValidateClients returns all faults of the specs joined into one error, each a [*FieldError]. Pass one spec for
// all requests, or one per class.
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
		f.add(key+".ttft_timeout", "%v exceeds timeout, %v (want timeout or less)", s.FirstTimeout, s.Timeout)
	}
	f.number(key+".cancel.probability", s.Cancel, s.Cancel >= 0 && s.Cancel <= 1, "0 to 1")
	if s.Cancel > 0 {
		s.CancelAfter.check(key+".cancel.after", f)
	}
	if s.Retries < 0 || s.Retries > MaxRetries {
		f.add(key+".retries", "%d is not allowed (want 0 to %d)", s.Retries, MaxRetries)
	}
	if s.RetryOn&^Retryable != 0 {
		f.add(key+".retry_on", "answered, cancelled and too long requests cannot be retried (want timeout, busy or "+
			"connection)")
	}
	if s.Retries > 0 && s.RetryOn == 0 {
		f.add(key+".retry_on", "is empty, but retries is %d (want timeout, busy, connection or several)", s.Retries)
	}
	s.Backoff.check(key+".backoff", f)
	f.number(key+".retry_budget", s.RetryBudget, s.RetryBudget >= 0 && s.RetryBudget <= 1,
		"more than 0, at most 1, or null for no bound")
	f.number(key+".reading", s.Reading, s.Reading >= 0, "more than 0 tokens/s, or null for at once")
}

// OnlyWaits reports whether these clients have no timeouts, retries, cancellations or reading time.
func (s ClientSpec) OnlyWaits() bool {
	return s.FirstTimeout == 0 && s.Timeout == 0 && s.Cancel == 0 && s.Retries == 0 && s.Reading == 0
}

// Backoff is the wait before a retry. For retry k, counted from 0, it is d = min(Cap, Base·Factor^k) with jitter
// applied.
type Backoff struct {
	Base, Cap clock.Duration
	// Factor is 1 or more.
	Factor float64
	// Jitter randomises the wait, with U uniform in (0, 1]: none (also when empty), full d·U, equal d/2 + d/2·U, or
	// openai d·(1 − U/4), as in OpenAI's client library.
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
		f.add(key+".cap", "%v is not allowed (want base, which is %v, to %v)", b.Cap, b.Base, clock.MaxRun)
	}
	f.number(key+".factor", b.Factor, b.Factor >= 1, "1 or more")
	switch b.Jitter {
	case "", "none", "full", "equal", "openai":
	default:
		f.add(key+".jitter", "%q is not known (want none, full, equal or openai)", b.Jitter)
	}
}
