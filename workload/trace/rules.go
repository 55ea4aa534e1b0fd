package trace

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// Code names the rule that a row breaks.
type Code string

// Rules for rows, with the action of mode fix.
const (
	Fields    Code = "FIELDS"    // unexpected number of columns, or a key is missing
	Time      Code = "TIME"      // the arrival is unreadable, negative or out of range
	Order     Code = "ORDER"     // earlier than the previous row; fix sorts within [SortWindow] rows
	Int       Code = "INT"       // a count is not a whole number (12.0 is), or exceeds 32 bits
	Range     Code = "RANGE"     // a count is negative or above the limit
	ZeroIn    Code = "ZERO_IN"   // an empty prompt; fix drops the row
	ZeroOut   Code = "ZERO_OUT"  // an empty output, often a failed request; fix drops the row
	HashLen   Code = "HASHLEN"   // the block IDs do not match the length of the prompt; fix drops the IDs
	HashDup   Code = "HASHDUP"   // a block ID occurs twice in a prompt; fix drops the IDs
	HashChain Code = "HASHCHAIN" // a block ID follows another block than before; fix drops the IDs
	Total     Code = "TOTAL"     // the total is not the sum of both counts; only counted, the parts are used
	Parent    Code = "PARENT"    // a turn of an unknown conversation; fix begins a new one
	Class     Code = "CLASS"     // an unknown model or kind of request; fix keeps the row
	Syntax    Code = "JSON"      // the line is not a JSON object
	Prefix    Code = "CONTENT"   // the content column is not a list of name:tokens
	Empty     Code = "EMPTY"     // no rows; always an error
)

// Mode is the treatment of a row that breaks a rule.
type Mode string

// Modes. The zero value is Strict.
const (
	Strict Mode = "strict" // stop at the first such row
	Skip   Mode = "skip"   // drop and count it; stop if there are too many
	Fix    Mode = "fix"    // repair or drop it if the rule allows, otherwise stop
)

// ZeroOutput is the policy for requests with an empty output, in any mode.
type ZeroOutput string

// Policies for empty outputs. The zero value leaves them to the mode.
const (
	DropZero ZeroOutput = "drop" // drop the request
	OneToken ZeroOutput = "one"  // set one token
)

// rowError is a row that breaks a rule.
type rowError struct {
	Name    string // of the trace
	Line    int64  // physical line from 1; 0 means the trace as a whole
	Code    Code
	Value   string // as found
	Problem string // what is wrong with it
	Want    string
}

// maxShown is the maximum number of bytes of a value in a message.
const maxShown = 40

// Error returns name:line: CODE: "value" problem (want …).
func (e *rowError) Error() string {
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

// quoted quotes a value, truncated for a message: to maxShown bytes of text, or to as many bytes of its ASCII form.
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

// fault is a RowError without its place.
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
