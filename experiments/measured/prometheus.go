package measured

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"clifftop/experiments/scenario/yamldoc"
)

// prometheusFormat is the text of /metrics of vLLM or SGLang, in the format of Prometheus or OpenMetrics, and a dump of
// promtool. A file with several snapshots, one behind the other, is a window from the first to the last.
// Sources: vllm-project/vllm vllm/v1/metrics/loggers.py, sgl-project/sglang python/sglang/srt/metrics/collector.py.
func prometheusFormat() format {
	return format{
		Format: Format{Name: "prometheus", Layout: "text of /metrics of vLLM or SGLang, one snapshot or several; " +
			"promtool tsdb " +
			"dump and dump-openmetrics", Series: true, Source: "https://docs.vllm.ai/en/latest/usage/metrics.html"},
		is: func(f *file) bool {
			for n, l := range bytes.Split(f.text[:min(len(f.text), 1<<20)], []byte("\n")) {
				name := string(bytes.TrimPrefix(bytes.TrimSpace(l), []byte(`{__name__="`)))
				if _, ok := engineMetric(name); ok && isSample(string(bytes.TrimSpace(l))) {
					return true
				}
				if n > 20000 {
					return false
				}
			}
			return false
		},
		read: func(f *file, r *Result) {
			m := metrics{}
			for n, l := range strings.Split(string(f.text), "\n") {
				l = strings.TrimSpace(l)
				if l == "" || l[0] == '#' {
					continue
				}
				name, labels, p, err := exposition(l)
				if err != "" {
					f.fault(fmt.Sprintf("%s:%d", f.name, n+1), "", "%s in %q (want NAME{LABELS} VALUE [TIME])", err,
						yamldoc.Short(l))
					continue
				}
				m.add(name, labels, p)
			}
			m.result(f, r)
		},
	}
}

// isSample reports whether a line has a metric with a value: other files have keys such as sglang: in compose files.
func isSample(line string) bool {
	name, _, _, err := exposition(line)
	return err == "" && !strings.HasSuffix(name, ":")
}

// prometheusRangeFormat is the answer of Prometheus' HTTP API to query_range or query.
func prometheusRangeFormat() format {
	return format{
		Format: Format{Name: "prometheus-range", Layout: "JSON of Prometheus' api/v1/query_range with metrics of " +
			"vLLM or SGLang",
			Series: true, Source: "https://prometheus.io/docs/prometheus/latest/querying/api"},
		is: func(f *file) bool {
			o := f.root()
			return o.has("status") && (o.get("data").has("result") || o.has("error"))
		},
		read: func(f *file, r *Result) {
			o := f.root()
			if text := o.text("error"); text != "" {
				f.fault(f.name, "error", "Prometheus answered %q (want the result of a query)", yamldoc.Short(text))
				return
			}
			m := metrics{}
			for _, q := range o.get("data").items("result") {
				labels := map[string]string{}
				for k, v := range q.get("metric").m {
					labels[k], _ = v.(string)
				}
				name := labels["__name__"]
				delete(labels, "__name__")
				values, _ := q.m["values"].([]any)
				if v, ok := q.m["value"]; ok {
					values = []any{v}
				}
				for _, v := range values {
					pair, _ := v.([]any)
					if len(pair) != 2 {
						f.fault(f.name, q.path, "a value is no pair of time and text (want [SECONDS, \"VALUE\"])")
						return
					}
					at, _ := toNumber(pair[0])
					if x, ok := toNumber(pair[1]); ok {
						m.add(name, labels, point{at: at, timed: true, value: x})
					}
				}
				if name == "" {
					r.note("a series has no name, because its query has a function; it is left out (query the plain " +
						"metric)")
				}
			}
			m.result(f, r)
		},
	}
}

// point is a value of a series. The time is in seconds, or the number of the snapshot.
type point struct {
	at, value float64
	timed     bool
}

type promSeries struct {
	name   string // without the prefix of the engine and _total
	labels map[string]string
	points []point
}

// metrics are the series of an engine.
type metrics struct {
	engine, model string
	list          []*promSeries
	index         map[string]*promSeries
	foreign       bool // other metrics were there
}

// engineMetric cuts the prefix of an engine.
func engineMetric(name string) (rest string, ok bool) {
	for _, prefix := range []string{"vllm:", "sglang:", "vllm_", "sglang_"} {
		if rest, ok = strings.CutPrefix(name, prefix); ok {
			return rest, true
		}
	}
	return name, false
}

// add adds a value. A value of a series without times that is there already belongs to the next snapshot.
func (m *metrics) add(name string, labels map[string]string, p point) {
	rest, ok := engineMetric(name)
	if !ok {
		m.foreign = true
		return
	}
	if rank := labels["tp_rank"]; rank != "" && rank != "0" {
		return // each rank counts the same requests
	}
	m.engine, _, _ = strings.Cut(strings.ReplaceAll(name, "_", ":"), ":")
	if model := labels["model_name"]; model != "" {
		m.model = model
	}
	key := rest
	for _, k := range sortedKeys(labels) {
		key += "\x00" + k + "\x00" + labels[k]
	}
	if m.index == nil {
		m.index = map[string]*promSeries{}
	}
	s := m.index[key]
	if s == nil {
		s = &promSeries{name: strings.TrimSuffix(rest, "_total"), labels: labels}
		m.index[key], m.list = s, append(m.list, s)
	}
	if !p.timed {
		p.at = float64(len(s.points))
	}
	s.points = append(s.points, p)
}

func exposition(l string) (name string, labels map[string]string, p point, fault string) {
	labels = map[string]string{}
	at := strings.IndexAny(l, "{ \t")
	if at < 0 {
		return "", nil, p, "there is no value"
	}
	name, rest := l[:at], l[at:]
	if rest[0] == '{' {
		var ok bool
		if rest, ok = labelsOf(rest[1:], labels); !ok {
			return "", nil, p, "the labels do not end"
		}
	}
	if n := labels["__name__"]; n != "" {
		name = n
		delete(labels, "__name__")
	}
	rest, _, _ = strings.Cut(rest, " # ") // an exemplar
	words := strings.Fields(rest)
	if len(words) == 0 || len(words) > 2 {
		return "", nil, p, "there is no value"
	}
	x, err := strconv.ParseFloat(words[0], 64)
	if err != nil {
		return "", nil, p, "the value is no number"
	}
	p.value = x
	if len(words) == 2 {
		t, err := strconv.ParseFloat(words[1], 64)
		if err != nil || math.IsNaN(t) || math.IsInf(t, 0) {
			return "", nil, p, "the time is no number"
		}
		const firstMilliseconds = 1e11
		if t >= firstMilliseconds {
			t /= 1e3
		}
		p.at, p.timed = t, true
	}
	return name, labels, p, ""
}

// labelsOf reads labels up to the brace.
func labelsOf(s string, labels map[string]string) (rest string, ok bool) {
	for {
		s = strings.TrimLeft(s, ", \t")
		if s == "" {
			return "", false
		}
		if s[0] == '}' {
			return s[1:], true
		}
		name, after, ok := strings.Cut(s, "=")
		if !ok || !strings.HasPrefix(after, `"`) {
			return "", false
		}
		var b strings.Builder
		i := 1
		for ; i < len(after) && after[i] != '"'; i++ {
			if after[i] == '\\' && i+1 < len(after) {
				i++
				if after[i] == 'n' {
					b.WriteByte('\n')
					continue
				}
			}
			b.WriteByte(after[i])
		}
		if i >= len(after) {
			return "", false
		}
		labels[strings.TrimSpace(name)] = b.String()
		s = after[i+1:]
	}
}

// find returns the series of the first of the names that is there.
func (m *metrics) find(names ...string) []*promSeries {
	for _, name := range names {
		var out []*promSeries
		for _, s := range m.list {
			if s.name == name {
				out = append(out, s)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

// increase is by how much a counter rose, over restarts; of a single value it is the value.
func (s *promSeries) increase() float64 {
	if len(s.points) == 1 {
		return s.points[0].value
	}
	total := 0.0
	for i := 1; i < len(s.points); i++ {
		d := s.points[i].value - s.points[i-1].value
		if d < 0 {
			d = s.points[i].value
		}
		if !math.IsNaN(d) && !math.IsInf(d, 0) {
			total += d
		}
	}
	return total
}

// counter is the sum over engines; nil if there is none.
func (m *metrics) counter(names ...string) *float64 {
	list := m.find(names...)
	if len(list) == 0 {
		return nil
	}
	total := 0.0
	for _, s := range list {
		if reason := s.labels["finished_reason"]; reason == "abort" || reason == "error" {
			continue
		}
		total += s.increase()
	}
	return &total
}

// histogram is the mean and percentiles of a histogram over all engines, times a factor. Percentiles are interpolated
// in their bucket, as histogram_quantile does; one above the last bound is unknown.
func (m *metrics) histogram(by float64, names ...string) (s Statistics, count *float64, total *float64) {
	for _, name := range names {
		bounds := map[float64]float64{}
		for _, b := range m.find(name + "_bucket") {
			if le, err := strconv.ParseFloat(b.labels["le"], 64); err == nil {
				bounds[le] += b.increase()
			}
		}
		count, total = m.counter(name+"_count"), m.counter(name+"_sum")
		if inf, ok := bounds[math.Inf(1)]; count == nil && ok {
			count = &inf
		}
		if count == nil || *count == 0 {
			continue
		}
		s.Mean = times(quotient(total, count), by)
		s.P50, s.P90, s.P95, s.P99 = times(bucketQuantile(bounds, *count, 0.5), by),
			times(bucketQuantile(bounds, *count, 0.9), by),
			times(bucketQuantile(bounds, *count, 0.95), by), times(bucketQuantile(bounds, *count, 0.99), by)
		return s, count, total
	}
	return s, nil, nil
}

// bucketQuantile interpolates in cumulative buckets.
func bucketQuantile(bounds map[float64]float64, count, p float64) *float64 {
	list := make([]float64, 0, len(bounds))
	for le := range bounds {
		list = append(list, le)
	}
	slices.Sort(list)
	low, below := 0.0, 0.0
	for _, le := range list {
		n := bounds[le]
		if n >= p*count && !math.IsInf(le, 0) {
			x := le
			if n > below {
				x = low + (le-low)*(p*count-below)/(n-below)
			}
			return &x
		}
		low, below = le, n
	}
	return nil
}
