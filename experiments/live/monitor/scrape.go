package monitor

import (
	"compress/gzip"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"clifftop/report/export"
	"clifftop/sim/event"
)

// mostScrapes is the number of scrapes that may wait for each other.
const mostScrapes = 8

// Metrics returns the handler of /metrics. It shows one replica, or all if replica is negative.
func (m *Monitor) Metrics(replica int) http.Handler {
	c := &collector{m: m, all: replica < 0}
	for i := range m.replicas {
		if replica < 0 || i == replica {
			c.replicas = append(c.replicas, i)
		}
	}
	c.totals = make([]export.Totals, len(c.replicas))
	waiting := make(chan struct{}, mostScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case waiting <- struct{}{}:
			defer func() { <-waiting }()
		default:
			http.Error(w, "too many scrapes at once: try again later", http.StatusServiceUnavailable)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8; escaping=underscores")
		h.Set("Vary", "Accept-Encoding")
		to := io.Writer(w)
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			to = z
		}
		_ = export.WriteSamples(to, c.samples()) // fails if the client is gone
	})
}

// collector takes the state at a scrape.
type collector struct {
	m        *Monitor
	replicas []int
	all      bool

	mu     sync.Mutex // one scrape at a time
	totals []export.Totals
}

func (c *collector) samples() []*export.Sample {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.m.now()
	for k, i := range c.replicas { // the driver may go on in between
		c.m.mu.Lock()
		c.m.totals.Copy(i, now, &c.totals[k])
		c.m.mu.Unlock()
	}
	samples := c.own()
	c.m.totals.Samples(c.totals, func(s *export.Sample) {
		s.Labels = slices.Clone(s.Labels)
		for i := range s.Labels {
			if l := &s.Labels[i]; l.Name == "engine" && !c.all { // a port of one replica is a server of one engine
				l.Value = "0"
			}
		}
		samples = append(samples, s)
	})
	return samples
}

// own returns the series of the simulator itself.
func (c *collector) own() (samples []*export.Sample) {
	m := c.m
	add := func(kind, name, help string, v float64, labels ...export.Label) {
		samples = append(samples, &export.Sample{Name: name, Help: help, Type: kind, Labels: labels, Value: v})
	}
	gauge := func(name, help string, v float64) { add("gauge", name, help, v) }
	lag := m.behind()
	gauge("clifftop_lag_seconds", "The longest lag of the simulation behind the wall clock in the last three seconds.",
		lag.recent.Seconds())
	gauge("clifftop_lag_max_seconds", "The longest lag behind the wall clock so far.", lag.most.Seconds())
	add("counter", "clifftop_late_total", "Checks, four a second, that found a lag of more than 50 ms since the last "+
		"one.",
		float64(lag.late))
	gauge("clifftop_speed", "Simulated seconds per second of the wall clock.", m.options.Speed)
	gauge("clifftop_simulated_seconds", "Simulated time since the start.", m.now().Seconds())
	if !c.all {
		return samples
	}
	m.mu.Lock()
	ended, refused, held := m.outcomes, m.refusals, m.system.Held
	m.mu.Unlock()
	gauge("clifftop_requests_held", "Requests that wait at the router while no replica takes requests.", float64(held))
	for i, n := range ended {
		add("counter", "clifftop_requests_total", "Requests that have ended, by outcome.", float64(n),
			export.Label{Name: "outcome", Value: event.Outcome(i).String()})
	}
	for i, n := range refused {
		if f := event.Refusal(i); f != event.NotRefused {
			add("counter", "clifftop_requests_rejected_total", "Requests that were rejected, by reason.", float64(n),
				export.Label{Name: "reason", Value: strings.ReplaceAll(f.String(), " ", "_")})
		}
	}
	return samples
}
