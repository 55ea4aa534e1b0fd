package route

import (
	"cmp"
	"slices"
	"sort"

	"clifftop/workload"
)

// Key is the part of a request that a consistent hash uses.
type Key uint8

// The keys.
const (
	BySession Key = iota // requests without a session have none
	ByUser               // of a closed loop
	ByPrefix             // the first tokens of the prompt
)

// of is the key of r; ok is false when it has none.
func (y Key) of(r *workload.Request, prefix int32) (key uint64, ok bool) {
	const domain = 0x72696e67
	switch y {
	case BySession:
		return workload.Hash(domain, uint64(uint32(r.Session))), r.Session != 0
	case ByUser:
		return workload.Hash(domain, uint64(uint32(r.User))), true
	default:
		return workload.Hash(domain, r.PrefixHash(min(prefix, r.InputTokens))), true
	}
}

func (y Key) needs() Requirements { return Requirements{Sessions: y == BySession, Users: y == ByUser} }

// pointsOnRing is the number of points of a replica on the ring, as in libketama.
const pointsOnRing = 160

// ring is a consistent hash (Karger et al., "Consistent Hashing and Random Trees", 1997): a key belongs to the first
// point clockwise from it whose replica can serve it. Points depend only on the number of a replica, so that a replica
// that starts or stops moves only its own keys. The ring has the points of all replicas ever seen; those of absent
// replicas are skipped.
type ring struct {
	points []point
	known  int // replicas 0 to known-1 are on the ring
}

type point struct {
	at      uint64
	replica int32
}

func (g *ring) learn(v View) {
	last := v.Replica(v.Len() - 1)
	if last < g.known {
		return
	}
	for ; g.known <= last; g.known++ {
		for i := range pointsOnRing {
			g.points = append(g.points, point{workload.Hash(uint64(g.known), uint64(i)), int32(g.known)})
		}
	}
	slices.SortFunc(g.points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.replica, b.replica))
	})
}

// clockwise visits the points of v's endpoints once, from a key on.
func (g *ring) clockwise(v View, key uint64) func(yield func(k int) bool) {
	g.learn(v)
	return func(yield func(k int) bool) {
		from := sort.Search(len(g.points), func(i int) bool { return g.points[i].at >= key })
		for i := range g.points {
			p := &g.points[(from+i)%len(g.points)]
			if k, ok := position(v, int(p.replica)); ok && !yield(k) {
				return
			}
		}
	}
}

// position finds a replica among the endpoints.
func position(v View, replica int) (k int, ok bool) {
	n := v.Len()
	if replica < n && v.Replica(replica) == replica {
		return replica, true
	}
	k = sort.Search(n, func(k int) bool { return v.Replica(k) >= replica })
	return k, k < n && v.Replica(k) == replica
}
