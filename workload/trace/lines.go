package trace

import (
	"bytes"
	"fmt"
	"io"
)

// lines splits a stream into lines. Unlike bufio.Scanner it does not return a partial line if the stream ends with
// an error.
type lines struct {
	r          io.Reader
	buf        []byte
	start, end int // bytes read but not returned
	number     int64
	err        error
}

// maxLine limits the length of a line in bytes, and thereby the memory of a reader.
const maxLine = 16 << 20

func newLines(r io.Reader) *lines { return &lines{r: r, buf: make([]byte, 64<<10)} }

// next returns the next line without LF or CR LF. It is valid until the next call. At the end next returns io.EOF
// or the error of the stream.
func (l *lines) next() ([]byte, error) {
	searched := l.start
	for {
		if i := bytes.IndexByte(l.buf[searched:l.end], '\n'); i >= 0 {
			line := l.buf[l.start : searched+i]
			l.start = searched + i + 1
			return l.trim(line), nil
		}
		searched = l.end
		if l.err != nil {
			if l.err == io.EOF && l.start < l.end {
				line := l.buf[l.start:l.end]
				l.start = l.end
				return l.trim(line), nil
			}
			return nil, l.err
		}
		if l.start > 0 {
			copy(l.buf, l.buf[l.start:l.end])
			searched -= l.start
			l.end -= l.start
			l.start = 0
		}
		if l.end == len(l.buf) {
			if len(l.buf) >= maxLine {
				l.err = fmt.Errorf("line %d is longer than %d bytes", l.number+1, maxLine)
				l.start = l.end
				return nil, l.err
			}
			l.buf = append(l.buf, make([]byte, len(l.buf))...)
		}
		var n int
		for tries := 0; n == 0 && l.err == nil; tries++ {
			n, l.err = l.r.Read(l.buf[l.end:])
			if tries == 100 && n == 0 && l.err == nil {
				l.err = io.ErrNoProgress
			}
		}
		l.end += n
	}
}

func (l *lines) trim(line []byte) []byte {
	l.number++
	if n := len(line); n > 0 && line[n-1] == '\r' {
		return line[:n-1]
	}
	return line
}
