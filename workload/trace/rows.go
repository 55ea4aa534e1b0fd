package trace

import (
	"bytes"
	"io"
)

// rowSource provides the rows of a File: lines, a document or a generator.
type rowSource interface {
	// next reads a row without its ID and sets at to its arrival. It returns a fault for a row that breaks a rule,
	// and an error at the end of the trace: io.EOF, or what ended it early.
	next(r *Row, at *instant) (*fault, error)
	// accept is called if the row just read is kept.
	accept(r *Row)
	// text returns the row just read, for messages, and line the number of its first line; 0 means unknown.
	text() []byte
	line() int64
}

// layout reads the rows of a format with one row per line.
type layout interface {
	parse(line []byte, r *Row, at *instant) *fault
	accept(r *Row)
}

// chained is a layout in which several lines may form one row.
type chained interface {
	// chains reports whether the trace has such rows.
	chains() bool
	// follows reports whether a line belongs to the row above it, and follow reads it.
	follows(line []byte) bool
	follow(line []byte, r *Row) *fault
}

// lineSource is a trace with one row per line, or several lines per row if its layout is chained.
type lineSource struct {
	layout
	lines *lines
	held  []byte // a line that was read ahead, to detect the format or the end of a row
	row   []byte
	at    int64 // number of the first line of the row
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

func (l *lineSource) take() (err error) {
	l.row = l.held
	if l.held = nil; l.row == nil {
		l.row, err = l.lines.next()
	}
	l.at = l.lines.number
	return err
}

// chain reads the further lines of a row. After a fault in any of its lines it skips the rest.
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

// of returns the number of a class; 0 for an empty name.
func (c *classTable) of(name []byte) (uint16, *fault) {
	if len(name) == 0 {
		return 0, nil
	}
	if i, ok := c.index[string(name)]; ok {
		return i, nil
	}
	if c.index == nil {
		c.names, c.index = []string{""}, map[string]uint16{} // 0 means no class
	}
	if len(c.names) > 1<<16-1 {
		return 0, faulty(Range, name, "exceeds the number of classes", "at most 65535 classes")
	}
	i := uint16(len(c.names))
	c.names = append(c.names, string(name))
	c.index[string(name)] = i
	return i, nil
}

// classed is a rowSource or layout whose rows have classes.
type classed interface{ classNames() []string }

func (c *classTable) classNames() []string { return c.names }

// sessionTable numbers sessions from 1, and the rows of each from 0.
type sessionTable struct {
	number map[string]int32
	turns  []int32 // by session
}

func newSessionTable() sessionTable { return sessionTable{map[string]int32{}, []int32{0}} }

// of sets session and turn of the row. A new session gets the next number, which becomes permanent by accept.
func (s *sessionTable) of(name []byte, r *Row) *fault {
	if len(name) == 0 {
		return nil
	}
	if r.Session = s.number[string(name)]; r.Session != 0 {
		r.Turn = s.turns[r.Session]
		return nil
	}
	if len(s.turns) == 1<<31-1 {
		return faulty(Range, name, "exceeds the number of sessions", "at most 2147483646 sessions")
	}
	r.Session = int32(len(s.turns))
	return nil
}

// accept adds the session of the row and counts its turns; dropped rows do not count.
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

// timelessSource is a rowSource or layout whose rows may have no times.
type timelessSource interface{ isTimeless() bool }
