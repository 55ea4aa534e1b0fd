// Package input opens files that users name, and notices when the program is busy reading them. Reads cannot be
// interrupted: one from a pipe waits for its writer, and a large file is read to its end before a run begins. [Watch]
// calls a function if the program is interrupted meanwhile, so that it can end.
package input

import (
	"context"
	"io"
	"os"
	"sync/atomic"
	"time"
)

// calls counts calls of Open and Read, pending those that have not returned.
var calls, pending atomic.Int64

// File is a file that is open for reading.
type File struct{ *os.File }

// Open opens a file for reading. A named pipe waits for a writer.
func Open(path string) (*File, error) {
	defer count()()
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &File{f}, nil
}

// ReadFile reads a file to its end.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Stdin is standard input.
func Stdin() *File { return &File{os.Stdin} }

// Read implements [io.Reader].
func (f *File) Read(p []byte) (int, error) {
	defer count()()
	return f.File.Read(p)
}

// count notes a call, and returns what notes its end.
func count() (end func()) {
	calls.Add(1)
	pending.Add(1)
	return func() { pending.Add(-1) }
}

// The program is busy reading if that shows in so many looks in a row. A run that reads a trace while it simulates ends
// well before.
const (
	look  = 100 * time.Millisecond
	looks = 5
)

// Watch calls stuck, once, if the program goes on reading for half a second after ctx is done.
func Watch(ctx context.Context, stuck func()) {
	context.AfterFunc(ctx, func() {
		for busy, last := 0, calls.Load(); busy < looks; {
			time.Sleep(look)
			if now := calls.Load(); now != last || pending.Load() > 0 {
				busy, last = busy+1, now
			} else {
				busy = 0
			}
		}
		stuck()
	})
}
