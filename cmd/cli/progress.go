package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"clifftop/experiments"
	"clifftop/report/layout"
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

	detail string // how fast a run goes

	// Of the last plain line.
	tenth int
	shown time.Time
}

const (
	quietFor = time.Second      // nothing is shown before
	lineGap  = 30 * time.Second // after which a plain line is due, if not for another tenth of the way
	steps    = 1000             // of the bar
	barWidth = 10               // columns
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

// run shows how far a run is, how fast it goes and when it ends.
func (p *progress) run(at experiments.Progress) {
	if p == nil {
		return
	}
	p.mu.Lock()
	if took := time.Since(p.started).Seconds(); took > 0 {
		p.detail = fmt.Sprintf("%s requests/s, %s simulated", amount(float64(at.Requests)/took), span(at.Simulated.Seconds()))
	}
	p.mu.Unlock()
	p.set(at.Fraction)
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
			p.bar = progressbar.NewOptions(steps, progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(barWidth),
				progressbar.OptionThrottle(65*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false))
		}
		p.bar.Describe(p.words(fraction, now))
		_ = p.bar.Set(int(steps * fraction))
	case tenth > p.tenth || now.Sub(p.shown) >= lineGap:
		p.tenth, p.shown = tenth, now
		fmt.Fprintf(p.w, "clifftop: %s: %.0f %%%s\n", p.what, 100*fraction, strings.TrimPrefix(p.words(fraction, now), p.what))
	}
}

// counts shows how many of all are done; nil when nothing is to be shown.
func (p *progress) counts() func(done, total int) {
	if p == nil {
		return nil
	}
	return func(done, total int) { p.set(float64(done) / float64(total)) }
}

// words say what goes on, how fast, and how long it will still take. With a bar of [barWidth] they fit in 80 columns.
func (p *progress) words(fraction float64, now time.Time) string {
	text := p.what
	if p.detail != "" {
		text += ", " + p.detail
	}
	if fraction > 0 && fraction < 1 {
		took := now.Sub(p.started).Seconds()
		text += ", " + span(took/fraction-took) + " left"
	}
	return text
}

// amount is a number in few characters.
func amount(v float64) string {
	switch {
	case v >= 1e6:
		return layout.Digits(v/1e6) + "M"
	case v >= 1e4:
		return layout.Digits(v/1e3) + "k"
	}
	return fmt.Sprintf("%.0f", v)
}

// span is a time in few characters.
func span(seconds float64) string {
	switch {
	case seconds >= 2*86400:
		return fmt.Sprintf("%.0f d", seconds/86400)
	case seconds >= 2*3600:
		return fmt.Sprintf("%.0f h", seconds/3600)
	case seconds >= 120:
		return fmt.Sprintf("%.0f min", seconds/60)
	}
	return fmt.Sprintf("%.0f s", math.Ceil(seconds))
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
