package route

import "clifftop/workload"

// Session sends all requests of a session to one endpoint, found on a consistent hash ring, so that later turns find
// the earlier ones in its prefix cache. A request without a session goes where this router has the fewest outstanding
// requests; production-stack, whose session router this is, takes the lowest rate of requests there.
type Session struct {
	// ByUser goes by the user of a closed loop in place of the session.
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
