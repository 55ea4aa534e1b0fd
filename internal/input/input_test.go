package input_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"clifftop/internal/input"
)

// TestWatch interrupts a program that waits for a writer of a named pipe, one that waits for bytes, and one that does not
// read.
func TestWatch(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		name string
		read func(r *os.File)
		want bool
	}{
		{"idle", func(*os.File) {}, false},
		{"open", func(*os.File) { input.Open(fifo) }, true},
		{"read", func(r *os.File) { (&input.File{File: r}).Read(make([]byte, 1)) }, true},
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		done, stuck := make(chan bool), make(chan bool)
		go func() { c.read(r); close(done) }()
		ctx, cancel := context.WithCancel(context.Background())
		input.Watch(ctx, func() { close(stuck) })
		cancel()
		select {
		case <-stuck:
			if !c.want {
				t.Errorf("%s: the program is stuck", c.name)
			}
		case <-time.After(2 * time.Second):
			if c.want {
				t.Errorf("%s: the program is not stuck", c.name)
			}
		}
		w.Close() // both wait no longer
		if c.name == "open" {
			if f, err := os.OpenFile(fifo, os.O_WRONLY, 0); err == nil {
				f.Close()
			}
		}
		<-done
	}
}
