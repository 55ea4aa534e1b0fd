package report

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"clifftop/internal/pattern"
	"clifftop/report/layout"
	"clifftop/report/stats"
)

// Metric describes one number of a [Summary]. CSV columns, comparisons, tables, keys of an SLO, the pooling of
// replications, tiles of the playground and docs/metrics.md are made from the catalogue of metrics; see [Metrics].
type Metric struct {
	// Path is the place of the number in the JSON form of a summary, such as "latency_ms.ttft.p99". An item of a list
	// is "*". A metric that is computed from other numbers has a name without dots.
	Path string
	// Title names the metric in tables, Unit is its unit; empty for a fraction or an index.
	Title, Unit string
	Better      Better
	// Pool says how the numbers of several runs become one.
	Pool Pooling
	// Unbounded says that the number has no limit in an overloaded system as the run gets longer. It has no confidence
	// interval there.
	Unbounded bool
	// CSV is the name of the column in curve.csv; empty for none.
	CSV string
	// MinSamples is the number of samples that tables want before they show the number; 0 for a number without samples.
	MinSamples int64
	// Line is the line of the text summary that shows the number, after Label; empty for none.
	Line  Line
	Label string
	// Prometheus is the vLLM metric that measures the same, as an expression; empty for none.
	Prometheus string
	// Of reads the number; nil if it is unknown.
	Of func(*Summary) *float64
}

// Line is a line of the text summary.
type Line string

// The lines that list metrics.
const (
	RequestsLine Line = "requests" // counts above 0
	AttemptsLine Line = "attempts" // counts above 0
	GPULine      Line = "GPU"
	CacheLine    Line = "cache" // the end of the line of the GPU
	GPUTimeLine  Line = "GPU time"
	WaitingLine  Line = "waiting"
)

// MetricsOf returns the metrics that a line shows, in the order of the catalogue.
func MetricsOf(line Line) []*Metric {
	return lineMetrics()[line]
}

var lineMetrics = sync.OnceValue(func() map[Line][]*Metric {
	lines := make(map[Line][]*Metric)
	for _, m := range Metrics() {
		if m.Line != "" {
			lines[m.Line] = append(lines[m.Line], &m)
		}
	}
	return lines
})

func metricsAt(paths ...string) []*Metric {
	list := make([]*Metric, len(paths))
	for i, path := range paths {
		list[i] = MetricAt(path)
	}
	return list
}

// Better says which direction is an improvement.
type Better int

// The directions.
const (
	Neither Better = iota // a fact about the run
	Higher
	Lower
)

func (b Better) String() string { return [...]string{"", "higher", "lower"}[b] }

// Heading is the title with the unit of a latency.
func (m *Metric) Heading() string {
	if m.Unit == "ms" {
		return m.Title + ", ms"
	}
	return m.Title
}

// Text writes a value with its unit; a fraction in percent.
func (m *Metric) Text(v float64) string {
	switch m.Unit {
	case "":
		return layout.Percent(v)
	case "ms":
		return layout.Milliseconds(v)
	}
	return layout.Digits(v) + " " + m.Unit
}

// Reliable is the number, or nil if it has fewer samples than MinSamples.
func (m *Metric) Reliable(s *Summary) *float64 {
	if m.MinSamples > 0 {
		if d := distributionAt(s, m.Path[:strings.LastIndexByte(m.Path, '.')]); d == nil || d.Samples() < m.MinSamples {
			return nil
		}
	}
	return m.Of(s)
}

// metricsByPath is the catalogue as a map.
var metricsByPath = sync.OnceValue(func() map[string]*Metric {
	all := make(map[string]*Metric)
	for _, m := range Metrics() {
		all[m.Path] = &m
	}
	return all
})

// FindMetric returns the metric of a path; nil if the catalogue has none.
func FindMetric(path string) *Metric { return metricsByPath()[path] }

// MetricAt returns the metric of a path. It panics if the catalogue has none.
func MetricAt(path string) *Metric {
	if m := FindMetric(path); m != nil {
		return m
	}
	panic(fmt.Sprintf("report: the catalogue of metrics has no %q", path))
}

var listIndex = pattern.New(`\.\d+(\.|$)`)

// pooledMetric returns the metric of a path in which items of lists have their index. Numbers of a replica, a stage or
// a class have the metric of the whole run unless they have one of their own.
func pooledMetric(path string) *Metric {
	general := listIndex.Get().ReplaceAllString(path, ".*$1")
	if m := metricsByPath()[general]; m != nil {
		return m
	}
	return MetricAt(wholeRun(general))
}

func wholeRun(path string) string {
	for _, part := range [...]string{"replicas.*.", "stages.*."} {
		if rest, ok := strings.CutPrefix(path, part); ok {
			return rest
		}
	}
	rest, ok := strings.CutPrefix(path, "classes.*.")
	if ok && rest == "prefix_hit_rate" {
		return "system." + rest
	}
	return rest
}

// accessor reads the number of a path; nil for an item of a list.
func accessor(path string) func(*Summary) *float64 {
	if strings.Contains(path, "*") {
		return nil
	}
	index := fieldsAt(path)
	return func(s *Summary) *float64 {
		v := valueAt(s, index)
		switch v.Kind() {
		case reflect.Float64:
			return stats.Finite(v.Float())
		case reflect.Int, reflect.Int64:
			return stats.Finite(float64(v.Int()))
		}
		return nil
	}
}

// distributionAt is the distribution of a path; nil if there is none.
func distributionAt(s *Summary, path string) *Distribution {
	v := valueAt(s, fieldsAt(path))
	if !v.IsValid() {
		return nil
	}
	d, _ := v.Addr().Interface().(*Distribution)
	return d
}

// fieldsAt finds the indices of the fields of a path.
func fieldsAt(path string) []int {
	var index []int
	t := reflect.TypeFor[Summary]()
	for part := range strings.SplitSeq(path, ".") {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		found := false
		for i := range t.NumField() {
			f := t.Field(i)
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name == part && f.IsExported() {
				index, t, found = append(index, i), f.Type, true
				break
			}
		}
		if !found {
			panic(fmt.Sprintf("report: a summary has no %q", path))
		}
	}
	return index
}

// valueAt follows fields and pointers; the zero value where a pointer is nil.
func valueAt(s *Summary, index []int) reflect.Value {
	v := reflect.ValueOf(s).Elem()
	for _, i := range index {
		v = v.Field(i)
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return reflect.Value{}
			}
			v = v.Elem()
		}
	}
	return v
}
