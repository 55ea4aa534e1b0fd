package monitor

import (
	"fmt"
	"sync"
	"time"
)

const (
	lagLimit = 50 * time.Millisecond
	lagPause = 10 * time.Second // between two warnings
)

// lagWatch looks for a simulation that falls behind the wall clock.
type lagWatch struct {
	mu     sync.Mutex
	most   time.Duration // so far
	late   int64         // checks that found the lag above the limit
	warned time.Time
	peak   time.Duration // since the last warning
}

// check returns a warning if one is due.
func (l *lagWatch) check(lag time.Duration, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most, l.peak = max(l.most, lag), max(l.peak, lag)
	if lag > lagLimit {
		l.late++
	}
	if l.peak <= lagLimit || now.Sub(l.warned) < lagPause {
		return ""
	}
	text := fmt.Sprintf("the simulation is behind the wall clock: by up to %d ms, now %d ms; this machine is too slow "+
		"for the load, or other programs use it (want fewer requests, or a lower --speed)", l.peak.Milliseconds(),
		lag.Milliseconds())
	l.warned, l.peak = now, 0
	return text
}

// state returns the longest lag and the number of checks that found it above the limit.
func (l *lagWatch) state() (most time.Duration, late int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most, l.late
}
