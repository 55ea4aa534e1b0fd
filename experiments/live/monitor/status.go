package monitor

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"clifftop/sim/event"
)

// StatusMode says how a status is written.
type StatusMode int

// The modes.
const (
	StatusOff   StatusMode = iota // not at all
	StatusLine                    // one line that is written anew
	StatusPlain                   // a line every 30 seconds in which something happened
)

// Status writes the state of a server as lines of text, such as on standard error. Create it with [Monitor.NewStatus].
type Status struct {
	m     *Monitor
	w     io.Writer
	mode  StatusMode
	width func() int
	every time.Duration

	mu    sync.Mutex
	shown string // on the screen
	over  bool
	ended [outcomes]int64 // at the last line of a log
}

const (
	lineTime    = 250 * time.Millisecond
	plainTime   = 30 * time.Second
	commonWidth = 80
)

// NewStatus returns a status that is written to w.
func (m *Monitor) NewStatus(w io.Writer, mode StatusMode) *Status {
	every := map[StatusMode]time.Duration{StatusLine: lineTime, StatusPlain: plainTime}[mode]
	return &Status{m: m, w: w, mode: mode, every: every, width: func() int {
		if f, ok := w.(*os.File); ok {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				return n
			}
		}
		return commonWidth
	}}
}

// Run writes the status until ctx is done.
func (s *Status) Run(ctx context.Context) {
	if s.every == 0 {
		return
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	defer s.end()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.write()
		}
	}
}

func (s *Status) write() {
	now, _ := s.m.state(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.mode == StatusPlain {
		if now.System > 0 || now.Ended != s.ended {
			fmt.Fprintf(s.w, "clifftop: %s\n", now.line(math.MaxInt))
		}
		s.ended = now.Ended
		return
	}
	// The last column stays free: some terminals wrap there.
	if text := now.line(s.width() - 1); text != s.shown {
		fmt.Fprintf(s.w, "\r%s\x1b[K", text)
		s.shown = text
	}
}

// end removes the line.
func (s *Status) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	s.over = true
}

func (s *Status) clear() {
	if s.shown != "" {
		_, _ = io.WriteString(s.w, "\r\x1b[K")
		s.shown = ""
	}
}

// Write writes whole lines above the status, such as a log.
func (s *Status) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	return s.w.Write(text)
}

func (s *state) ready() (n int) {
	for i := range s.Replicas {
		if s.Replicas[i].State == event.Ready.String() {
			n++
		}
	}
	return n
}

// line describes a state in so many columns. What does not fit is left out, the least important first.
func (s *state) line(width int) string {
	parts := []string{fmt.Sprintf("%d running", s.Running), fmt.Sprintf("%d waiting", s.Waiting+s.Held)}
	if ready := s.ready(); ready < len(s.Replicas) {
		parts = append(parts, fmt.Sprintf("%d of %d ready", ready, len(s.Replicas)))
	}
	if part := s.kv(); part != nil {
		parts = append(parts, fmt.Sprintf("KV %.0f %%", 100**part))
	}
	parts = append(parts, amount(s.Tokens)+" tok/s", amount(s.Requests)+" req/s")
	if l := s.Latencies; l.TTFT != nil {
		parts = append(parts, fmt.Sprintf("TTFT p50 %s p99 %s", short(l.TTFT[0]), short(l.TTFT[2])))
	}
	if l := s.Latencies; l.ITL != nil {
		parts = append(parts, "ITL p50 "+short(l.ITL[0]))
	}
	if s.Lag > lagLimit.Seconds() { // first, so that it is always seen
		parts = append([]string{short(s.Lag) + " behind the clock"}, parts...)
	}
	for n := len(parts); n > 0; n-- {
		if text := strings.Join(parts[:n], " · "); len([]rune(text)) <= width {
			return text
		}
	}
	return string([]rune(parts[0])[:max(0, min(width, len(parts[0])))])
}

// amount writes a number in few characters.
func amount(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%.1fM", v/1e6)
	case v >= 1e4:
		return fmt.Sprintf("%.0fk", v/1e3)
	case v >= 1e3:
		return fmt.Sprintf("%.1fk", v/1e3)
	case v >= 10 || v == 0:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// short writes seconds in few characters.
func short(seconds float64) string {
	switch {
	case seconds >= 10:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds >= 1:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds >= 0.01:
		return fmt.Sprintf("%.0f ms", 1e3*seconds)
	}
	return fmt.Sprintf("%.1f ms", 1e3*seconds)
}
