package monitor

import "time"

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

// QuickenStatus makes a status write its line a hundred times a second.
func QuickenStatus(s *Status) { s.every = 10 * time.Millisecond }

// WriteStatus writes a status for a terminal of some width.
func WriteStatus(s *Status, width int) {
	s.width = func() int { return width }
	s.write()
}
