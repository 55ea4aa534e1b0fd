package route

import "clifftop/workload"

// Session sends all requests of a session to one endpoint by a consistent hash, so that later turns find the earlier
// ones in its prefix cache. A request without a session goes to the endpoint with the fewest outstanding requests of
// this router; production-stack, whose session router this is, takes the lowest request rate there.
type Session struct {
	// ByUser uses the user of a closed loop instead of the session.
	ByUser bool
	ring   ring
	least  least
}

var (
	_ Router   = (*Session)(nil)
	_ Requirer = (*Session)(nil)
)

func (p *Session) key() Key {
	if p.ByUser {
		return ByUser
	}
	return BySession
}

// Requirements implements [Requirer].
func (p *Session) Requirements() Requirements { return p.key().needs() }

// Route implements [Router].
func (p *Session) Route(v View, r *workload.Request) int {
	if key, ok := p.key().of(r, 0); ok {
		for k := range p.ring.clockwise(v, key) {
			return k
		}
	}
	fewest(v, &p.least)
	return p.least.first()
}
