package monitor

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	tickTime     = 250 * time.Millisecond // between two states
	pointTicks   = 4                      // ticks between two points of the charts
	mostPoints   = 300
	manyReplicas = 64              // their states are sent with the points only
	viewerQueue  = 8               // messages that a viewer may be behind
	viewerTime   = 5 * time.Second // for a message to reach a viewer
)

// viewers are the open pages.
type viewers struct {
	most int

	mu      sync.Mutex
	open    map[*viewer]bool
	history ring[point]
	closed  bool
}

// viewer is a page that is open. It watches the batch of one replica.
type viewer struct {
	replica  int
	messages chan []byte // closed if the viewer is too slow or the server ends
}

func (v *viewers) init(most int) {
	v.most, v.open, v.history = most, make(map[*viewer]bool), newRing[point](mostPoints)
}

// add adds a viewer, with its first message. It returns nil if there are too many.
func (v *viewers) add(replica int, hello func([]point) []byte) *viewer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed || len(v.open) >= v.most {
		return nil
	}
	w := &viewer{replica, make(chan []byte, viewerQueue)}
	w.messages <- hello(v.history.all())
	v.open[w] = true
	return w
}

// remove removes a viewer, unless that has been done.
func (v *viewers) remove(w *viewer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.drop(w)
}

func (v *viewers) drop(w *viewer) {
	if v.open[w] {
		delete(v.open, w)
		close(w.messages)
	}
}

func (v *viewers) watched() []int {
	v.mu.Lock()
	defer v.mu.Unlock()
	set := make(map[int]bool)
	for w := range v.open {
		set[w.replica] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// send sends each viewer the message of its replica. A viewer that is too far behind is dropped.
func (v *viewers) send(message map[int][]byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for w := range v.open {
		text := message[w.replica]
		if text == nil {
			continue // it came after the messages were made
		}
		select {
		case w.messages <- text:
		default:
			v.drop(w)
		}
	}
}

// close drops all viewers and takes no more.
func (v *viewers) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	for w := range v.open {
		v.drop(w)
	}
}

// Run feeds open pages and looks for lag, until ctx is done. It needs a driver.
func (m *Monitor) Run(ctx context.Context) {
	defer m.viewers.close()
	tick := time.NewTicker(m.tickTime)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if text := m.lag.check(m.driver.PeakLag(), now); text != "" && m.options.Log != nil {
				m.options.Log(text)
			}
			m.tick(n%pointTicks == 0)
		}
	}
}

// tick sends the state to the viewers. Every so often it adds a point to the charts.
func (m *Monitor) tick(points bool) {
	watched := m.viewers.watched()
	if len(watched) == 0 && !points {
		return
	}
	s, batches := m.state(watched)
	var extra []byte
	if points {
		p := s.point()
		m.viewers.mu.Lock()
		m.viewers.history.push(p)
		m.viewers.mu.Unlock()
		extra = message("point", struct {
			Point   point    `json:"point"`
			Changes []change `json:"changes"`
		}{p, m.changes()})
	}
	if len(s.Replicas) > manyReplicas && !points {
		s.Replicas = nil
	}
	messages := make(map[int][]byte, len(watched))
	for _, i := range watched {
		s.Batch = batches[i]
		messages[i] = append(message("state", s), extra...)
	}
	m.viewers.send(messages)
}

// message is a server-sent event.
func message(kind string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		return nil // no field can fail
	}
	return []byte("event: " + kind + "\ndata: " + string(text) + "\n\n")
}

// EventsPattern is where the page finds its events, a pattern of [http.ServeMux].
const EventsPattern = "GET /live/events"

// Events returns the handler of the server-sent events that the page shows. The parameter replica, from 0, chooses the
// replica whose batch is sent.
func (m *Monitor) Events() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		replica, err := strconv.Atoi(r.URL.Query().Get("replica"))
		if err != nil || replica < 0 || replica >= len(m.replicas) {
			replica = 0
		}
		v := m.viewers.add(replica, func(history []point) []byte {
			return message("hello", struct {
				About   about    `json:"about"`
				History []point  `json:"history"`
				Changes []change `json:"changes"`
			}{m.about, history, m.changes()})
		})
		if v == nil {
			w.Header().Set("Retry-After", "5")
			http.Error(w, "too many pages are open", http.StatusServiceUnavailable)
			return
		}
		defer m.viewers.remove(v)
		h := w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		c := http.NewResponseController(w)
		defer func() { _ = c.SetWriteDeadline(time.Time{}) }() // the connection may be used again
		for {
			select {
			case <-r.Context().Done():
				return
			case text, more := <-v.messages:
				if !more {
					return
				}
				_ = c.SetWriteDeadline(time.Now().Add(viewerTime)) // not all writers have deadlines
				if _, err := w.Write(text); err != nil || c.Flush() != nil {
					return
				}
			}
		}
	})
}
