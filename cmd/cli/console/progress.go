package console

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"clifftop/experiments"
	"clifftop/report/layout"
)

// Progress shows the progress of a command on standard error: as a bar on a terminal, or as occasional lines. It shows
// nothing during the first second. The methods of a nil Progress do nothing.
type Progress struct {
	w       io.Writer
	doing   string // what the command does, such as "simulating"
	plain   bool   // lines, no bar
	started time.Time

	mu  sync.Mutex
	bar *progressbar.ProgressBar // nil until it is drawn

	detail string // speed of a run

	// State of the last plain line: tenths of the work that were done, and when it was printed.
	tenth   int
	printed time.Time
}

const (
	quietFor = time.Second      // time before anything is shown
	lineGap  = 30 * time.Second // time after which a plain line is printed even without a new tenth
	steps    = 1000             // steps of the bar
	barWidth = 10               // columns of the bar
)

// NewProgress starts a progress display. It returns nil if --quiet or --progress turn the display off.
func (f *SimulationFlags) NewProgress(c *cobra.Command, doing string) *Progress {
	w := c.ErrOrStderr()
	if f.quiet || f.progress == "off" || f.progress != "plain" && !IsTerminal(w) {
		return nil
	}
	return &Progress{w: w, doing: doing, plain: f.progress == "plain", started: time.Now()}
}

// IsTerminal reports whether w is a terminal that can show a bar.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// Run shows the progress of one run, its speed and the time that is left.
func (p *Progress) Run(at experiments.Progress) {
	if p == nil {
		return
	}
	p.mu.Lock()
	if took := time.Since(p.started).Seconds(); took > 0 {
		speed := float64(at.Requests) / took
		p.detail = fmt.Sprintf("%s requests/s, %s simulated", amount(speed), span(at.Simulated.Seconds()))
	}
	p.mu.Unlock()
	p.Set(at.Fraction)
}

// Set shows the fraction of the work that is done. Several goroutines may call it.
func (p *Progress) Set(fraction float64) {
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
			p.bar = newBar(p.w)
		}
		p.bar.Describe(p.words(fraction, now))
		_ = p.bar.Set(int(steps * fraction))
	case tenth > p.tenth || now.Sub(p.printed) >= lineGap:
		p.tenth, p.printed = tenth, now
		rest := strings.TrimPrefix(p.words(fraction, now), p.doing)
		fmt.Fprintf(p.w, "clifftop: %s: %.0f %%%s\n", p.doing, 100*fraction, rest)
	}
}

func newBar(w io.Writer) *progressbar.ProgressBar {
	return progressbar.NewOptions(steps, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(barWidth),
		progressbar.OptionThrottle(65*time.Millisecond), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetPredictTime(false))
}

// Counts returns a function that shows how many parts of the work are done, or nil if nothing is to be shown.
func (p *Progress) Counts() func(done, total int) {
	if p == nil {
		return nil
	}
	return func(done, total int) { p.Set(float64(done) / float64(total)) }
}

// words describes the work, its speed and the time that is left. Words and a bar of barWidth fit into 80 columns.
func (p *Progress) words(fraction float64, now time.Time) string {
	text := p.doing
	if p.detail != "" {
		text += ", " + p.detail
	}
	if fraction > 0 && fraction < 1 {
		took := now.Sub(p.started).Seconds()
		text += ", " + span(took/fraction-took) + " left"
	}
	return text
}

// amount formats a number in few characters.
func amount(v float64) string {
	switch {
	case v >= 1e6:
		return layout.Digits(v/1e6) + "M"
	case v >= 1e4:
		return layout.Digits(v/1e3) + "k"
	}
	return fmt.Sprintf("%.0f", v)
}

// span formats a time in few characters.
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

// Done removes the bar.
func (p *Progress) Done() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
