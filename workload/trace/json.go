package trace

import (
	"bytes"
	"encoding/json"
)

// walkObject walks over the members of a JSON object. It decodes numbers and lists of numbers itself for speed and
// validates everything else by encoding/json. It returns false for other values, and for an object that has a key
// twice.
func walkObject(b []byte, member func(key, value []byte)) bool {
	return walkObjectWithIDs(b, "", nil, member)
}

// walkObjectWithIDs works as walkObject and also decodes the list of whole numbers under one key into ids. It sets ids
// to nil if the value is not such a list. member is called for this key as well.
func walkObjectWithIDs(b []byte, list string, ids *[]uint64, member func(key, value []byte)) bool {
	b = bytes.TrimRight(skipBlanks(b), blanks)
	if len(b) < 2 || b[0] != '{' || b[len(b)-1] != '}' {
		return false
	}
	rest := skipBlanks(b[1 : len(b)-1])
	if len(rest) == 0 {
		return true
	}
	var space [12][]byte // as many keys as the formats have, without an allocation
	keys := space[:0]
	for {
		n := stringLen(rest)
		if n == 0 {
			return false
		}
		key := rest[1 : n-1]
		for _, k := range keys {
			if bytes.Equal(k, key) {
				return false
			}
		}
		keys = append(keys, key)
		rest = skipBlanks(rest[n:])
		if len(rest) == 0 || rest[0] != ':' {
			return false
		}
		rest = skipBlanks(rest[1:]) // the comma
		if n = 0; ids != nil && string(key) == list {
			if *ids, n = numberList(rest, (*ids)[:0]); n > 0 {
				n = endOfValue(rest, n)
			}
		}
		if n == 0 {
			n = wholeNumberLen(rest)
		}
		if n > 0 {
			member(key, rest[:n])
		} else if n = valueLen(rest); n == 0 {
			return false
		} else {
			if ids != nil && string(key) == list {
				*ids = nil
			}
			member(key, bytes.TrimRight(rest[:n], blanks))
		}
		if rest = rest[n:]; len(rest) == 0 {
			return true
		}
		rest = skipBlanks(rest[1:]) // the comma
	}
}

// blanks are the blanks of JSON.
const blanks = " \t\r\n"

func skipBlanks(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\r' || b[0] == '\n') {
		b = b[1:]
	}
	return b
}

// stringLen returns the length of the JSON string at the start of b, including quotes, or 0.
func stringLen(b []byte) int {
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

// valueLen returns the length of the JSON value at the start of b, up to a comma or the end of b; 0 if there is
// none.
func valueLen(b []byte) int {
	if n := listLen(b); n > 0 {
		return n
	}
	depth, plain := 0, true // plain: digits only
	i := 0
scan:
	for i < len(b) {
		switch c := b[i]; {
		case c == '"':
			n := stringLen(b[i:])
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
	if i == len(b)-1 { // trailing comma
		return 0
	}
	return i
}

// wholeNumberLen returns the length of the whole number at the start of b if a comma and further text, or the end
// of b, follows it; otherwise 0.
func wholeNumberLen(b []byte) int {
	n := 0
	for n < len(b) && b[n]-'0' <= 9 {
		n++
	}
	if n > 1 && b[0] == '0' {
		return 0
	}
	return endOfValue(b, n)
}

// listLen returns the length of the list of whole numbers at the start of b if a comma and further text, or the end
// of b, follows it; otherwise 0.
func listLen(b []byte) int {
	_, n := numberList(b, nil)
	return endOfValue(b, n)
}

// endOfValue returns n, or 0 if the text after n bytes of b is not a comma with further text.
func endOfValue(b []byte, n int) int {
	if n < len(b) && (b[n] != ',' || n == len(b)-1) {
		return 0
	}
	return n
}

// numbers decodes a JSON list of whole numbers into ids; null and empty text are an empty list.
func numbers(v []byte, ids []uint64) ([]uint64, bool) {
	if len(v) == 0 || string(v) == "null" {
		return ids, true
	}
	ids, n := numberList(v, ids)
	return ids, n == len(v)
}

// numberList decodes the list of whole numbers at the start of v and returns its length in bytes, 0 if there is
// none. If ids is nil it only checks.
func numberList(v []byte, ids []uint64) ([]uint64, int) {
	if len(v) == 0 || v[0] != '[' {
		return ids, 0
	}
	keep := ids != nil
	i := 1 + blankLen(v[1:])
	if i < len(v) && v[i] == ']' {
		return ids, i + 1
	}
	for {
		var id uint64
		start := i
		for ; i < len(v) && v[i]-'0' <= 9; i++ {
			id = id*10 + uint64(v[i]-'0')
		}
		if n := i - start; n == 0 || n > 19 || n > 1 && v[start] == '0' {
			return ids, 0
		}
		if keep {
			ids = append(ids, id)
		}
		if i+2 < len(v) && v[i] == ',' && v[i+1] == ' ' && v[i+2] > ' ' {
			i += 2 // the common case
			continue
		}
		i += blankLen(v[i:])
		if i >= len(v) {
			return ids, 0
		}
		if v[i] == ']' {
			return ids, i + 1
		}
		if v[i] != ',' {
			return ids, 0
		}
		i++
		i += blankLen(v[i:])
	}
}

func blankLen(b []byte) int {
	n := 0
	for n < len(b) && b[n] <= ' ' && (b[n] == ' ' || b[n] == '\t' || b[n] == '\r' || b[n] == '\n') {
		n++
	}
	return n
}
