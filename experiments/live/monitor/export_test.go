package monitor

import (
	"time"

	"clifftop/sim/clock"
)

// Quicken makes a monitor send the state a hundred times a second.
func Quicken(m *Monitor) { m.tickTime = 10 * time.Millisecond }

// Tick sends the state to the viewers, as it is done four times a second, and with a point once a second.
func Tick(m *Monitor, point bool) { m.tick(point) }

// Unread reports whether one of so many viewers has a message that it has not taken, or has not come yet.
func Unread(m *Monitor, viewers int) bool {
	m.viewers.mu.Lock()
	defer m.viewers.mu.Unlock()
	n := 0
	for v := range m.viewers.open {
		n++
		if len(v.messages) > 0 {
			return true
		}
	}
	return n < viewers
}

// Lists returns the numbers of requests in the batch and in the queue of a replica, and those that a page gets.
func Lists(m *Monitor, replica int) (running, waiting, drawn, listed int) {
	_, batches := m.state([]int{replica})
	b := batches[replica]
	return len(b.Running) + b.More, len(b.Waiting) + b.Behind, len(b.Running), len(b.Waiting)
}

// Window is a window of latencies in seconds.
type Window struct{ l latencies }

// NewWindow returns a window for a speed.
func NewWindow(speed float64) *Window { return &Window{newWindow(speed).first} }

// Add adds a latency at an instant.
func (w *Window) Add(at clock.Time, seconds float64) {
	w.l.passes(at)
	w.l.add(at, int64(seconds*float64(clock.Second)), 1)
}

// Minute returns the percentiles 50, 90 and 99 of the last minute at an instant, Latest those of some seconds.
func (w *Window) Minute(now clock.Time) []float64 {
	w.l.passes(now)
	return quantiles(&w.l.sum)
}
func (w *Window) Latest(now clock.Time, seconds int) []float64 {
	return quantiles(w.l.latest(now, seconds))
}

// QuickenStatus makes a status write its line a hundred times a second.
func QuickenStatus(s *Status) { s.every = 10 * time.Millisecond }

// WriteStatus writes a status for a terminal of some width.
func WriteStatus(s *Status, width int) {
	s.width = func() int { return width }
	s.write()
}
