package workload

import (
	"math"

	"clifftop/internal/pq"
	"clifftop/sim/clock"
	"clifftop/workload/underway"
)

// Purposes of the random streams of clients.
const (
	purposeCancel  = "cancel"
	purposeBackoff = "backoff"
)

// clientele is a source whose clients give up, try again, and read. It hands out every attempt as a request of its
// own, and tells the source under it of the end of logical requests only.
//
// What a client draws depends on the request and the number of the attempt, never on the order of calls, so that
// two systems meet the same clients.
type clientele struct {
	src     Source
	kinds   []clientKind
	cancels *Stream
	waits   *Stream
	byUser  []uint64 // requests of each user, or of all of an open loop, that belong to no session
	crowd   bool     // a closed loop, in which sessions are numbered as they come, and belong to users

	persistent bool                    // some try again, so that attempts have numbers of their own
	id         int64                   // of the next attempt
	open       underway.Table[logical] // logical requests that have not ended, by their first attempt
	pending    pq.Queue[*logical]      // attempts whose backoff runs, by the instant of sending, then by their first attempt
}

// clientKind is one kind of client.
type clientKind struct {
	spec   ClientSpec
	first  *Client // of all first attempts of users who do not lose interest
	earn   uint64  // what a request puts into the bucket of retries
	bucket uint64
}

// bucketToken is one token of a bucket of retries, which is counted in integers.
const bucketToken = 1 << 32

// logical is a request that has not ended.
type logical struct {
	request      Request    // as the source under the clientele has it
	entity, item uint64     // of its draws
	gone         clock.Time // when the user loses interest
	client       Client     // of the next attempt
}

// NewClients gives the requests of a source clients. There is one kind of client for all requests, or one for each
// class. Where all do nothing but wait, the source is returned as it is.
//
// The seed is that of the source: the k-th request of a user, or of an open loop, and a turn of a session, meet the
// same client whatever becomes of the others.
func NewClients(src Source, seed uint64, kinds ...ClientSpec) (Source, error) {
	if err := ValidateClients(kinds...); err != nil {
		return nil, err
	}
	c := &clientele{
		src: src, cancels: NewStream(seed, purposeCancel), waits: NewStream(seed, purposeBackoff),
	}
	if crowd, ok := src.(*crowd); ok {
		c.crowd = !crowd.open
	}
	busy := false
	for _, s := range kinds {
		busy = busy || !s.Patient()
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

// kind is the kind of client that sends r.
func (c *clientele) kind(r *Request) *clientKind {
	if len(c.kinds) == 1 {
		return &c.kinds[0]
	}
	return &c.kinds[r.Class]
}

// Peek returns the arrival of the next attempt.
func (c *clientele) Peek() (clock.Time, bool) {
	at, ok := c.src.Peek()
	if c.pending.Len() > 0 && (!ok || clock.Time(c.pending.Top().Key) <= at) {
		return clock.Time(c.pending.Top().Key), true
	}
	return at, ok
}

// Next returns the next attempt.
func (c *clientele) Next() Request {
	at, ok := c.src.Peek()
	if c.pending.Len() > 0 && (!ok || clock.Time(c.pending.Top().Key) <= at) {
		return c.again()
	}
	r := c.src.Next()
	k := c.kind(&r)
	k.bucket = min(k.bucket+k.earn, RetryBurst*bucketToken)
	entity, item := c.place(&r)
	asked, gone := r, clock.Never
	r.Client = k.first
	if wait, ok := c.loses(k, entity, item); ok {
		gone = r.Arrival.Add(wait)
		r.Client = k.spec.client()
		r.Client.Cancel = wait
	}
	if c.persistent {
		r.ID = c.id
		c.id++
		l := c.open.Add(r.ID)
		*l = logical{request: asked, entity: entity, item: item, gone: gone}
		l.client.First, l.client.Sent = r.ID, r.Arrival
	}
	return r
}

// client is that of first attempts.
func (s *ClientSpec) client() *Client {
	return &Client{FirstTimeout: s.FirstTimeout, Timeout: s.Timeout, Silent: s.Silent, Persists: s.Retries > 0}
}

// loses draws whether the user loses interest in a request, and how long that takes.
func (c *clientele) loses(k *clientKind, entity, item uint64) (after clock.Duration, ok bool) {
	if k.spec.Cancel == 0 {
		return 0, false
	}
	c.cancels.Seek(entity, item)
	if uniform(c.cancels) >= k.spec.Cancel {
		return 0, false
	}
	return max(k.spec.CancelAfter.Sample(c.cancels), clock.Nanosecond), true // 0 would be never
}

// place says which draws belong to a request: those of the turn of its session, or of its number among the requests
// of its user. In an open loop all are one user's.
func (c *clientele) place(r *Request) (entity, item uint64) {
	if r.Session != 0 && !c.crowd {
		return 1<<32 | uint64(uint32(r.Session)), uint64(uint32(r.Turn))
	}
	for int(r.User) >= len(c.byUser) {
		c.byUser = append(c.byUser, 0)
	}
	item = c.byUser[r.User]
	c.byUser[r.User]++
	return uint64(uint32(r.User)), item
}

// again is the next attempt of the request whose backoff is over.
func (c *clientele) again() Request {
	next := c.pending.Pop()
	l, at := next.Value, clock.Time(next.Key)
	r, client := l.request, l.client
	spec := &c.kind(&r).spec
	client.FirstTimeout, client.Timeout, client.Silent, client.Persists = spec.FirstTimeout, spec.Timeout, spec.Silent, true
	if l.gone != clock.Never {
		client.Cancel = l.gone.Sub(at)
	}
	r.ID, r.Arrival, r.Client = c.id, at, &client
	c.id++
	return r
}

// Done ends an attempt, and with it the request, unless the client tries again.
func (c *clientele) Done(r *Request, end End) (again bool) {
	first, _ := r.First()
	k := c.kind(r)
	if l := c.open.Find(first); l != nil {
		at, want := c.next(l, k, end)
		if want && at < l.gone && k.pays() {
			l.client.Attempt++
			l.client.Earlier = l.client.Earlier.With(end.How)
			c.pending.Push(pq.Item[*logical]{Value: l, Key: int64(at), Tie: l.client.First})
			return true
		}
		if want && at >= l.gone {
			end.At = max(end.At, l.gone) // until then the user waits for a further attempt
		}
		c.open.Remove(first)
		r = &l.request
	}
	if end.How == Answered && k.spec.Reading > 0 {
		end.At = max(end.At, end.First.Add(gap(float64(end.Tokens-1)/k.spec.Reading)))
	}
	c.src.Done(r, end)
	return false
}

// next is when the client would send a request again after an attempt that has ended; ok is false where it
// would not.
func (c *clientele) next(l *logical, k *clientKind, end End) (at clock.Time, ok bool) {
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

// pays takes a retry out of the budget, if it is there.
func (k *clientKind) pays() bool {
	switch {
	case k.spec.RetryBudget == 0:
		return true
	case k.bucket < bucketToken:
		return false
	}
	k.bucket -= bucketToken
	return true
}

// Err is that of the source under the clientele.
func (c *clientele) Err() error { return c.src.Err() }

var _ Source = (*clientele)(nil)
