package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"clifftop/workload"
)

// mooncake is the layout of the Mooncake traces: JSON lines with timestamp (milliseconds from the
// start), input_length, output_length and hash_ids. An id stands for a block of 512 tokens and all
// before it. A full block becomes a segment; the last one, if partial, is never shared.
type mooncake struct {
	limit, block int32
	domain       uint64 // of the block ids
	dropIDs      bool   // mode fix: requests with faulty ids go without
	fixed        func(Code)
	ids          []uint64
	seen         map[uint64]struct{} // ids of the row
	before       map[uint64]uint64   // predecessor of each id, when chains are checked
}

func newMooncake(o Options) *mooncake {
	m := &mooncake{limit: o.MaxTokens, block: o.BlockTokens, domain: workload.Hash(workload.SegmentID("mooncake"), o.Domain), seen: map[uint64]struct{}{}, ids: make([]uint64, 0, 64)}
	if o.CheckChains {
		m.before = map[uint64]uint64{}
	}
	return m
}

func (m *mooncake) absolute() bool           { return false }
func (m *mooncake) accept(*workload.Request) {}

func (m *mooncake) parse(line []byte, r *workload.Request, t *instant) *fault {
	var at, input, output, ids []byte
	ok := object(line, func(key, value []byte) {
		switch string(key) {
		case "timestamp":
			at = value
		case "input_length":
			input = value
		case "output_length":
			output = value
		case "hash_ids":
			ids = value
		}
	})
	if !ok {
		return faulty(Syntax, line, "is not a JSON object", "one object a line")
	}
	for _, k := range [...]struct {
		value []byte
		name  string
	}{{at, "timestamp"}, {input, "input_length"}, {output, "output_length"}} {
		if k.value == nil {
			return faulty(Fields, line, "has no "+k.name, "timestamp, input_length, output_length and hash_ids")
		}
	}
	var f *fault
	if *t, f = decimal(at, true); f != nil {
		return f
	}
	if r.InputTokens, f = count(input, m.limit); f != nil {
		return f
	}
	if r.OutputTokens, f = count(output, m.limit); f != nil {
		return f
	}
	if f = m.chain(ids, r); f == nil {
		return nil
	}
	if m.dropIDs && (f.code == HashLen || f.code == HashDup || f.code == HashChain) {
		m.fixed(f.code)
		r.Content = nil
		return nil
	}
	return f
}

// chain reads the ids and makes them the content of r.
func (m *mooncake) chain(value []byte, r *workload.Request) *fault {
	var ok bool
	if m.ids, ok = numbers(value, m.ids[:0]); !ok {
		return faulty(Int, value, "is not a list of block ids", "whole numbers, 0 or more")
	}
	need := (r.InputTokens + m.block - 1) / m.block
	if len(m.ids) != int(need) {
		want := fmt.Sprintf("%d ids for %d tokens in blocks of %d", need, r.InputTokens, m.block)
		return faulty(HashLen, value, fmt.Sprintf("has %d ids", len(m.ids)), want+m.guess(r.InputTokens))
	}
	if id, twice := m.repeats(); twice {
		return faulty(HashDup, value, fmt.Sprintf("has block %d twice", id), "each id once in a prompt")
	}
	for i, id := range m.ids {
		if m.before == nil {
			break
		}
		previous := ^uint64(0)
		if i > 0 {
			previous = m.ids[i-1]
		}
		if p, known := m.before[id]; known && p != previous {
			return faulty(HashChain, value, fmt.Sprintf("has block %d after another block than before", id), "ids of chains")
		}
		m.before[id] = previous
	}
	full := int(r.InputTokens / m.block)
	if full == 0 {
		return nil
	}
	c := &workload.Content{Segments: make([]workload.Segment, full)}
	for i := range c.Segments {
		c.Segments[i] = workload.Segment{ID: workload.Hash(m.domain, m.ids[i]), Tokens: m.block}
	}
	r.Content = c
	return nil
}

// guess names the usual block sizes that the ids would fit.
func (m *mooncake) guess(input int32) string {
	var fit []string
	for _, b := range []int32{16, 32, 64, 128, 256, 512} {
		if len(m.ids) > 0 && int(input+b-1)/int(b) == len(m.ids) {
			fit = append(fit, strconv.Itoa(int(b)))
		}
	}
	if fit == nil {
		return ""
	}
	return "; they fit blocks of " + strings.Join(fit, " or ")
}

// repeats finds an id that occurs twice.
func (m *mooncake) repeats() (uint64, bool) {
	rising := true
	for i := 1; i < len(m.ids) && rising; i++ {
		rising = m.ids[i] > m.ids[i-1]
	}
	if rising {
		return 0, false
	}
	clear(m.seen)
	for _, id := range m.ids {
		if _, ok := m.seen[id]; ok {
			return id, true
		}
		m.seen[id] = struct{}{}
	}
	return 0, false
}

// object walks over the members of a JSON object. Numbers and lists of numbers, all that a trace
// holds, are read here; anything else is left to encoding/json.
func object(b []byte, member func(key, value []byte)) bool {
	b = bytes.TrimRight(space(b), blanks)
	if len(b) < 2 || b[0] != '{' || b[len(b)-1] != '}' {
		return false
	}
	rest := space(b[1 : len(b)-1])
	if len(rest) == 0 {
		return true
	}
	for {
		n := text(rest)
		if n == 0 {
			return false
		}
		key := rest[1 : n-1]
		rest = space(rest[n:])
		if len(rest) == 0 || rest[0] != ':' {
			return false
		}
		rest = space(rest[1:])
		n = value(rest)
		if n == 0 {
			return false
		}
		member(key, bytes.TrimRight(rest[:n], blanks))
		if rest = rest[n:]; len(rest) == 0 {
			return true
		}
		rest = space(rest[1:]) // the comma
	}
}

// blanks are JSON's.
const blanks = " \t\r\n"

func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

// text is the length of the JSON string that b begins with, quotes included, or 0.
func text(b []byte) int {
	if len(b) == 0 || b[0] != '"' {
		return 0
	}
	plain := true
	for i := 1; i < len(b); i++ {
		switch c := b[i]; {
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			return 0
		case c == '"':
			if !plain && !json.Valid(b[:i+1]) {
				return 0
			}
			return i + 1
		}
	}
	return 0
}

// value is the length of the JSON value that b begins with, up to a comma or the end of b; 0 when
// there is none.
func value(b []byte) int {
	if n := listLen(b); n > 0 {
		return n
	}
	depth, plain := 0, true // plain: digits only
	i := 0
scan:
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			n := text(b[i:])
			if n == 0 {
				return 0
			}
			i += n - 1
			plain = false
		case c == '[' || c == '{':
			depth++
			plain = false
		case c == ']' || c == '}':
			depth--
			plain = false
		case c == ',' && depth == 0:
			break scan
		case c < '0' || c > '9':
			plain = false
		}
		i++
	}
	v := b[:i]
	switch {
	case plain && len(v) > 0 && (v[0] != '0' || len(v) == 1):
	case !json.Valid(v):
		return 0
	}
	if i == len(b)-1 { // a comma with nothing behind it
		return 0
	}
	return i
}

// listLen is the length of the list of plain whole numbers that b surely starts with and that something
// else follows, or 0.
func listLen(b []byte) int {
	if len(b) == 0 || b[0] != '[' {
		return 0
	}
	n := bytes.IndexByte(b, ']') + 1
	if n == 0 || n < len(b) && (b[n] != ',' || n == len(b)-1) || !idList(b[:n]) {
		return 0
	}
	return n
}

// idList says whether v is surely a list of plain whole numbers.
func idList(v []byte) bool {
	_, ok := numbers(bytes.TrimRight(v, blanks), nil)
	return ok
}

// numbers reads a JSON list of whole numbers into ids; null and nothing are an empty list. With
// a nil slice it only checks.
func numbers(v []byte, ids []uint64) ([]uint64, bool) {
	if len(v) == 0 || string(v) == "null" {
		return ids, true
	}
	if v[0] != '[' || v[len(v)-1] != ']' {
		return ids, false
	}
	v = space(v[1 : len(v)-1])
	keep := ids != nil
	for len(v) > 0 {
		var id uint64
		n := 0
		for ; n < len(v) && v[n]-'0' <= 9; n++ {
			if n >= 19 {
				return ids, false
			}
			id = id*10 + uint64(v[n]-'0')
		}
		if n == 0 || n > 1 && v[0] == '0' {
			return ids, false
		}
		if keep {
			ids = append(ids, id)
		}
		if v = space(v[n:]); len(v) == 0 {
			return ids, true
		}
		if v[0] != ',' {
			return ids, false
		}
		if v = space(v[1:]); len(v) == 0 {
			return ids, false
		}
	}
	return ids, true
}
