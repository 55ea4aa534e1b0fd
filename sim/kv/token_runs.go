package kv

import (
	"math/bits"

	"clifftop/workload"
)

// tokenReader reads the tokens of spans in order.
type tokenReader struct {
	runs []tokenRun
	read int32 // tokens of spans[0] that were read
}

// cut is the spans of the tokens of text in [from, to). It is valid until the next cut.
func (t *radix) cut(text []workload.Segment, from, to int32) tokenReader {
	t.text = t.text[:0]
	position := int32(0)
	for _, s := range text {
		if position >= to {
			break
		}
		first, last := max(from-position, 0), min(s.Tokens, to-position)
		if first < last {
			t.text = append(t.text, tokenRun{s.ID, first, last - first})
		}
		position += s.Tokens
	}
	return tokenReader{runs: t.text}
}

func (r tokenReader) tokens() int32 {
	n := -r.read
	for _, s := range r.runs {
		n += s.tokens
	}
	return n
}

// next is the rest of the first span.
func (r *tokenReader) next() tokenRun {
	s := r.runs[0]
	return tokenRun{s.id, s.from + r.read, s.tokens - r.read}
}

// skip skips n tokens of the first span.
func (r *tokenReader) skip(n int32) {
	if r.read += n; r.read == r.runs[0].tokens {
		r.runs, r.read = r.runs[1:], 0
	}
}

// take appends the next n tokens to to, and skips them.
func (r *tokenReader) take(to []tokenRun, n int32) []tokenRun {
	for n > 0 {
		s := r.next()
		s.tokens = min(s.tokens, n)
		to = append(to, s)
		r.skip(s.tokens)
		n -= s.tokens
	}
	return to
}

// rest is the remaining spans, in place.
func (r *tokenReader) rest() []tokenRun {
	if len(r.runs) > 0 {
		r.runs[0] = r.next()
		r.read = 0
	}
	return r.runs
}

// skipCommon skips the common prefix of the reader and spans, in whole pages, and returns its length.
func (r *tokenReader) skipCommon(spans []tokenRun, page int32) int32 {
	a, b := *r, tokenReader{runs: spans}
	common := int32(0)
	for len(a.runs) > 0 && len(b.runs) > 0 {
		s, o := a.next(), b.next()
		if s.id != o.id || s.from != o.from {
			break
		}
		n := min(s.tokens, o.tokens)
		common += n
		a.skip(n)
		b.skip(n)
	}
	if common%page == 0 {
		*r = a
		return common
	}
	common = common / page * page
	for n := common; n > 0; {
		step := min(n, r.next().tokens)
		r.skip(step)
		n -= step
	}
	return common
}

// page is a hash of the first page: of its runs of tokens, each as long as possible.
func (r tokenReader) page(tokens int32) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for tokens > 0 {
		s := r.next()
		n := min(s.tokens, tokens)
		hi, lo := bits.Mul64(h^s.id, (uint64(uint32(s.from))<<32|uint64(uint32(n)))^0xa0761d6478bd642f)
		h = hi ^ lo ^ s.id
		r.skip(n)
		tokens -= n
	}
	return h
}
