package trace

import (
	"bytes"
	"encoding/json"
)

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
