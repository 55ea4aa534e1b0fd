package route

import (
	"fmt"
	"math"

	"clifftop/workload"
)

// BoundedHash is a consistent hash with bounded loads (Mirrokni, Thorup, Zadimoghaddam, "Consistent Hashing with
// Bounded Loads", 2018): a key goes to the first endpoint on the ring that has fewer outstanding requests than
// ⌈Factor·(all + 1)/n⌉. No endpoint has much more than its share, and the overflow of a key always goes to the same
// second endpoint. KubeAI uses it.
type BoundedHash struct {
	// By is the key. Requests without one go to the endpoint with the fewest outstanding requests of this router.
	By Key
	// PrefixTokens is the length of the prefix that [ByPrefix] uses, in tokens.
	PrefixTokens int32
	// Factor bounds the load of an endpoint, as a multiple of the mean; at least 1.
	Factor float64
	ring   ring
	least  least
}

var (
	_ Router   = (*BoundedHash)(nil)
	_ Requirer = (*BoundedHash)(nil)
)

// NewBoundedHash uses sessions, and the customary factor of 1.25.
func NewBoundedHash() *BoundedHash { return &BoundedHash{PrefixTokens: 32, Factor: 1.25} }

// Validate reports what is wrong with the parameters.
func (p *BoundedHash) Validate() error {
	if !(p.Factor >= 1 && p.Factor <= 1e6) {
		return fmt.Errorf("factor: %v is not allowed (want 1 or more)", p.Factor)
	}
	if p.By == ByPrefix && p.PrefixTokens < 1 {
		return fmt.Errorf("prefix_tokens: %d is not allowed (want 1 or more)", p.PrefixTokens)
	}
	return nil
}

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
