package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress shows on standard error how far a command has come: a bar on a terminal, or a line now and
// then. It stays silent for commands that take less than a second.
type progress struct {
	w       io.Writer
	what    string
	plain   bool
	started time.Time

	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil until it is drawn

	// Of the last plain line.
	tenth int
	shown time.Time
}

const (
	quietFor = time.Second      // nothing is shown before
	lineGap  = 30 * time.Second // after which a plain line is due, if not for another tenth of the way
	steps    = 1000             // of the bar
)

// newProgress is nil when nothing is to be shown.
func newProgress(w io.Writer, f *outputFlags, what string) *progress {
	if f.quiet || f.progress == "off" || f.progress == "auto" && !isTerminal(w) {
		return nil
	}
	return &progress{w: w, what: what, plain: f.progress == "plain", started: time.Now()}
}

// isTerminal reports whether a bar can be drawn on w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// set shows a fraction; it may be called from several goroutines.
func (p *progress) set(fraction float64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch tenth := int(10 * fraction); {
	case now.Sub(p.started) < quietFor:
	case !p.plain:
		if p.bar == nil {
			p.bar = progressbar.NewOptions(steps, progressbar.OptionSetWriter(p.w), progressbar.OptionSetDescription(p.what),
				progressbar.OptionSetWidth(30), progressbar.OptionThrottle(65*time.Millisecond), progressbar.OptionClearOnFinish())
		}
		_ = p.bar.Set(int(steps * fraction))
	case tenth > p.tenth || now.Sub(p.shown) >= lineGap:
		p.tenth, p.shown = tenth, now
		fmt.Fprintf(p.w, "clifftop: %s: %.0f %%\n", p.what, 100*fraction)
	}
}

// done takes the bar away.
func (p *progress) done() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
