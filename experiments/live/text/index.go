package text

import (
	"container/list"
	"math/bits"
	"slices"
	"sync"

	"clifftop/workload"
)

// SegmentTokens is the length of the segments of a prompt, in tokens. Prefix caches whose block size is a multiple of
// it see exactly the blocks that two prompts share; others see the shared tokens rounded down to a multiple of it.
const SegmentTokens = 16

// DefaultIndexBytes is the memory that an [Index] uses for earlier requests unless it is given another limit. It is
// enough for about 170,000 requests with 200 output tokens each.
const DefaultIndexBytes = 256 << 20

// Placed says where the prompt of a request stands among the texts of earlier requests.
type Placed struct {
	// Content names all tokens of the prompt.
	Content *workload.Content
	// Session numbers the conversation from 1, in order of first appearance. Turn counts its requests from 0.
	Session, Turn int32
}

// Index places prompts: it gives equal tokens equal segments, and finds the conversation that a prompt continues. A
// prompt is cut into segments of [SegmentTokens] tokens that are named by a hash of their tokens. Where a prompt
// repeats an earlier prompt and its output, or the beginning of its output, those tokens get the name that the
// simulator gives to the output, so that the prefix cache finds them.
//
// The index keeps the latest requests up to a limit of bytes. A prompt that continues a request that was dropped is
// a new conversation, and its tokens differ from the output then. Calls in the same order give the same results.
// An Index is safe for concurrent use.
//
// Two outputs that follow the same prompt and begin with the same tokens do not share them, and an output shares no
// tokens with a prompt that was placed before [Index.Output]. For filler this concerns a few tokens at most.
type Index struct {
	mu       sync.Mutex
	limit    int64
	bytes    int64
	sessions int32
	order    *list.List          // of *node; the latest at the front
	pending  map[turn]*node      // without an output yet
	keys     map[uint64]*node    // by the hash of a prompt and the beginning of its output
	places   map[uint64]place    // by the hash of a multiple of SegmentTokens tokens: where keys may follow
	named    map[string]*session // sessions with an explicit key
	hashes   []uint64            // of the prefixes of the current prompt
}

// turn identifies a request.
type turn struct{ session, turn int32 }

// place says which of the SegmentTokens lengths after it have keys.
type place struct {
	mask  uint16 // bits of lengths; they stay until the last key is gone
	count int32
}

// session is a conversation.
type session struct {
	number, next int32 // next is the next turn
	nodes        int   // requests in the index
	key          string
}

// node is an earlier request.
type node struct {
	session *session
	turn    int32
	tokens  int32    // of the prompt
	hash    uint64   // of the prompt
	aligned uint64   // of the prompt up to the last multiple of SegmentTokens
	runs    []run    // outputs in the prompt
	output  []uint32 // its tokens
	element *list.Element
	keys    []key
}

// run is a part of a prompt that repeats the beginning of an output.
type run struct {
	at, tokens int32
	id         uint64
}

// key is an entry of Index.keys: the hash of a prompt and the beginning of its output, and the place before it.
type key struct{ hash, place uint64 }

// NewIndex makes an index that keeps earlier requests in about the given number of bytes; 0 is [DefaultIndexBytes].
func NewIndex(limit int64) *Index {
	if limit <= 0 {
		limit = DefaultIndexBytes
	}
	return &Index{
		limit: limit, order: list.New(), pending: map[turn]*node{}, keys: map[uint64]*node{},
		places: map[uint64]place{}, named: map[string]*session{},
	}
}

// Prompt places the tokens of a prompt. Prompts with the same key belong to the same session; without a key, a prompt
// belongs to the session that it continues, or to a new one. [Index.Output] or [Index.Ended] must follow.
func (x *Index) Prompt(tokens []uint32, key string) Placed {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hash(tokens)
	n := &node{
		tokens: int32(len(tokens)), hash: x.hashes[len(tokens)],
		aligned: x.hashes[len(tokens)-len(tokens)%SegmentTokens],
	}
	before, repeated := x.earlier(tokens)
	if before != nil {
		n.runs = append(before.runs[:len(before.runs):len(before.runs)],
			run{before.tokens, repeated, workload.OutputID(before.session.number, before.turn)})
		x.order.MoveToFront(before.element)
	}
	n.session = x.join(before, key)
	n.turn = n.session.next
	n.session.next++
	n.session.nodes++
	n.element = x.order.PushFront(n)
	x.pending[turn{n.session.number, n.turn}] = n
	x.bytes += n.bytes()
	x.evict()
	return Placed{Content: segments(tokens, n.runs), Session: n.session.number, Turn: n.turn}
}

// Output notes the output tokens of a request that [Index.Prompt] placed, so that later prompts may continue it. The
// tokens may be known before they are sent: a prompt may repeat a part of them. It may be called once per request.
func (x *Index) Output(session, turnOf int32, tokens []uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.pending[turn{session, turnOf}]
	if n == nil {
		return
	}
	delete(x.pending, turn{session, turnOf})
	x.bytes -= n.bytes()
	n.output = append(n.output, tokens...)
	x.register(n)
	x.bytes += n.bytes()
	x.evict()
}

// Ended notes that a request that [Index.Prompt] placed has no output, because it was rejected or failed.
func (x *Index) Ended(session, turn int32) { x.Output(session, turn, nil) }

// Bytes returns about how much memory the earlier requests use.
func (x *Index) Bytes() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.bytes
}

// join returns the session of a prompt that continues the request before, which may be nil.
func (x *Index) join(before *node, key string) *session {
	if key != "" {
		s := x.named[key]
		if s == nil {
			s = x.open()
			s.key = key
			x.named[key] = s
		}
		return s
	}
	if before != nil && before.session.next == before.turn+1 {
		return before.session
	}
	return x.open()
}

func (x *Index) open() *session {
	x.sessions++
	return &session{number: x.sessions}
}

// bytes estimates the memory of a node: its parts, its list element and its entries in maps.
func (n *node) bytes() int64 {
	return 320 + 16*int64(len(n.runs)) + 4*int64(len(n.output)) + 80*int64(len(n.keys)) + int64(len(n.session.key))
}

// evict drops the oldest requests until the rest is within the limit. The latest one stays.
func (x *Index) evict() {
	for x.bytes > x.limit && x.order.Len() > 1 {
		n := x.order.Remove(x.order.Back()).(*node)
		x.bytes -= n.bytes()
		delete(x.pending, turn{n.session.number, n.turn})
		for _, k := range n.keys {
			x.forget(k)
		}
		if n.session.nodes--; n.session.nodes == 0 && n.session.key != "" {
			delete(x.named, n.session.key)
		}
	}
}

// Hashes of the beginning of prompts: each token extends the hash of those before it by a wide multiplication, as in
// wyhash.
const (
	hashSeed   = 0x2d358dccaa6c78a5
	hashToken  = 0x8bb84b93962eacc9
	hashFactor = 0x4b33a62ed433d4a3
)

func extend(h uint64, token uint32) uint64 {
	hi, lo := bits.Mul64(h^hashFactor, uint64(token)^hashToken)
	return hi ^ lo ^ h<<32
}

func (x *Index) hash(tokens []uint32) {
	if cap(x.hashes) > 1<<20 && len(tokens) < 1<<18 {
		x.hashes = nil // an outsize prompt must not hold memory
	}
	h := uint64(hashSeed)
	x.hashes = append(x.hashes[:0], h)
	for _, t := range tokens {
		h = extend(h, t)
		x.hashes = append(x.hashes, h)
	}
}

// keyed are the lengths of the beginnings of outputs that have keys, besides the whole output. A prompt with a part of
// an output finds it by the longest of these lengths that it has.
var keyed = [...]int{1, 4, 16, 64}

// register makes the output of a node known.
func (x *Index) register(n *node) {
	h, place, at := n.hash, n.aligned, n.tokens
	for i, t := range n.output {
		if at%SegmentTokens == 0 {
			place = h
		}
		h = extend(h, t)
		at++
		if i+1 == len(n.output) || slices.Contains(keyed[:], i+1) {
			x.note(n, key{h, place}, at)
		}
	}
}

// note enters a key of a node for a text of at tokens. The first request with a key keeps it, so that the names of
// tokens do not change.
func (x *Index) note(n *node, k key, at int32) {
	if x.keys[k.hash] != nil {
		return
	}
	x.keys[k.hash] = n
	n.keys = append(n.keys, k)
	p := x.places[k.place]
	p.count++
	p.mask |= 1 << ((at - 1) % SegmentTokens)
	x.places[k.place] = p
}

func (x *Index) forget(k key) {
	delete(x.keys, k.hash)
	p := x.places[k.place]
	if p.count--; p.count == 0 {
		delete(x.places, k.place)
	} else {
		x.places[k.place] = p
	}
}

// earlier finds the request whose prompt and output, or the beginning of it, the current prompt repeats furthest. It
// returns how many tokens of the output are repeated, at least 1, or nil.
func (x *Index) earlier(tokens []uint32) (*node, int32) {
	if len(x.keys) == 0 {
		return nil, 0
	}
	for from := (len(tokens) - 1) / SegmentTokens * SegmentTokens; from >= 0 && len(tokens) > 0; from -= SegmentTokens {
		for mask := x.places[x.hashes[from]].mask; mask != 0; {
			bit := bits.Len16(mask) - 1
			mask &^= 1 << bit
			at := from + bit + 1
			if at > len(tokens) {
				continue
			}
			n := x.keys[x.hashes[at]]
			if n == nil || int(n.tokens) >= at {
				continue
			}
			if common := commonPrefix(n.output, tokens[n.tokens:]); common > 0 {
				return n, common
			}
		}
	}
	return nil, 0
}

func commonPrefix(a, b []uint32) (n int32) {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		n++
	}
	return n
}

// segments cuts a prompt at the multiples of SegmentTokens, and at the borders of its runs, which keep their names.
func segments(tokens []uint32, runs []run) *workload.Content {
	c := &workload.Content{Segments: make([]workload.Segment, 0, len(tokens)/SegmentTokens+2*len(runs)+1)}
	at := 0
	plain := func(end int) {
		for at < end {
			next := min(end, at-at%SegmentTokens+SegmentTokens)
			id := extend(hashSeed, uint32(next-at))
			for _, t := range tokens[at:next] {
				id = extend(id, t)
			}
			c.Segments = append(c.Segments, workload.Segment{ID: id, Tokens: int32(next - at)})
			at = next
		}
	}
	for _, r := range runs {
		plain(int(r.at))
		c.Segments = append(c.Segments, workload.Segment{ID: r.id, Tokens: r.tokens})
		at += int(r.tokens)
	}
	plain(len(tokens))
	return c
}
