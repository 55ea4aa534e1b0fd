package trace

import (
	"fmt"
	"strconv"
	"strings"

	"clifftop/workload"
)

// blocks converts the block IDs of prompts to content. An ID identifies a block of tokens and everything before it.
// A full block becomes a segment; a partial last block is never shared.
type blocks struct {
	size    int32
	domain  uint64 // of the ids
	floor   bool   // a partial block may have no ID
	dropIDs bool   // mode fix: drop faulty IDs
	fixed   func(Code)
	ids     []uint64            // of the row
	seen    map[uint64]struct{} // IDs of the row
	before  map[uint64]uint64   // predecessor of each ID, if chains are checked

	rows    int64 // rows with IDs inspected so far, at most blockRows
	fitting [len(usualBlocks)]int64
}

// usualBlocks are common block sizes for hints; blockRows is how many rows are inspected.
var usualBlocks = [...]int32{16, 32, 64, 128, 256, 512}

const blockRows = 1000

func newBlocks(f *File, name string, size int32) *blocks {
	o := f.options
	if o.BlockTokens > 0 {
		size = o.BlockTokens
	}
	b := &blocks{
		size: size, domain: workload.Hash(workload.SegmentID(name), o.Domain), dropIDs: o.Mode == Fix,
		fixed: f.countFixed,
		seen:  map[uint64]struct{}{}, ids: make([]uint64, 0, 64),
	}
	if o.CheckChains {
		b.before = map[uint64]uint64{}
	}
	return b
}

// object walks over the object of a row and reads its hash_ids.
func (b *blocks) object(line []byte, member func(key, value []byte)) bool {
	b.ids = b.ids[:0]
	return walkObjectWithIDs(line, "hash_ids", &b.ids, member)
}

// read converts the IDs of the row to the content of r.
func (b *blocks) read(value []byte, r *Row) *fault {
	if b.ids == nil && string(value) == "null" {
		b.ids = make([]uint64, 0, 64)
	}
	f := b.chain(value, r)
	if f != nil && b.dropIDs && (f.code == HashLen || f.code == HashDup || f.code == HashChain) {
		b.fixed(f.code)
		r.Content = nil
		return nil
	}
	return f
}

func (b *blocks) chain(value []byte, r *Row) *fault {
	if b.ids == nil { // not a list
		b.ids = make([]uint64, 0, 64)
		return faulty(Int, value, "is not a list of block ids", "whole numbers, 0 or more")
	}
	b.compare(r.InputTokens)
	if f := b.check(value, r.InputTokens); f != nil {
		return f
	}
	full := int(r.InputTokens / b.size)
	if full == 0 {
		return nil
	}
	c := &workload.Content{Segments: make([]workload.Segment, full)}
	for i := range c.Segments {
		c.Segments[i] = workload.Segment{ID: workload.Hash(b.domain, b.ids[i]), Tokens: b.size}
	}
	r.Content = c
	return nil
}

// check applies the rules for block IDs.
func (b *blocks) check(value []byte, input int32) *fault {
	need := int((input + b.size - 1) / b.size)
	if len(b.ids) != need && !(b.floor && len(b.ids) == int(input/b.size)) {
		want := fmt.Sprintf("%d ids for %d tokens in blocks of %d", need, input, b.size)
		return faulty(HashLen, value, fmt.Sprintf("has %d ids", len(b.ids)), want+b.guess(input))
	}
	if id, twice := b.repeats(); twice {
		return faulty(HashDup, value, fmt.Sprintf("has block %d twice", id), "each id once in a prompt")
	}
	if b.before == nil {
		return nil
	}
	previous := ^uint64(0)
	for _, id := range b.ids {
		if p, known := b.before[id]; known && p != previous {
			return faulty(HashChain, value, fmt.Sprintf("has block %d after another block than before", id),
				"ids of chains")
		}
		b.before[id], previous = previous, id
	}
	return nil
}

// guess names the common block sizes that the IDs would fit.
func (b *blocks) guess(input int32) string {
	var fit []string
	for _, size := range usualBlocks {
		if len(b.ids) > 0 && int(input+size-1)/int(size) == len(b.ids) {
			fit = append(fit, strconv.Itoa(int(size)))
		}
	}
	if fit == nil {
		return ""
	}
	return "; they would fit blocks of " + strings.Join(fit, " or ")
}

// compare counts which block sizes the row would fit.
func (b *blocks) compare(input int32) {
	if b.rows == blockRows || len(b.ids) == 0 {
		return
	}
	b.rows++
	for i, size := range usualBlocks {
		if n := int32(len(b.ids)); n == (input+size-1)/size || b.floor && n == input/size {
			b.fitting[i]++
		}
	}
}

// ended warns if the IDs fit another block size than the one in use.
func (b *blocks) ended(f *File) {
	const most = 0.95
	other := int32(0)
	for i, size := range usualBlocks {
		if float64(b.fitting[i]) < most*float64(b.rows) {
			continue
		}
		if size == b.size {
			return
		}
		if other == 0 {
			other = size
		}
	}
	if b.rows > 0 && other > 0 {
		f.warn("the block ids fit blocks of %d tokens instead of %d", other, b.size)
	}
}

// repeats finds an ID that occurs twice.
func (b *blocks) repeats() (uint64, bool) {
	rising := true
	for i := 1; i < len(b.ids) && rising; i++ {
		rising = b.ids[i] > b.ids[i-1]
	}
	if rising {
		return 0, false
	}
	clear(b.seen)
	for _, id := range b.ids {
		if _, ok := b.seen[id]; ok {
			return id, true
		}
		b.seen[id] = struct{}{}
	}
	return 0, false
}
