package workload

import (
	"math"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/workload/idtable"
)

// Purposes of the random streams of clients.
const (
	purposeCancel  = "cancel"
	purposeBackoff = "backoff"
)

// clientSource wraps a source and adds client behaviour: timeouts, retries, cancellations and reading time. It
// returns each attempt as a request of its own and reports only the end of logical requests to the wrapped source.
//
// Random draws depend on the request and the attempt number, not on the order of calls, so that two simulated
// systems face the same clients.
type clientSource struct {
	src     Source
	kinds   []clientKind
	cancels *RNG
	waits   *RNG
	byUser  []uint64 // requests without a session so far, by user; an open loop counts as one user
	closed  bool     // sessions of a closed loop are numbered in order of arrival; draws then depend on the user

	persistent bool                   // clients retry, so that attempts need IDs of their own
	id         int64                  // of the next attempt
	active     idtable.Table[logical] // unfinished logical requests, by the ID of the first attempt
	pending    pq.Queue[*logical]     // attempts in backoff, by send time, then by first attempt
}

// clientKind is a ClientSpec with the state of its retry budget.
type clientKind struct {
	spec   ClientSpec
	first  *Client // shared by all first attempts without a cancellation
	earn   uint64  // tokens that a first attempt adds to the bucket
	bucket uint64
}

// bucketToken is one token of a retry budget; budgets are counted in integers so that they are exact.
const bucketToken = 1 << 32

// logical is a request that is not finished.
type logical struct {
	request      Request    // as returned by the wrapped source
	entity, item uint64     // position of its random draws
	cancelAt     clock.Time // when the user cancels
	client       Client     // of the next attempt
}

// NewClients wraps a source with client behaviour. Pass one spec for all requests, or one per class. If no spec
// does more than wait, NewClients returns src itself.
//
// seed is the seed of the source. Request k of a user, or of an open loop, and a turn of a session get the same client,
// independent of other requests. It returns the errors of [ValidateClients].
func NewClients(src Source, seed uint64, kinds ...ClientSpec) (Source, error) {
	if err := ValidateClients(kinds...); err != nil {
		return nil, err
	}
	c := &clientSource{
		src: src, cancels: NewRNG(seed, purposeCancel), waits: NewRNG(seed, purposeBackoff),
	}
	if crowd, ok := src.(*classMix); ok {
		c.closed = !crowd.open
	}
	busy := false
	for _, s := range kinds {
		busy = busy || !s.OnlyWaits()
		c.persistent = c.persistent || s.Retries > 0
		k := clientKind{spec: s, earn: uint64(math.Ceil(s.RetryBudget * bucketToken))}
		if s.FirstTimeout != 0 || s.Timeout != 0 || s.Retries > 0 {
			k.first = s.client()
		}
		c.kinds = append(c.kinds, k)
	}
	if !busy {
		return src, nil
	}
	return c, nil
}

func (c *clientSource) kind(r *Request) *clientKind {
	if len(c.kinds) == 1 {
		return &c.kinds[0]
	}
	return &c.kinds[r.Class]
}

// Peek returns the arrival of the next attempt.
func (c *clientSource) Peek() (clock.Time, bool) {
	at, ok := c.src.Peek()
	if c.pending.Len() > 0 && (!ok || clock.Time(c.pending.Top().Key) <= at) {
		return clock.Time(c.pending.Top().Key), true
	}
	return at, ok
}

func (c *clientSource) Next() Request {
	at, ok := c.src.Peek()
	if c.pending.Len() > 0 && (!ok || clock.Time(c.pending.Top().Key) <= at) {
		return c.nextRetry()
	}
	r := c.src.Next()
	k := c.kind(&r)
	k.bucket = min(k.bucket+k.earn, RetryBurst*bucketToken)
	entity, item := c.drawKey(&r)
	asked, gone := r, clock.Never
	r.Client = k.first
	if wait, ok := c.drawCancellation(k, entity, item); ok {
		gone = r.Arrival.Add(wait)
		r.Client = k.spec.client()
		r.Client.Cancel = wait
	}
	if c.persistent {
		r.ID = c.id
		c.id++
		l := c.active.Add(r.ID)
		*l = logical{request: asked, entity: entity, item: item, cancelAt: gone}
		l.client.First, l.client.Sent = r.ID, r.Arrival
	}
	return r
}

// client returns the Client of first attempts.
func (s *ClientSpec) client() *Client {
	return &Client{FirstTimeout: s.FirstTimeout, Timeout: s.Timeout, Silent: s.Silent, MayRetry: s.Retries > 0}
}

// drawCancellation draws whether the user cancels the request, and after how long.
func (c *clientSource) drawCancellation(k *clientKind, entity, item uint64) (after clock.Duration, ok bool) {
	if k.spec.Cancel == 0 {
		return 0, false
	}
	c.cancels.Seek(entity, item)
	if uniform(c.cancels) >= k.spec.Cancel {
		return 0, false
	}
	return max(k.spec.CancelAfter.Sample(c.cancels), clock.Nanosecond), true // 0 would mean never
}

// drawKey returns the position of the random draws of a request: its turn in the session, or its number among the
// requests of its user. An open loop counts as one user.
func (c *clientSource) drawKey(r *Request) (entity, item uint64) {
	if r.Session != 0 && !c.closed {
		return 1<<32 | uint64(uint32(r.Session)), uint64(uint32(r.Turn))
	}
	for int(r.User) >= len(c.byUser) {
		c.byUser = append(c.byUser, 0)
	}
	item = c.byUser[r.User]
	c.byUser[r.User]++
	return uint64(uint32(r.User)), item
}

// nextRetry returns the attempt whose backoff ends first.
func (c *clientSource) nextRetry() Request {
	next := c.pending.Pop()
	l, at := next.Value, clock.Time(next.Key)
	r, client := l.request, l.client
	spec := &c.kind(&r).spec
	client.FirstTimeout, client.Timeout, client.Silent, client.MayRetry = spec.FirstTimeout, spec.Timeout,
		spec.Silent, true
	if l.cancelAt != clock.Never {
		client.Cancel = l.cancelAt.Sub(at)
	}
	r.ID, r.Arrival, r.Client = c.id, at, &client
	c.id++
	return r
}

// Done ends an attempt, and the logical request unless the client retries.
func (c *clientSource) Done(r *Request, end End) (again bool) {
	first, _ := r.First()
	k := c.kind(r)
	if l := c.active.Find(first); l != nil {
		at, want := c.retryAt(l, k, end)
		if want && at < l.cancelAt && k.spendRetry() {
			l.client.Attempt++
			l.client.Earlier = l.client.Earlier.With(end.How)
			c.pending.Push(pq.Item[*logical]{Value: l, Key: int64(at), Tie: l.client.First})
			return true
		}
		if want && at >= l.cancelAt {
			end.At = max(end.At, l.cancelAt) // the user waits for a retry until then
		}
		c.active.Remove(first)
		r = &l.request
	}
	if end.How == Answered && k.spec.Reading > 0 {
		end.At = max(end.At, end.First.Add(gap(float64(end.Tokens-1)/k.spec.Reading)))
	}
	c.src.Done(r, end)
	return false
}

// retryAt returns when the client would send the request again; ok is false if it would not.
func (c *clientSource) retryAt(l *logical, k *clientKind, end End) (at clock.Time, ok bool) {
	s := &k.spec
	if l.client.Attempt >= s.Retries || !s.RetryOn.Has(end.How) {
		return 0, false
	}
	wait := s.RetryAfter
	if end.How != RefusedBusy || wait == 0 || wait > MaxRetryAfter {
		c.waits.Seek(l.entity, l.item)
		for range l.client.Attempt { // retry k takes draw k
			c.waits.Uint64()
		}
		wait = s.Backoff.Wait(l.client.Attempt, c.waits)
	}
	at = end.At.Add(wait)
	return at, at <= clock.Time(clock.MaxRun)
}

// spendRetry takes one retry out of the budget; it returns false if the budget is exhausted.
func (k *clientKind) spendRetry() bool {
	switch {
	case k.spec.RetryBudget == 0:
		return true
	case k.bucket < bucketToken:
		return false
	}
	k.bucket -= bucketToken
	return true
}

// Err returns the error of the wrapped source.
func (c *clientSource) Err() error { return c.src.Err() }

var _ Source = (*clientSource)(nil)
