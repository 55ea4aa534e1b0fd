package live

import "time"

// alarm wakes the goroutine of Run at an instant.
type alarm interface {
	// set makes the alarm ring after a duration above 0. An earlier setting no longer holds; it may ring once more.
	set(time.Duration)
	rings() <-chan time.Time
	close()
}

// timer is the alarm of package time. On Linux it may be late by a millisecond, because the runtime waits in whole
// milliseconds.
type timer struct{ *time.Timer }

func newTimer() alarm { return timer{time.NewTimer(time.Hour)} }

func (t timer) set(d time.Duration)     { t.Reset(d) }
func (t timer) rings() <-chan time.Time { return t.C }
func (t timer) close()                  { t.Stop() }
