package route

import (
	"math"

	"clifftop/workload"
)

var boundedHashRule = Rule{
	Name:   "bounded-hash",
	Does:   "the same within a bound of load, or by the first tokens of the prompt",
	Source: "Mirrokni et al. 2018; KubeAI",
	New:    func() Options { return NewBoundedHash() },
}

// BoundedHash is a consistent hash with bounded loads (Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with
// Bounded Loads", 2018): a key goes to the first endpoint on the ring that has fewer outstanding requests than
// ⌈Factor·(all + 1)/n⌉. No endpoint has much more than its share, and the overflow of a key always goes to the same
// second endpoint. KubeAI uses it.
type BoundedHash struct {
	// By is the key. Requests without one go to the endpoint with the fewest outstanding requests of this router.
	By Key `json:"by" one:"session user prefix" doc:"key of the consistent hash"`

	PrefixTokens int32   `json:"prefix_tokens" range:"[1,1e9]" doc:"length of the hashed prefix, if by is prefix"`
	Factor       float64 `json:"factor" range:"[1,1e6]" doc:"most load of a replica, as a multiple of the mean"`

	ring  ring
	least least
}

var (
	_ Router   = (*BoundedHash)(nil)
	_ Requirer = (*BoundedHash)(nil)
)

// NewBoundedHash uses sessions, and the customary factor of 1.25.
func NewBoundedHash() *BoundedHash { return &BoundedHash{PrefixTokens: 32, Factor: 1.25} }

// Make implements [Options].
func (p *BoundedHash) Make(Identity) Router { made := *p; return &made }

// Requirements implements [Requirer].
func (p *BoundedHash) Requirements() Requirements { return p.By.needs() }

// Route implements [Router].
func (p *BoundedHash) Route(v View, r *workload.Request) int {
	key, ok := p.By.of(r, p.PrefixTokens)
	if !ok {
		fewest(v, &p.least)
		return p.least.first()
	}
	all, n := 0, v.Len()
	for k := range n {
		all += v.Sent(k).Outstanding
	}
	bound := int(math.Ceil(p.Factor * float64(all+1) / float64(n)))
	for k := range p.ring.clockwise(v, key) {
		if v.Sent(k).Outstanding < bound {
			return k
		}
	}
	return 0 // not reached: the mean is under the bound
}
