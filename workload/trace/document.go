package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// document reads one JSON value of any length in pieces and skips unwanted parts in constant memory. It checks the
// structure of the parts that it reads; skipped parts are checked less.
type document struct {
	r       *bufio.Reader
	number  int64 // current line
	longest int   // maximum length of a text in bytes; 0 means maxText
}

// maxText limits a key, number or text in bytes.
const maxText = 1 << 16

// shapeError is JSON with an unexpected structure.
type shapeError struct{ found, want string }

func (m *shapeError) Error() string { return "want " + m.want }

// next returns the next byte that is not blank, without consuming it.
func (d *document) next() (byte, error) {
	for {
		c, err := d.r.ReadByte()
		if err == io.EOF {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
		switch c {
		case '\n':
			d.number++
		case ' ', '\t', '\r':
		default:
			return c, d.r.UnreadByte()
		}
	}
}

func (d *document) unexpected(want string) error {
	found, _ := d.r.Peek(maxShown)
	return &shapeError{string(found), want}
}

// take consumes a required byte.
func (d *document) take(c byte) error {
	found, err := d.next()
	if err == nil && found != c {
		err = d.unexpected("'" + string(c) + "'")
	}
	if err == nil {
		_, err = d.r.ReadByte()
	}
	return err
}

// list walks over the comma-separated items between two brackets.
func (d *document) list(from, to byte, item func() error) error {
	if err := d.take(from); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := d.next()
		if err != nil {
			return err
		}
		if c == to {
			_, err = d.r.ReadByte()
			return err
		}
		if !first {
			if err := d.take(','); err != nil {
				return err
			}
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// members walks over the members of an object; item must consume the value. A key that is there twice is an error.
func (d *document) members(item func(key string) error) error {
	seen := map[string]bool{}
	return d.list('{', '}', func() error {
		key, err := d.scalar()
		if err == nil && (len(key) == 0 || key[0] != '"') {
			err = &shapeError{string(key), "a key in quotes"}
		}
		if err != nil {
			return err
		}
		name := string(key[1 : len(key)-1])
		if seen[name] {
			return &shapeError{string(key), "each key once"}
		}
		seen[name] = true
		if err := d.take(':'); err != nil {
			return err
		}
		return item(name)
	})
}

// elements walks over the elements of a list; item must consume one.
func (d *document) elements(item func() error) error { return d.list('[', ']', item) }

// scalar consumes a text with its quotes, a number, or a word such as null.
func (d *document) scalar() ([]byte, error) {
	c, err := d.next()
	if err != nil {
		return nil, err
	}
	var b []byte
	longest := max(d.longest, maxText)
	quoted := c == '"'
	for {
		c, err := d.r.ReadByte()
		if err == io.EOF && !quoted && len(b) > 0 {
			return b, nil
		} else if err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		} else if err != nil {
			return nil, err
		}
		if !quoted && bytes.IndexByte([]byte("{}[],: \t\r\n\""), c) >= 0 {
			err := d.r.UnreadByte()
			if err == nil && len(b) == 0 {
				err = d.unexpected("a text or a number")
			}
			return b, err
		}
		switch b = append(b, c); {
		case len(b) > longest:
			return nil, &shapeError{string(b[:maxShown+1]), fmt.Sprintf("at most %d bytes", longest)}
		case quoted && c == '\\':
			c, err := d.r.ReadByte()
			if err != nil {
				return nil, io.ErrUnexpectedEOF
			}
			b = append(b, c)
		case quoted && c == '"' && len(b) > 1:
			return b, nil
		case c == '\n':
			d.number++
		}
	}
}

// skip consumes a value.
func (d *document) skip() error {
	depth := 0
	for {
		c, err := d.next()
		if err != nil {
			return err
		}
		switch c {
		case '[', '{':
			depth++
			_, err = d.r.ReadByte()
		case ']', '}':
			if depth == 0 {
				return d.unexpected("a value")
			}
			depth--
			_, err = d.r.ReadByte()
		case ',', ':':
			if depth == 0 {
				return d.unexpected("a value")
			}
			_, err = d.r.ReadByte()
		case '"':
			err = d.skipText()
		default:
			err = d.skipWord()
		}
		if err != nil || depth == 0 {
			return err
		}
	}
}

// skipWord consumes a number or a word.
func (d *document) skipWord() error {
	for {
		c, err := d.r.ReadByte()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if bytes.IndexByte([]byte("{}[],: \t\r\n\""), c) >= 0 {
			return d.r.UnreadByte()
		}
	}
}

func (d *document) skipText() error {
	for first := true; ; first = false {
		c, err := d.r.ReadByte()
		if err == nil && c == '\\' {
			_, err = d.r.ReadByte()
			c = 0
		}
		switch {
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case c == '\n':
			d.number++
		case c == '"' && !first:
			return nil
		}
	}
}

// optionalMembers walks over the members of an object and skips any other value.
func (d *document) optionalMembers(item func(key string) error) error {
	c, err := d.next()
	if err != nil {
		return err
	}
	if c != '{' {
		return d.skip()
	}
	return d.members(item)
}

// nonEmpty consumes a value and reports whether it is anything but null, false or empty text.
func (d *document) nonEmpty() (bool, error) {
	c, err := d.next()
	if err != nil {
		return false, err
	}
	head, _ := d.r.Peek(5)
	nothing := c == '"' && len(head) > 1 && head[1] == '"' || string(head[:min(4, len(head))]) == "null" ||
		string(head) == "false"
	return !nothing, d.skip()
}

func (d *document) explain(name string, err error) error {
	var m *shapeError
	switch {
	case errors.As(err, &m):
		return &rowError{Name: name, Line: d.number, Code: Syntax, Value: m.found, Problem: "is unexpected here",
			Want: m.want}
	case err == io.ErrUnexpectedEOF:
		return fmt.Errorf("%s: the file is cut short in line %d: %w", name, d.number, err)
	}
	var r *rowError
	if errors.As(err, &r) {
		return err
	}
	return fmt.Errorf("%s: line %d: %w", name, d.number, err)
}

// documentKeys returns the keys of the object at the beginning of a trace, as far as head shows them, or those of
// the first object of a list. It returns nil for anything else.
func documentKeys(head []byte) (keys []string, list bool) {
	head = skipBlanks(bytes.TrimPrefix(head, []byte("\ufeff")))
	if len(head) == 0 || head[0] != '{' && head[0] != '[' {
		return nil, false
	}
	d := &document{r: bufio.NewReader(bytes.NewReader(head))}
	keys = []string{}
	note := func() error {
		err := d.members(func(key string) error {
			keys = append(keys, key)
			return d.skip()
		})
		if err == nil && list {
			err = io.EOF // one object is enough
		}
		return err
	}
	if list = head[0] == '['; list {
		_ = d.elements(note) // head is only the beginning, so it may end anywhere
	} else {
		_ = note()
	}
	return keys, list
}
