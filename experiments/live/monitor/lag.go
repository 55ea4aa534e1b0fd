package monitor

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

const (
	lagLimit = 50 * time.Millisecond
	lagPause = 10 * time.Second // between two warnings
	lagTicks = 12               // checks that count as recent: three seconds
)

// lagWatch looks for a simulation that falls behind the wall clock.
type lagWatch struct {
	mu     sync.Mutex
	lags   [lagTicks]time.Duration // the longest before each of the latest checks
	checks int
	most   time.Duration // so far
	late   int64         // checks that found a lag above the limit
	warned time.Time
	peak   time.Duration // since the last warning
}

// lagState is how far the simulation is behind the wall clock.
type lagState struct {
	recent, most time.Duration // the longest in the last three seconds, and so far
	late         int64         // checks that found a lag above the limit
}

// check notes the longest lag since the last check. It returns a warning if one is due.
func (l *lagWatch) check(lag time.Duration, now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lags[l.checks%lagTicks] = lag
	l.checks++
	l.most, l.peak = max(l.most, lag), max(l.peak, lag)
	if lag > lagLimit {
		l.late++
	}
	if l.peak <= lagLimit || now.Sub(l.warned) < lagPause {
		return ""
	}
	text := fmt.Sprintf("the simulation was up to %s behind the wall clock: this machine is too slow for the load, or "+
		"other programs use it (want fewer requests, or a lower --speed)", short(l.peak.Seconds()))
	l.warned, l.peak = now, 0
	return text
}

func (l *lagWatch) state(now time.Duration) lagState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return lagState{recent: max(now, slices.Max(l.lags[:])), most: max(now, l.most), late: l.late}
}
