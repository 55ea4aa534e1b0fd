package workload

import "math/bits"

// mix is the finaliser of SplitMix64 (Steele, Lea, Flood 2014), a bijection that spreads every bit.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// SegmentID makes the identity of a segment from its name.
func SegmentID(name string) uint64 {
	h := uint64(0xcbf29ce484222325) // FNV-1a, then mixed
	for i := 0; i < len(name); i++ {
		h = (h ^ uint64(name[i])) * 0x100000001b3
	}
	return mix(h)
}

// Identities that no name can be asked for carry a domain of their own.
const (
	answerDomain = 0x616e7377
	promptDomain = 0x70726d74
	blockDomain  = 0x9e3779b97f4a7c15
)

// AnswerID is the identity of the answer that request number turn (from 0) of a session received.
func AnswerID(session, turn int32) uint64 {
	return mix(mix(answerDomain<<32|uint64(uint32(session))) ^ uint64(uint32(turn)))
}

// UniqueID is the identity of tokens that belong to one logical request alone, whose first attempt has the ID: the
// uncovered rest of its prompt, and its answer if it has no session.
func UniqueID(id int64) uint64 { return mix(promptDomain<<32 ^ mix(uint64(id))) }

// Tokens is the number of tokens that the segments cover.
func (c *Content) Tokens() int64 {
	var n int64
	if c != nil {
		for _, s := range c.Segments {
			n += int64(s.Tokens)
		}
	}
	return n
}

// Repeats reports whether other attempts of the request may be in the server, or have left something there, while r is.
// A client that takes its first attempt back as it leaves sends the next one later.
func (r *Request) Repeats() bool {
	c := r.Client
	return c != nil && (c.Attempt > 0 || c.MayRetry && c.Silent)
}

// SharesPrompt reports whether other requests may begin as r does, and SharesAnswer whether they may go on with its
// answer.
func (r *Request) SharesPrompt() bool { return r.Content != nil || r.Repeats() }

// SharesAnswer is described at [Request.SharesPrompt].
func (r *Request) SharesAnswer() bool { return r.Session != 0 || r.Repeats() }

// chain extends the key of a chain of tokens by a piece of a segment: one wide multiplication folds
// both halves of the state, as in wyhash.
func chain(parent, segment, piece uint64) uint64 {
	hi, lo := bits.Mul64(parent^0xa0761d6478bd642f, segment^piece*0xe7037ed1a0b428db)
	return hi ^ lo ^ segment
}

// Text appends to to the segments that all tokens of r come from: those of its content, cut at the
// end of the prompt, what is unique to the prompt, and the answer ([AnswerID] in a session).
func (r *Request) Text(to []Segment) []Segment {
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
	answer := ^unique
	if r.Session != 0 {
		answer = AnswerID(r.Session, r.Turn)
	}
	return append(to, Segment{ID: answer, Tokens: r.OutputTokens})
}

// PrefixHash is a hash of the first tokens of r: requests that have it in common have these in common.
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

// BlockKeys walks the KV blocks of a request from its first token on, and gives each full block
// the key under which a prefix cache knows it: a hash of the chain of all tokens up to its end.
//
// A sequence's tokens are its prompt (the content's segments, then tokens unique to the request) and
// its answer, which is a segment of its own ([AnswerID] in a session), so that a later turn that
// repeats prompt and answer as segments shares their blocks. The attempts of one request have all of them in common.
type BlockKeys struct {
	segments  []Segment // of the content, behind the one under the walk
	unique    uint64    // identity of the prompt's uncovered tokens
	answer    uint64    // identity of the answer
	repeats   bool      // other attempts repeat the prompt
	shareable bool      // they, or later turns, may repeat the answer
	prompt    int32     // tokens of the prompt behind the segment under the walk
	blockSize int32
	before    uint64 // hash of the chain up to the segment under the walk
	private   bool   // the chain so far holds tokens of this attempt alone

	// The segment under the walk.
	id           uint64
	own          bool   // it belongs to this request alone
	offset, left int32  // tokens of it that are walked already, and those that are not
	ended        uint64 // blocks that ended in it
	run          uint64 // key of the first block of their run
}

// NewBlockKeys starts at the first block of r.
func NewBlockKeys(r *Request, blockSize int32) BlockKeys {
	first, _ := r.First()
	k := BlockKeys{
		unique: UniqueID(first), prompt: r.InputTokens, blockSize: blockSize, repeats: r.Repeats(),
		before: chain(blockDomain, uint64(blockSize), 0),
	}
	k.answer, k.shareable = ^k.unique, r.SharesAnswer()
	if r.Session != 0 {
		k.answer = AnswerID(r.Session, r.Turn)
	}
	if r.Content != nil {
		k.segments = r.Content.Segments
	}
	k.enter()
	return k
}

// BlockRun is how many consecutive numbers the keys of blocks can be; see [BlockKeys.Next].
const BlockRun = 64

// Next returns the key of the next block. Private says that no other request can have it.
//
// The keys of up to [BlockRun] blocks that end one after the other in the same segment are consecutive numbers, of which the
// first divides by BlockRun: the first block's hash of the chain says all that the following ones could add. So a table
// can keep the neighbouring blocks of a text together.
func (k *BlockKeys) Next() (key uint64, private bool) {
	need := k.blockSize
	for k.left <= need { // the segment ends in the block
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

// NextRun is Next for several blocks, whose keys are the numbers from key on: for most of them, or for fewer where their run ends, but
// for one at least. They are private all or none.
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

// walk comes by tokens of the segment.
func (k *BlockKeys) walk(tokens int32) {
	k.private = k.private || k.own
	k.offset += tokens
	k.left -= tokens
}

// hash is that of the chain up to the place of the walk.
func (k *BlockKeys) hash() uint64 { return chain(k.before, k.id, uint64(k.offset)) }

// drawKey makes the key of a block that ends in the segment.
func (k *BlockKeys) place() uint64 {
	at := k.ended % BlockRun
	if at == 0 {
		k.run = k.hash() &^ (BlockRun - 1)
	}
	k.ended++
	return k.run + at
}

// remove goes on to the next segment.
func (k *BlockKeys) leave() {
	if k.offset > 0 {
		k.before = k.hash()
	}
	k.enter()
}

// add comes to a segment. Segments are cut at the end of the prompt.
func (k *BlockKeys) enter() {
	k.offset, k.ended = 0, 0
	switch {
	case k.prompt == 0:
		k.id, k.left, k.own = k.answer, 1<<31-1, !k.shareable
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
