package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// progress shows on standard error how far a command has come: a bar on a terminal, or a line for
// every tenth of the way. It stays silent for commands that take less than a second.
type progress struct {
	w       io.Writer
	bar     bool
	what    string
	started time.Time

	mu    sync.Mutex
	drawn bool
	last  int // of a hundred, or of ten in plain lines
	at    time.Time
}

// newProgress is nil when nothing is to be shown.
func newProgress(w io.Writer, f *outputFlags, what string) *progress {
	terminal := false
	if file, ok := w.(*os.File); ok {
		info, err := file.Stat()
		terminal = err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
	}
	switch {
	case f.quiet || f.progress == "off" || f.progress == "auto" && !terminal:
		return nil
	}
	return &progress{w: w, bar: f.progress == "auto", what: what, started: time.Now()}
}

// quietFor is how long a command may take before progress is shown.
const quietFor = time.Second

// set shows a fraction; it may be called from several goroutines.
func (p *progress) set(fraction float64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.started) < quietFor {
		return
	}
	if !p.bar {
		if tenths := int(fraction * 10); tenths > p.last {
			p.last = tenths
			fmt.Fprintf(p.w, "clifftop: %s: %d %%\n", p.what, tenths*10)
		}
		return
	}
	percent := int(fraction * 100)
	if p.drawn && (percent == p.last || now.Sub(p.at) < 50*time.Millisecond) {
		return
	}
	p.drawn, p.last, p.at = true, percent, now
	const width = 30
	full := percent * width / 100
	fmt.Fprintf(p.w, "\r%s [%s%s] %3d %%", p.what, strings.Repeat("=", full), strings.Repeat(" ", width-full), percent)
}

// done takes the bar away.
func (p *progress) done() {
	if p != nil && p.drawn {
		fmt.Fprintf(p.w, "\r%s\r", strings.Repeat(" ", len(p.what)+42))
	}
}
