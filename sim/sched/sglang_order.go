package sched

import (
	"cmp"
	"slices"
)

// QueueOrder is the order in which SGLang tries waiting requests.
type QueueOrder uint8

// The orders.
const (
	// FirstCome is the order of the queue (fcfs).
	FirstCome QueueOrder = iota
	// LongestPrefix tries first those requests of which the cache holds most (lpm), and last those that share an
	// uncached beginning with one before them, because it is cached when their turn comes. A long queue is served first
	// come, first served.
	LongestPrefix
	// DFSWeight walks the radix tree depth first, and of the branches at a fork takes the one with the most
	// waiting requests first (dfs-weight).
	DFSWeight
	// LongestOutput tries first those requests that may produce most: the largest max_new_tokens (lof).
	LongestOutput
	// RandomOrder shuffles the queue for each attempt to build a prefill batch (random). The shuffle depends on the
	// seed, the replica, and how many iterations have been composed.
	RandomOrder
	// RoutingKey tries first those requests whose routing key, the session, most running requests have (routing-key).
	// Of keys with as many the lower number comes first, then requests whose key no request runs with, those without a
	// session first. If no session runs, it is the order of the queue.
	RoutingKey
)

// Names returns SGLang's names for the orders.
func (QueueOrder) Names() []string {
	return []string{"fcfs", "lpm", "dfs-weight", "lof", "random", "routing-key"}
}

// String returns SGLang's name for the order.
func (o QueueOrder) String() string { return o.Names()[o] }

// SGLang's constants: the longest queue that is searched for prefixes, and the tokens that the cache or an
// earlier request must hold to matter.
const (
	longestSearchedQueue = 128
	sharedBeginning      = 32
)

// queueOrder walks the queue in an order that was found when the pass began.
type queueOrder struct {
	list  []int // places in the queue as it was; nil for its own order
	taken []int // those of them that were admitted
	deck  deck  // of RandomOrder: list is drawn as far as it is needed
}

// begin finds the order for a pass that has admitted no request yet.
func (q *queueOrder) begin(a *pass) {
	o, v := a.QueueOrder, a.v
	q.list, q.taken, q.deck.size = q.list[:0], q.taken[:0], 0
	switch {
	case o == RandomOrder:
		q.deck.shuffle(a)
		q.list = slices.Grow(q.list, 1) // not nil
	case o == LongestPrefix && v.WaitingLen() <= longestSearchedQueue:
		q.byPrefix(v)
	case o == DFSWeight:
		q.byWeight(v)
	case o == LongestOutput:
		q.byOutput(v)
	case o == RoutingKey:
		q.bySession(a)
	default:
		q.list = nil
	}
}

// next returns the request to try, and its place in the queue now.
func (q *queueOrder) next(v View) (i int, p Progress, ok bool) {
	if q.list != nil {
		if len(q.taken) == len(q.list) && len(q.list) < q.deck.size {
			q.list = append(q.list, q.deck.draw())
		}
		if len(q.taken) == len(q.list) {
			return 0, p, false
		}
		i = q.list[len(q.taken)]
		for _, k := range q.taken {
			if k < q.list[len(q.taken)] {
				i--
			}
		}
	}
	p, ok = v.Peek(i)
	return i, p, ok
}

// admitted notes that the request to try was admitted.
func (q *queueOrder) admitted() {
	if q.list != nil {
		q.taken = append(q.taken, q.list[len(q.taken)])
	}
}

func (q *queueOrder) byPrefix(v View) {
	type candidate struct {
		place  int
		cached int32
	}
	var list []candidate
	var beginnings []uint64
	for i := 0; ; i++ {
		w, ok := v.Waiting(i)
		if !ok {
			break
		}
		c := candidate{i, w.Cached}
		if c.cached <= sharedBeginning {
			if key, ok := v.Beginning(i, sharedBeginning); !ok {
				// too short to share as much
			} else if slices.Contains(beginnings, key) {
				c.cached = -1
			} else {
				beginnings = append(beginnings, key)
			}
		}
		list = append(list, c)
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.cached, a.cached) })
	for _, c := range list {
		q.list = append(q.list, c.place)
	}
}

// byOutput lists the requests by max_new_tokens, the largest first, and equal ones in the order of the queue.
func (q *queueOrder) byOutput(v View) {
	var most []int32
	for i := 0; ; i++ {
		p, ok := v.Peek(i)
		if !ok {
			break
		}
		most = append(most, p.MaxTokens)
		q.list = append(q.list, i)
	}
	slices.SortStableFunc(q.list, func(a, b int) int { return cmp.Compare(most[b], most[a]) })
}

// bySession lists the requests by how many requests of the running batch have their session. SGLang's running batch has
// the sequences that have ended since the last decode iteration too, but not the one with an unfinished prompt.
func (q *queueOrder) bySession(a *pass) {
	runs := make(map[int32]int)
	for s := a.v.First(); s != None; s = a.v.Next(s) {
		if s != a.unfinished && !slices.Contains(a.batch, s) {
			runs[a.v.Progress(s).Session]++
		}
	}
	for _, session := range a.running.sessions {
		runs[session]++
	}
	if delete(runs, 0); len(runs) == 0 {
		q.list = nil
		return
	}
	var sessions []int32
	for i := 0; ; i++ {
		p, ok := a.v.Peek(i)
		if !ok {
			break
		}
		sessions = append(sessions, p.Session)
		q.list = append(q.list, i)
	}
	slices.SortStableFunc(q.list, func(i, j int) int {
		x, y := sessions[i], sessions[j]
		return cmp.Or(cmp.Compare(runs[y], runs[x]), cmp.Compare(x, y))
	})
}

// branch is a node of the radix tree with the waiting requests whose cached prefix ends there.
type branch struct {
	node     int32 // its number
	weight   int   // requests here and below
	children []int
	requests []int
}

func (q *queueOrder) byWeight(v View) {
	tree := []branch{{}}
	at := map[int32]int{} // by number of the node
	var path []int32
	n := 0
	for ; ; n++ { // a first time for all of them: a match may split nodes on the path of another one
		if _, ok := v.Peek(n); !ok {
			break
		}
		path = v.Path(n, path[:0])
	}
	for i := range n {
		b := 0
		tree[b].weight++
		path = v.Path(i, path[:0])
		for _, node := range path {
			child, ok := at[node]
			if !ok {
				child = len(tree)
				at[node] = child
				tree = append(tree, branch{node: node})
				tree[b].children = append(tree[b].children, child)
			}
			b = child
			tree[b].weight++
		}
		tree[b].requests = append(tree[b].requests, i)
	}
	q.walk(tree, 0)
}

// walk lists the requests of the branches below b, then those of b itself. Of branches with as many requests, the one
// that was added to the tree first comes first.
func (q *queueOrder) walk(tree []branch, b int) {
	slices.SortFunc(tree[b].children, func(x, y int) int {
		return cmp.Or(cmp.Compare(tree[y].weight, tree[x].weight), cmp.Compare(tree[x].node, tree[y].node))
	})
	for _, child := range tree[b].children {
		q.walk(tree, child)
	}
	q.list = append(q.list, tree[b].requests...)
}
