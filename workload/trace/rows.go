package trace

import (
	"bytes"
	"io"
)

// feed is where a File takes its rows from: lines, a document, or a generator.
type rowSource interface {
	// next reads a row: all of it but its ID and its arrival, whose place is in at. A fault is a row that
	// breaks a rule; an error ends the trace, io.EOF as it should.
	next(r *Row, at *instant) (*fault, error)
	// accept says that the row just read is kept.
	accept(r *Row)
	// stringLen is the row just read, for messages, and line where it begins; 0 is nowhere.
	text() []byte
	line() int64
}

// layout reads the rows of one format, each of a line.
type layout interface {
	parse(line []byte, r *Row, at *instant) *fault
	accept(r *Row)
}

// lineSource is a trace of rows of a line each, or of several where its layout chains them.
type lineSource struct {
	layout
	lines *lines
	held  []byte // a line that was read ahead: to tell the format, or the row
	row   []byte
	at    int64 // number of the line of the row
}

func (l *lineSource) next(r *Row, at *instant) (*fault, error) {
	for {
		if err := l.take(); err != nil {
			return nil, err
		}
		if len(trim(l.row)) > 0 {
			break
		}
	}
	c, ok := l.layout.(chained)
	if !ok || !c.chains() {
		return l.parse(l.row, r, at), nil
	}
	l.row = bytes.Clone(l.row)
	f := l.parse(l.row, r, at)
	return l.chain(c, f, r)
}

// take reads a line.
func (l *lineSource) take() (err error) {
	l.row = l.held
	if l.held = nil; l.row == nil {
		l.row, err = l.lines.next()
	}
	l.at = l.lines.number
	return err
}

// chain reads the lines that belong to a row. With a fault in one of them, or in the row itself, they are passed over.
func (l *lineSource) chain(c chained, f *fault, r *Row) (*fault, error) {
	for {
		line, err := l.lines.next()
		if err == io.EOF {
			return f, nil
		} else if err != nil {
			return nil, err
		}
		if len(trim(line)) == 0 {
			continue
		}
		if !c.follows(line) {
			l.held = bytes.Clone(line)
			return f, nil
		}
		if f != nil {
			continue
		}
		if f = c.follow(line, r); f != nil {
			l.row, l.at = bytes.Clone(line), l.lines.number
		}
	}
}

func (l *lineSource) text() []byte { return l.row }
func (l *lineSource) line() int64 {
	if l.at == 0 { // in the header
		return l.lines.number
	}
	return l.at
}

// classTable numbers the names of classes.
type classTable struct {
	names []string
	index map[string]uint16
}

// of is the number of a class; an empty name is no class.
func (c *classTable) of(name []byte) (uint16, *fault) {
	if len(name) == 0 {
		return 0, nil
	}
	if i, ok := c.index[string(name)]; ok {
		return i, nil
	}
	if c.index == nil {
		c.names, c.index = []string{""}, map[string]uint16{} // 0 is for requests without a class
	}
	if len(c.names) > 1<<16-1 {
		return 0, faulty(Range, name, "is one class too many", "at most 65535 classes")
	}
	i := uint16(len(c.names))
	c.names = append(c.names, string(name))
	c.index[string(name)] = i
	return i, nil
}

// classed is a feed or layout whose rows have classes.
type classed interface{ classNames() []string }

func (c *classTable) classNames() []string { return c.names }

// sessionTable numbers sessions from 1, and their rows from 0.
type sessionTable struct {
	number map[string]int32
	turns  []int32 // by session
}

func newSessionTable() sessionTable { return sessionTable{map[string]int32{}, []int32{0}} }

// of fills in session and turn. A session that has not been seen has the next number, for good when
// accepted.
func (s *sessionTable) of(name []byte, r *Row) *fault {
	if len(name) == 0 {
		return nil
	}
	if r.Session = s.number[string(name)]; r.Session != 0 {
		r.Turn = s.turns[r.Session]
		return nil
	}
	if len(s.turns) == 1<<31-1 {
		return faulty(Range, name, "is one session too many", "at most 2147483646 sessions")
	}
	r.Session = int32(len(s.turns))
	return nil
}

// accept enters the row's session and counts its turns; rows that are dropped do not count.
func (s *sessionTable) accept(name []byte, r *Row) {
	if r.Session == 0 {
		return
	}
	if int(r.Session) == len(s.turns) {
		s.number[string(name)] = r.Session
		s.turns = append(s.turns, 0)
	}
	s.turns[r.Session] += int32(r.Requests())
}

// records is a trace that is read as a whole, in order of arrival.
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
		return faulty(ZeroOut, nil, "is a request that failed", "requests that were answered, or a policy for empty answers"), nil
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

// timelessSource is a feed whose rows may have no times.
type timelessSource interface{ isTimeless() bool }

func (t *records) isTimeless() bool { return t.timeless }
