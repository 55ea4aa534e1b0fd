package trace

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Code names the rule that a row breaks.
type Code string

// The rules for rows, and what mode fix does about a row that breaks them.
const (
	Fields    Code = "FIELDS"    // unexpected number of columns, or a key is missing
	Time      Code = "TIME"      // the arrival is unreadable, negative or out of range
	Order     Code = "ORDER"     // earlier than the row before; fix sorts within [SortWindow] rows
	Int       Code = "INT"       // a count is not a whole number (12.0 is), or does not fit 32 bits
	Range     Code = "RANGE"     // a count is negative or above the limit
	ZeroIn    Code = "ZERO_IN"   // an empty prompt; fix drops the row
	ZeroOut   Code = "ZERO_OUT"  // an empty answer, often a failed request; fix drops the row
	HashLen   Code = "HASHLEN"   // the block ids do not cover the prompt; fix drops the ids
	HashDup   Code = "HASHDUP"   // a block id twice in one prompt; fix drops the ids
	HashChain Code = "HASHCHAIN" // a block id with another predecessor than before; fix drops the ids
	Total     Code = "TOTAL"     // the sum of both counts is not the total: only noted, the parts are trusted
	Parent    Code = "PARENT"    // a turn of a conversation that is not known; fix begins a new one
	Class     Code = "CLASS"     // a model or a kind of request that is not known; fix keeps the row
	Syntax    Code = "JSON"      // the line is not a JSON object
	Prefix    Code = "CONTENT"   // the content column is not a list of name:tokens
	Empty     Code = "EMPTY"     // no rows; always fatal
)

// Mode says what to do with a row that breaks a rule.
type Mode string

// Modes. The zero value is Strict.
const (
	Strict Mode = "strict" // stop at the first
	Skip   Mode = "skip"   // leave it out and count it; stop when there are too many
	Fix    Mode = "fix"    // mend or drop it where the rule says how, else stop
)

// ZeroOutput says what becomes of requests without an answer, whatever the mode.
type ZeroOutput string

// Policies for empty answers. The zero value leaves them to the mode.
const (
	DropZero ZeroOutput = "drop" // leave the request out
	OneToken ZeroOutput = "one"  // give it one token
)

// RowError is a row that breaks a rule.
type RowError struct {
	Name    string // of the trace
	Line    int64  // physical, from 1; 0 is the trace as a whole
	Code    Code
	Value   string // as found
	Problem string // what is wrong with it
	Want    string
}

// maxShown is the most of a value that a message repeats, in bytes.
const maxShown = 40

// Error prints name:line: CODE: "value" problem (want …).
func (e *RowError) Error() string {
	s := e.Name
	if e.Line > 0 {
		s += ":" + strconv.FormatInt(e.Line, 10)
	}
	s += ": " + string(e.Code) + ": "
	if e.Value != "" || e.Line > 0 {
		s += quoted(e.Value) + " "
	}
	s += e.Problem
	if e.Want != "" {
		s += " (want " + e.Want + ")"
	}
	return s
}

// quoted is a value in quotes, cut to what a message repeats: so many bytes of text, or what has so many
// bytes in ASCII of anything else.
func quoted(v string) string {
	head := v
	if len(v) > maxShown {
		end := maxShown
		for end > maxShown-utf8.UTFMax && !utf8.RuneStart(v[end]) {
			end--
		}
		head = v[:end]
	}
	q := strconv.Quote(head)
	if !utf8.ValidString(head) || len(q) > 2*maxShown {
		q = strconv.QuoteToASCII(head)
		for len(q) > maxShown+2 {
			head = head[:len(head)-1]
			q = strconv.QuoteToASCII(head)
		}
	}
	if len(head) < len(v) {
		q = q[:len(q)-1] + `…"`
	}
	return q
}

// fault is a RowError before its place is known.
type fault struct {
	code          Code
	value         string
	problem, want string
}

func faulty(code Code, value []byte, problem, want string) *fault {
	if len(value) > maxShown {
		value = value[:maxShown+1]
	}
	return &fault{code, string(value), problem, want}
}

func wrongColumns(line []byte, got, want int) *fault {
	return faulty(Fields, line, fmt.Sprintf("has %d columns", got), strconv.Itoa(want))
}
