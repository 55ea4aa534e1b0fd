package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"

	"clifftop/internal/input"
	"clifftop/workload/trace"
)

// TraceFile opens a trace by its path, as often as it is asked to: a file, or a directory that describes
// ServeGen's clients. It is safe for concurrent use.
type TraceFile struct {
	Path    string
	Options trace.Options
	// Interrupted is asked whether to go on, now and then; nil is never.
	Interrupted func() error

	mu     sync.Mutex
	last   *trace.File
	opened bool
	sum    string
}

// Open opens the trace from its beginning; it is a [trace.Opener].
func (t *TraceFile) Open() (*trace.File, error) {
	opened, err := t.open()
	if err == nil {
		t.mu.Lock()
		t.last = opened
		t.mu.Unlock()
	}
	return opened, err
}

func (t *TraceFile) open() (*trace.File, error) {
	info, err := os.Stat(t.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", t.Path, PlainFileError(err))
	}
	if info.IsDir() {
		dir := os.DirFS(t.Path)
		if !trace.IsServeGen(dir) {
			return nil, fmt.Errorf("%s: this is a directory (want a file, or a directory of ServeGen's "+
				"chunk-N-trace.csv)",
				t.Path)
		}
		return trace.OpenServeGen(dir, t.Path, t.Options)
	}
	f, err := input.Open(t.Path)
	if err != nil {
		return nil, fmt.Errorf("%s: %s", t.Path, PlainFileError(err))
	}
	t.mu.Lock()
	first := !t.opened
	t.opened = true
	t.mu.Unlock()
	in := &reading{file: f, trace: t}
	if first {
		in.hash = sha256.New()
	}
	return trace.Open(in, t.Path, t.Options)
}

// SHA256 is that of the file's bytes, in hexadecimal. It is summed while the file is read, and from the whole file
// where reading ended early. What is not a regular file has none.
func (t *TraceFile) SHA256() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sum != "" {
		return t.sum
	}
	if info, err := os.Stat(t.Path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := input.Open(t.Path)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err == nil {
		t.sum = hex.EncodeToString(h.Sum(nil))
	}
	return t.sum
}

// Last is the trace as it was opened last.
func (t *TraceFile) Last() *trace.File {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// reading is a file that is summed while it is read.
type reading struct {
	file  io.ReadCloser
	hash  hash.Hash // nil after the first time
	trace *TraceFile
}

func (d *reading) Read(p []byte) (int, error) {
	if d.trace.Interrupted != nil {
		if err := d.trace.Interrupted(); err != nil {
			return 0, err
		}
	}
	n, err := d.file.Read(p)
	if d.hash == nil {
		return n, err
	}
	d.hash.Write(p[:n])
	if err == io.EOF {
		d.trace.mu.Lock()
		d.trace.sum = hex.EncodeToString(d.hash.Sum(nil))
		d.trace.mu.Unlock()
	}
	return n, err
}

func (d *reading) Close() error { return d.file.Close() }
