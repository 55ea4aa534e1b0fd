package trace

import (
	"fmt"
	"io"
	"slices"
)

// records is a trace that was read as a whole, in order of arrival.
type records struct {
	list     []record
	timeless bool
	at       int
}

// record is a request of a document.
type record struct {
	at     instant
	line   int64
	input  int32
	output int32
	failed bool
	fault  *fault
}

func (t *records) next(r *Row, at *instant) (*fault, error) {
	if t.at == len(t.list) {
		return nil, io.EOF
	}
	x := &t.list[t.at]
	t.at++
	r.InputTokens, r.OutputTokens, *at = x.input, x.output, x.at
	if x.fault == nil && x.failed {
		return faulty(ZeroOut, nil, "is a failed request",
			"successful requests, or zero_output: drop or one"), nil
	}
	return x.fault, nil
}

func (t *records) accept(*Row)  {}
func (t *records) text() []byte { return nil }
func (t *records) line() int64 {
	if t.at == 0 {
		return 0
	}
	return t.list[t.at-1].line
}

func (t *records) isTimeless() bool { return t.timeless }

// sorted sorts the records of a document by arrival.
func (t *records) sorted() *records {
	slices.SortStableFunc(t.list, func(a, b record) int {
		switch {
		case a.at.before(b.at):
			return -1
		case b.at.before(a.at):
			return 1
		}
		return 0
	})
	return t
}

// note keeps the first fault of a record.
func (r *record) note(f *fault) {
	if r.fault == nil {
		r.fault = f
	}
}

// maxRecords limits the requests of a document, which are in memory: half a gigabyte.
const maxRecords = 10_000_000

func tooMany() error {
	return &shapeError{"", fmt.Sprintf("at most %d requests in one document", maxRecords)}
}
