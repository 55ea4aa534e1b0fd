package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// decode reads a request's body into a struct, whose fields may be null and whose unknown fields are ignored.
func decode(body []byte, to any) error {
	err := json.Unmarshal(body, to)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		at := min(max(int(syntax.Offset), 0), len(body))
		line := 1 + bytes.Count(body[:at], []byte{'\n'})
		column := at - bytes.LastIndexByte(body[:at], '\n') - 1
		return bad("", "the body is not JSON: line %d, column %d: %s", line, max(column, 1), syntax)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return bad("", "the body is not JSON: it ends too early")
	case errors.As(err, &kind):
		name := strings.TrimPrefix(kind.Field, "common.")
		if name == "" {
			return bad("", "the body is JSON %s (want an object)", kind.Value)
		}
		return bad(name, "%s: found %s (want %s)", name, kind.Value, wanted(kind.Type.String()))
	}
	if f := (*failure)(nil); errors.As(err, &f) {
		return f
	}
	return bad("", "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// wanted names a type of Go in JSON's words.
func wanted(kind string) string {
	switch kind = strings.TrimLeft(kind, "*"); {
	case kind == "json.Number" || strings.HasPrefix(kind, "int"):
		return "a number"
	case kind == "bool":
		return "true or false"
	case kind == "string":
		return "a string"
	case strings.HasPrefix(kind, "[]"):
		return "a list"
	}
	return "an object"
}

// number is an integer in JSON that may be missing or null. 16.0 is one, too.
type number struct{ *json.Number }

// in returns the integer if it is in a range, or the fallback if it is missing.
func (n number) in(name string, least, most, fallback int64) (int64, error) {
	if n.Number == nil {
		return fallback, nil
	}
	text := n.String()
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return 0, bad(name, "%s: %.40s is not allowed (want an integer)", name, text)
		}
		i = int64(f)
	}
	switch {
	case i < least && most == math.MaxInt64:
		return 0, bad(name, "%s: %d is not allowed (want %d or more)", name, i, least)
	case i < least || i > most:
		return 0, bad(name, "%s: %d is not allowed (want %d to %d)", name, i, least, most)
	}
	return i, nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(data []byte) error {
	n.Number = nil
	if c := data[0]; c == 'n' {
		return nil
	} else if c != '-' && (c < '0' || c > '9') {
		return &json.UnmarshalTypeError{Value: found(data), Type: reflect.TypeFor[json.Number]()}
	}
	text := json.Number(data)
	n.Number = &text
	return nil
}

// found names the kind of a value, as package json does in its errors.
func found(data []byte) string {
	switch data[0] {
	case '"':
		return "string"
	case '[':
		return "array"
	case '{':
		return "object"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}

// prompts is the prompt of a request: a string, a list of strings, a list of token IDs, or a list of these.
type prompts struct {
	texts []string
	ids   [][]uint32
	batch bool // it is a list of prompts
}

func (p *prompts) len() int { return len(p.texts) + len(p.ids) }

// UnmarshalJSON implements [json.Unmarshaler].
func (p *prompts) UnmarshalJSON(data []byte) error {
	*p = prompts{}
	const want = "want a string, a list of strings, a list of token IDs, or a list of such lists"
	switch data[0] {
	case 'n':
		return nil
	case '"':
		p.texts = []string{unquote(data)}
		return nil
	case '[':
	default:
		return bad("prompt", "prompt: found %s (%s)", found(data), want)
	}
	inner := bytes.TrimLeft(data[1:], " \t\r\n")
	switch c := inner[0]; {
	case c == ']':
		return nil
	case c == '"':
		p.batch = true
		if json.Unmarshal(data, &p.texts) != nil {
			return bad("prompt", "prompt: a list has values of several kinds (%s)", want)
		}
		return nil
	case c == '[':
		p.batch = true
		var lists []json.RawMessage
		if err := json.Unmarshal(data, &lists); err != nil {
			return bad("prompt", "prompt: %s", err)
		}
		for _, l := range lists {
			ids, err := tokenIDs("prompt", l)
			if err != nil {
				return err
			}
			p.ids = append(p.ids, ids)
		}
		return nil
	}
	ids, err := tokenIDs("prompt", data)
	p.ids = [][]uint32{ids}
	return err
}

// unquote decodes a string of JSON.
func unquote(data []byte) (s string) {
	inner := data[1 : len(data)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner)
	}
	_ = json.Unmarshal(data, &s) // the syntax was checked
	return s
}

// maxTokenID is the largest token ID that a request may have. Larger ones stand for images.
const maxTokenID = 1<<31 - 1

// tokenIDs reads a list of token IDs, whose syntax was checked.
func tokenIDs(name string, data []byte) ([]uint32, error) {
	if data[0] != '[' {
		return nil, bad(name, "%s: found %s in a list of lists (want token IDs)", name, found(data))
	}
	ids := make([]uint32, 0, 1+bytes.Count(data, []byte{','}))
	for rest := data[1 : len(data)-1]; ; {
		item, more, again := bytes.Cut(rest, []byte{','})
		item = bytes.TrimSpace(item)
		if len(item) == 0 && len(ids) == 0 && !again {
			return ids, nil
		}
		id, err := strconv.ParseUint(string(item), 10, 32)
		if err != nil || id > maxTokenID {
			return nil, bad(name, "%s[%d]: %.40s is not a token ID (want an integer from 0 to %d)", name, len(ids),
				strings.ToValidUTF8(string(item), "?"), maxTokenID)
		}
		ids = append(ids, uint32(id))
		if !again {
			return ids, nil
		}
		rest = more
	}
}

// idList is a list of token IDs.
type idList []uint32

// UnmarshalJSON implements [json.Unmarshaler].
func (l *idList) UnmarshalJSON(data []byte) (err error) {
	if data[0] == 'n' {
		return nil
	}
	*l, err = tokenIDs("tokens", data)
	return err
}

// stops is a stop string or a list of them.
type stops []string

// maxStops limits the number and the length of stop strings.
const maxStops, maxStopBytes = 64, 1 << 10

// UnmarshalJSON implements [json.Unmarshaler].
func (s *stops) UnmarshalJSON(data []byte) error {
	*s = nil
	switch {
	case data[0] == 'n':
	case data[0] == '"':
		*s = stops{unquote(data)}
	case data[0] != '[' || json.Unmarshal(data, (*[]string)(s)) != nil:
		return bad("stop", "stop: found %s (want a string or a list of strings)", found(data))
	}
	if len(*s) > maxStops {
		return bad("stop", "stop: %d strings are too many (want at most %d)", len(*s), maxStops)
	}
	for i, text := range *s {
		if text == "" || len(text) > maxStopBytes {
			return bad("stop", "stop: string %d has %d bytes (want 1 to %d)", i, len(text), maxStopBytes)
		}
	}
	return nil
}

// nameOf returns a name for an error message: quoted, and cut if it is long.
func nameOf(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
