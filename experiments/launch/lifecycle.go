package launch

import (
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
	"clifftop/internal/pattern"
)

// engineMetrics maps parts of the names of metrics of vLLM, SGLang, the endpoint picker and Knative to metrics of a
// scenario.
var engineMetrics = []struct {
	part   *pattern.Pattern
	metric string
}{
	{pattern.New(`(?s)num_requests_running.*\+.*num_requests_waiting`), "concurrency"},
	{pattern.New(`(?s)num_requests_waiting.*\+.*num_requests_running`), "concurrency"},
	{pattern.New(`num_requests_waiting|num_queue_reqs|flow_control_queue_size|average_queue_size`), "waiting"},
	{pattern.New(`num_requests_running|num_running_reqs|average_running_requests`), "running"},
	{pattern.New(`cache_usage_perc|kv_cache_utilization|token_usage`), "kv-usage"},
	{pattern.New(`^concurrency$|num_incoming_requests`), "concurrency"},
}

// scale writes the autoscalers of the groups: lifecycle.autoscale, a map, or a list with one for each pool.
func (m *Imported) scale(builders []*builder) {
	var scalers []*yamldoc.Node
	for i, b := range builders {
		n := m.scaler(b)
		if n == nil {
			continue
		}
		if len(builders) > 1 {
			n.Put("pool", yamldoc.Place{}, text(b.group.poolName(i)))
			if pool := m.Root.Get("pools").Items[i]; pool != nil {
				pool.Put("replicas", yamldoc.Place{}, nil)
			}
		} else if d := m.Root.Get("deployment"); d != nil {
			d.Put("replicas", yamldoc.Place{}, nil)
			if len(d.Fields) == 0 {
				m.Root.Put("deployment", yamldoc.Place{}, nil)
			}
		}
		scalers = append(scalers, n)
	}
	if len(scalers) == 0 {
		return
	}
	all := scalers[0]
	if len(builders) > 1 {
		all = &yamldoc.Node{Kind: yamldoc.List, Items: scalers}
	}
	m.Root.MapAt("lifecycle", yamldoc.Place{}).Put("autoscale", yamldoc.Place{}, all)
	m.Assumed = append(m.Assumed, "lifecycle.cold_start has the default of a scenario, 2m: no file says how long "+
		"an engine starts")
}

// scaler is the autoscaler of one group as a map; nil if there is none, or none that is modelled.
func (m *Imported) scaler(b *builder) *yamldoc.Node {
	g, s := b.group, b.group.Scaler
	if s == nil {
		return nil
	}
	metric, ok := "", false
	for _, e := range engineMetrics {
		if e.part.Get().MatchString(s.Metric) {
			metric, ok = e.metric, true
			break
		}
	}
	replicas := max(g.Replicas, 1)
	switch {
	case !ok, s.Target <= 0, g.Max <= 0, s.Policy == "knative" && metric != "concurrency":
		name := strings.Join(strings.Fields(s.Metric), " ")
		if name == "" {
			name = "a metric that is not given"
		}
		m.Notes = append(m.Notes, Note{s.At, s.At.String() + ": scaling by " + yamldoc.Short(name) +
			" is not modelled; there are always " + strconv.Itoa(replicas*max(b.engines, 1)) + " replicas"})
		return nil
	case max(b.engines, 1) > 1:
		m.Notes = append(m.Notes, Note{s.At, s.At.String() +
			": scaling of replicas with several engines each is not modelled"})
		return nil
	}
	least := g.Min
	if s.Policy == "hpa" || metric != "waiting" && metric != "concurrency" {
		least = max(least, 1) // nothing would start the first replica
	}
	n := &yamldoc.Node{Kind: yamldoc.Map}
	at := Flag{Name: s.Policy, Value: s.Metric, File: true, At: s.At}
	n.Put("policy", s.At, text(s.Policy))
	n.Put("min", s.At, whole(min(least, g.Max)))
	n.Put("max", s.At, whole(g.Max))
	if start := min(max(replicas, least, 1), g.Max); start > max(least, 1) {
		n.Put("initial", s.At, whole(start))
	}
	if s.Policy != "knative" {
		n.Put("metric", s.At, text(metric))
	}
	n.Put("target", s.At, number(s.Target))
	for _, f := range s.Options {
		n.Put(f.Name, f.At, text(f.Value))
	}
	n.Comment = at.Written()
	return n
}
