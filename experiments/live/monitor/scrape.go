package monitor

import (
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"clifftop/report/export"
	"clifftop/sim/event"
)

// Metrics returns the handler of /metrics. It shows one replica, or all if replica is negative.
func (m *Monitor) Metrics(replica int) http.Handler {
	r := prometheus.NewPedanticRegistry()
	c := &collector{m: m, all: replica < 0}
	for i := range m.replicas {
		if replica < 0 || i == replica {
			c.replicas = append(c.replicas, i)
		}
	}
	c.totals = make([]export.Totals, len(c.replicas))
	r.MustRegister(c)
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: 8})
}

// collector gives Prometheus the state at a scrape.
type collector struct {
	m        *Monitor
	replicas []int
	all      bool

	mu     sync.Mutex // one scrape at a time
	totals []export.Totals
	descs  map[string]*prometheus.Desc
}

// Describe implements [prometheus.Collector]. It describes nothing, as the series depend on the scenario.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.m.now()
	for k, i := range c.replicas { // the driver may go on in between
		c.m.mu.Lock()
		c.m.totals.Copy(i, now, &c.totals[k])
		c.m.mu.Unlock()
	}
	c.m.totals.Samples(c.totals, func(s *export.Sample) { out <- c.metric(s) })
	c.own(out)
}

func (c *collector) metric(s *export.Sample) prometheus.Metric {
	var names, values []string
	for _, l := range s.Labels {
		value := strings.ToValidUTF8(l.Value, "\uFFFD")
		if l.Name == "engine" && !c.all { // a port of one replica is a server of one engine
			value = "0"
		}
		names, values = append(names, l.Name), append(values, value)
	}
	desc := c.desc(s.Name, s.Help, names)
	switch s.Type {
	case "histogram":
		counts := make(map[float64]uint64, len(s.Bounds))
		for i, b := range s.Bounds {
			counts[b] = s.Counts[i]
		}
		return prometheus.MustNewConstHistogram(desc, s.Count, s.Value, counts, values...)
	case "counter":
		return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, s.Value, values...)
	}
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, s.Value, values...)
}

// desc describes a family. The label names of a family are always the same.
func (c *collector) desc(name, help string, labels []string) *prometheus.Desc {
	d := c.descs[name]
	if d == nil {
		d = prometheus.NewDesc(name, help, slices.Clone(labels), nil)
		if c.descs == nil {
			c.descs = make(map[string]*prometheus.Desc)
		}
		c.descs[name] = d
	}
	return d
}

// own gives the metrics of the simulator itself.
func (c *collector) own(out chan<- prometheus.Metric) {
	m := c.m
	gauge := func(name, help string, v float64) {
		out <- prometheus.MustNewConstMetric(c.desc(name, help, nil), prometheus.GaugeValue, v)
	}
	counter := func(name, help string, v int64, label, value string) {
		var names, values []string
		if label != "" {
			names, values = []string{label}, []string{value}
		}
		out <- prometheus.MustNewConstMetric(c.desc(name, help, names), prometheus.CounterValue, float64(v), values...)
	}
	lag := m.behind()
	gauge("clifftop_lag_seconds", "The longest lag of the simulation behind the wall clock in the last three seconds.",
		lag.recent.Seconds())
	gauge("clifftop_lag_max_seconds", "The longest lag behind the wall clock so far.", lag.most.Seconds())
	counter("clifftop_late_total", "Checks, four a second, that found a lag of more than 50 ms since the last one.",
		lag.late, "", "")
	gauge("clifftop_speed", "Simulated seconds per second of the wall clock.", m.options.Speed)
	gauge("clifftop_simulated_seconds", "Simulated time since the start.", m.now().Seconds())
	if !c.all {
		return
	}
	m.mu.Lock()
	ended, refused, held := m.outcomes, m.refusals, m.system.Held
	m.mu.Unlock()
	gauge("clifftop_requests_held", "Requests that wait at the router while no replica takes requests.", float64(held))
	for i, n := range ended {
		counter("clifftop_requests_total", "Requests that have ended, by outcome.", n, "outcome", event.Outcome(i).String())
	}
	for i, n := range refused {
		if f := event.Refusal(i); f != event.NotRefused {
			counter("clifftop_requests_rejected_total", "Requests that were rejected, by reason.", n, "reason",
				strings.ReplaceAll(f.String(), " ", "_"))
		}
	}
}
