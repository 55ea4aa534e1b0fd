package workload

import "math/bits"

// mix applies the finaliser of SplitMix64 (Steele, Lea and Flood, 2014), a bijection with good avalanche.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// SegmentID returns the identity of a segment with the given name.
func SegmentID(name string) uint64 {
	h := uint64(0xcbf29ce484222325) // FNV-1a, then mixed
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return mix(h)
}

// Domains of identities that are not derived from names.
const (
	outputDomain = 0x616e7377
	promptDomain = 0x70726d74
	// adapterDomain is the domain of LoRA adapters.
	adapterDomain = 0x6c6f7261
	blockDomain   = 0x9e3779b97f4a7c15
)

// OutputID returns the identity of the output of a request of a session; turn counts from 0.
func OutputID(session, turn int32) uint64 {
	return mix(mix(outputDomain<<32|uint64(uint32(session))) ^ uint64(uint32(turn)))
}

// UniqueID returns the identity of tokens that belong to one logical request, given the ID of its first attempt:
// the part of its prompt that no segment covers, and its output if it has no session.
func UniqueID(id int64) uint64 { return mix(promptDomain<<32 ^ mix(uint64(id))) }

// Tokens returns the number of tokens that the segments cover.
func (c *Content) Tokens() int64 {
	var n int64
	if c != nil {
		for _, s := range c.Segments {
			n += int64(s.Tokens)
		}
	}
	return n
}

// Repeats reports whether other attempts of the request may be on the server, or have left KV blocks there, while r
// is. A client that aborts its first attempt when it gives up sends the next one later.
func (r *Request) Repeats() bool {
	c := r.Client
	return c != nil && (c.Attempt > 0 || c.MayRetry && c.Silent)
}

// SharesPrompt reports whether other requests may begin with the same tokens as r.
func (r *Request) SharesPrompt() bool { return r.Content != nil || r.Repeats() }

// SharesOutput reports whether other requests may continue the output of r.
func (r *Request) SharesOutput() bool { return r.Session != 0 || r.Repeats() }

// chain extends the hash of a chain of tokens by a piece of a segment. One wide multiplication folds both halves of
// the state, as in wyhash.
func chain(parent, segment, piece uint64) uint64 {
	hi, lo := bits.Mul64(parent^0xa0761d6478bd642f, segment^piece*0xe7037ed1a0b428db)
	return hi ^ lo ^ segment
}

// Text appends the segments of all tokens of r to to: those of its content, truncated to the prompt, then the
// tokens unique to the prompt, then the output ([OutputID] in a session). The identities depend on the adapter.
func (r *Request) Text(to []Segment) []Segment {
	n := len(to)
	to = r.text(to)
	if r.Adapter != 0 {
		for i := n; i < len(to); i++ {
			to[i].ID = mix(to[i].ID ^ adapterKey(r.Adapter))
		}
	}
	return to
}

// adapterKey returns what distinguishes the KV of an adapter: 0 for the base model.
func adapterKey(adapter int32) uint64 {
	if adapter == 0 {
		return 0
	}
	return mix(adapterDomain<<32 ^ uint64(uint32(adapter)))
}

// text appends the segments of all tokens, without the adapter.
func (r *Request) text(to []Segment) []Segment {
	left := r.InputTokens
	if r.Content != nil {
		for _, s := range r.Content.Segments {
			if left == 0 {
				break
			}
			s.Tokens = min(s.Tokens, left)
			left -= s.Tokens
			to = append(to, s)
		}
	}
	first, _ := r.First()
	unique := UniqueID(first)
	if left > 0 {
		to = append(to, Segment{ID: unique, Tokens: left})
	}
	output := ^unique
	if r.Session != 0 {
		output = OutputID(r.Session, r.Turn)
	}
	return append(to, Segment{ID: output, Tokens: r.OutputTokens})
}

// PrefixHash returns a hash of the first tokens of r. Requests with the same hash share these tokens.
func (r *Request) PrefixHash(tokens int32) uint64 {
	key := uint64(blockDomain)
	var scratch [8]Segment
	for _, s := range r.Text(scratch[:0]) {
		if tokens <= 0 {
			break
		}
		key = chain(key, s.ID, uint64(min(s.Tokens, tokens)))
		tokens -= s.Tokens
	}
	return key
}

// BlockKeys iterates over the KV blocks of a request and returns the prefix cache key of each full block: a hash of
// the chain of all tokens up to its end.
//
// The tokens of a sequence are its prompt (the segments of its content, then tokens unique to the request) and its
// output, which is a segment of its own ([OutputID] in a session). A later turn that repeats prompt and output as
// segments therefore shares their blocks. All attempts of a request have the same tokens.
type BlockKeys struct {
	segments  []Segment // of the content, after the current one
	unique    uint64    // identity of the prompt tokens that no segment covers
	output    uint64    // identity of the output
	repeats   bool      // other attempts repeat the prompt
	shareable bool      // other attempts or later turns may repeat the output
	prompt    int32     // prompt tokens after the current segment
	blockSize int32
	before    uint64 // hash of the chain up to the current segment
	private   bool   // the chain so far contains tokens of this attempt only

	// The current segment.
	id           uint64
	own          bool   // it belongs to this request only
	offset, left int32  // tokens of it before and after the current position
	ended        uint64 // blocks that ended in it
	run          uint64 // key of the first block of the current run
}

// NewBlockKeys starts at the first block of r. blockSize is in tokens.
func NewBlockKeys(r *Request, blockSize int32) BlockKeys {
	first, _ := r.First()
	k := BlockKeys{
		unique: UniqueID(first), prompt: r.InputTokens, blockSize: blockSize, repeats: r.Repeats(),
		before: chain(blockDomain, uint64(blockSize), adapterKey(r.Adapter)),
	}
	k.output, k.shareable = ^k.unique, r.SharesOutput()
	if r.Session != 0 {
		k.output = OutputID(r.Session, r.Turn)
	}
	if r.Content != nil {
		k.segments = r.Content.Segments
	}
	k.enter()
	return k
}

// BlockRun is the maximum number of blocks with consecutive keys; see [BlockKeys.Next].
const BlockRun = 64

// Next returns the key of the next block. private means that no other request can have it.
//
// The keys of up to [BlockRun] consecutive blocks that end in the same segment are consecutive numbers. The first one
// is a multiple of BlockRun: the chain hash of the first block determines the rest. A table can therefore store
// neighbouring blocks of a text together.
func (k *BlockKeys) Next() (key uint64, private bool) {
	need := k.blockSize
	for k.left <= need { // the segment ends within the block
		need -= k.left
		if k.walk(k.left); need == 0 {
			key, private = k.place(), k.private
			k.leave()
			return key, private
		}
		k.leave()
	}
	k.walk(need)
	return k.place(), k.private
}

// NextRun works as Next for up to most blocks with consecutive keys starting at key. It returns at least one block, and
// fewer than most where a run ends. Either all of them are private or none.
func (k *BlockKeys) NextRun(most int32) (key uint64, blocks int32, private bool) {
	key, private = k.Next()
	blocks = 1
	if at := k.ended % BlockRun; at > 0 && k.left > 0 {
		more := min(most-1, int32(BlockRun-at), (k.left-1)/k.blockSize)
		blocks += more
		k.ended += uint64(more)
		k.walk(more * k.blockSize)
	}
	return key, blocks, private
}

// walk advances by the given number of tokens within the segment.
func (k *BlockKeys) walk(tokens int32) {
	k.private = k.private || k.own
	k.offset += tokens
	k.left -= tokens
}

// hash returns the hash of the chain up to the current position.
func (k *BlockKeys) hash() uint64 { return chain(k.before, k.id, uint64(k.offset)) }

// place returns the key of a block that ends in the current segment.
func (k *BlockKeys) place() uint64 {
	at := k.ended % BlockRun
	if at == 0 {
		k.run = k.hash() &^ (BlockRun - 1)
	}
	k.ended++
	return k.run + at
}

// leave moves on to the next segment.
func (k *BlockKeys) leave() {
	if k.offset > 0 {
		k.before = k.hash()
	}
	k.enter()
}

// enter sets the current segment, truncated to the prompt.
func (k *BlockKeys) enter() {
	k.offset, k.ended = 0, 0
	switch {
	case k.prompt == 0:
		k.id, k.left, k.own = k.output, 1<<31-1, !k.shareable
		return
	case len(k.segments) > 0:
		s := &k.segments[0]
		k.id, k.left, k.own = s.ID, min(s.Tokens, k.prompt), false
		k.segments = k.segments[1:]
	default:
		k.id, k.left, k.own = k.unique, k.prompt, !k.repeats
	}
	k.prompt -= k.left
}
