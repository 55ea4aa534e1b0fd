package route

import "clifftop/workload"

// RequestObserver is a [Router] that is called when the output of a request that it has sent begins, and when the
// request ends.
type RequestObserver interface {
	Router
	// Began is called when a replica has delivered the first token of r.
	Began(v View, replica int, r *workload.Request)
	// Ended is called when r has ended, whether or not it succeeded.
	Ended(v View, replica int, r *workload.Request)
}

// CacheResetter is a [Router] that is called when the caches of a replica are empty, at each start.
type CacheResetter interface {
	Router
	// CacheReset is called with the number of the replica.
	CacheReset(replica int)
}

// Requirer is a [Router] that needs certain traffic or replicas.
type Requirer interface {
	Router
	// Requirements returns what it needs.
	Requirements() Requirements
}

// Bound is a [Router] with all optional interfaces. It forwards calls of those that the router implements; other calls
// do nothing. Only Bound looks for optional interfaces: a router that wraps another one embeds a Bound.
type Bound struct {
	Router
	requests RequestObserver
	caches   CacheResetter
}

var (
	_ RequestObserver = (*Bound)(nil)
	_ CacheResetter   = (*Bound)(nil)
	_ Requirer        = (*Bound)(nil)
)

// Bind returns a Bound of a router.
func Bind(r Router) Bound {
	b := Bound{Router: r}
	b.requests, _ = r.(RequestObserver)
	b.caches, _ = r.(CacheResetter)
	return b
}

// ObservesRequests reports whether the router is a [RequestObserver].
func (b *Bound) ObservesRequests() bool { return b.requests != nil }

// Began implements [RequestObserver].
func (b *Bound) Began(v View, replica int, r *workload.Request) {
	if b.requests != nil {
		b.requests.Began(v, replica, r)
	}
}

// Ended implements [RequestObserver].
func (b *Bound) Ended(v View, replica int, r *workload.Request) {
	if b.requests != nil {
		b.requests.Ended(v, replica, r)
	}
}

// CacheReset implements [CacheResetter].
func (b *Bound) CacheReset(replica int) {
	if b.caches != nil {
		b.caches.CacheReset(replica)
	}
}

// Requirements implements [Requirer]. A router that is no Requirer needs nothing.
func (b *Bound) Requirements() Requirements {
	if r, ok := b.Router.(Requirer); ok {
		return r.Requirements()
	}
	return Requirements{}
}
