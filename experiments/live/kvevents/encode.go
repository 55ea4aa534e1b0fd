package kvevents

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"
)

// medium is where the blocks are.
const medium = "GPU"

// kinds of events, as they are called in messages.
const (
	storedKind  = "BlockStored"
	removedKind = "BlockRemoved"
	clearedKind = "AllBlocksCleared"
)

// change is an event of a batch.
type change struct {
	kind   string
	keys   []uint64 // of consecutive blocks; one for a removal
	parent uint64
	place  int32 // of the first block
	size   int32 // tokens of a block
	text   *text // of the blocks
}

// encoder encodes batches in one format.
type encoder struct {
	asMap   bool
	rank    int
	output  func(request int64, k int) uint32
	adapter func(number int32) string
	buffer  bytes.Buffer
	to      *msgpack.Encoder
}

// batch returns the payload of a message. seconds is the time since 1970.
func (e *encoder) batch(seconds float64, changes []change) []byte {
	e.buffer.Reset()
	if e.to == nil {
		e.to = msgpack.NewEncoder(&e.buffer)
	}
	// The encoder writes to memory, so that no call fails.
	_ = e.to.EncodeArrayLen(3)
	_ = e.to.EncodeFloat64(seconds)
	_ = e.to.EncodeArrayLen(len(changes))
	for i := range changes {
		e.change(&changes[i])
	}
	e.integer(int64(e.rank))
	return bytes.Clone(e.buffer.Bytes())
}

func (e *encoder) change(c *change) {
	var fields []field
	switch c.kind {
	case storedKind:
		fields = e.stored(c)
	case removedKind:
		fields = []field{{"block_hashes", func() { e.hashes(c.keys) }}, {"medium", e.text(medium)}}
		if e.asMap {
			fields = append(fields, field{"group_idx", func() { e.integer(0) }})
		}
	}
	if e.asMap {
		_ = e.to.EncodeMapLen(1 + len(fields))
		_ = e.to.EncodeString("type")
	} else {
		_ = e.to.EncodeArrayLen(1 + len(fields))
	}
	_ = e.to.EncodeString(c.kind)
	for _, f := range fields {
		if e.asMap {
			_ = e.to.EncodeString(f.name)
		}
		f.value()
	}
}

// field is a field of an event, with the function that encodes its value.
type field struct {
	name  string
	value func()
}

// stored returns the fields of a BlockStored event. Later versions of vLLM have the last three; where fields have no
// names, they are left out.
func (e *encoder) stored(c *change) []field {
	null := func() { _ = e.to.EncodeNil() }
	parent, number, name := null, null, null
	if c.place > 0 {
		parent = func() { e.hash(c.parent) }
	}
	adapter := c.text.adapter
	if adapter != 0 {
		number, name = func() { e.integer(int64(adapter)) }, e.text(e.adapter(adapter))
	}
	fields := []field{
		{"block_hashes", func() { e.hashes(c.keys) }}, {"parent_block_hash", parent},
		{"token_ids", func() { e.tokens(c) }},
		{"block_size", func() { e.integer(int64(c.size)) }}, {"lora_id", number}, {"medium", e.text(medium)},
		{"lora_name", name},
	}
	if !e.asMap {
		return fields
	}
	extra := func() { // what the hash of a block depends on beside its tokens
		_ = e.to.EncodeArrayLen(len(c.keys))
		for range c.keys {
			if adapter != 0 {
				_ = e.to.EncodeArrayLen(1)
			}
			name()
		}
	}
	return append(fields, field{"extra_keys", extra}, field{"group_idx", func() { e.integer(0) }},
		field{"kv_cache_spec_kind", e.text("full_attention")})
}

func (e *encoder) integer(n int64) { _ = e.to.EncodeInt(n) }

func (e *encoder) text(s string) func() { return func() { _ = e.to.EncodeString(s) } }

// hash encodes a key with 64 bits.
func (e *encoder) hash(key uint64) { _ = e.to.EncodeUint64(key) }

func (e *encoder) hashes(keys []uint64) {
	_ = e.to.EncodeArrayLen(len(keys))
	for _, key := range keys {
		e.hash(key)
	}
}

// tokens encodes the token IDs of the blocks.
func (e *encoder) tokens(c *change) {
	from := int(c.place) * int(c.size)
	n := len(c.keys) * int(c.size)
	_ = e.to.EncodeArrayLen(n)
	for k := from; k < from+n; k++ {
		id := uint32(0)
		if t := c.text; k < len(t.prompt) {
			id = t.prompt[k]
		} else {
			id = e.output(t.request, k-len(t.prompt))
		}
		_ = e.to.EncodeUint(uint64(id))
	}
}
