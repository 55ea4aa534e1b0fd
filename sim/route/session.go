package route

import "clifftop/workload"

var sessionRule = Rule{
	Name:   "session",
	Does:   "one replica for each session or user, by a consistent hash",
	Source: "vLLM production-stack",
	New:    func() Options { return new(Session) },
}

// Session sends all requests of a session to one endpoint by a consistent hash, so that later turns find the earlier
// ones in its prefix cache. A request without a session goes to the endpoint with the fewest outstanding requests of
// this router; production-stack, whose session router this is, takes the lowest request rate there.
type Session struct {
	ByUser bool `json:"by" one:"session user" doc:"key of the consistent hash"`
	ring   ring
	least  least
}

var (
	_ Router   = (*Session)(nil)
	_ Requirer = (*Session)(nil)
)

// Make implements [Options].
func (p *Session) Make(Identity) Router { made := *p; return &made }

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
