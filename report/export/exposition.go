package export

import (
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"clifftop/sim/clock"
)

// Epoch is the instant that the start of a run has in metrics over time: simulated time has no date of its own, and
// Prometheus shows what has one.
var Epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

// Interval is the time between two samples.
func (m *Metrics) Interval() time.Duration { return time.Duration(m.step / clock.Nanosecond) }

// Length is the time that the samples cover.
func (m *Metrics) Length() time.Duration { return time.Duration(m.slots) * m.Interval() }

// WriteText writes the state at the end of the run in Prometheus' text format, version 0.0.4: what vLLM's /metrics
// would have shown then.
func (m *Metrics) WriteText(w io.Writer) error {
	m.closeLifecycles()
	return m.write(w, exposition{from: m.slots})
}

// WriteOpenMetrics writes all samples with their instants, from [Epoch] on, in OpenMetrics 1.0: the format that
// promtool tsdb create-blocks-from openmetrics turns into data of a Prometheus server.
func (m *Metrics) WriteOpenMetrics(w io.Writer) error {
	m.closeLifecycles()
	return m.write(w, exposition{open: true})
}

type exposition struct {
	w    io.Writer
	b    []byte
	err  error
	open bool // OpenMetrics, with instants
	from int  // the first sample to write: 0 is the start of the run, before all slots
}

func (m *Metrics) write(w io.Writer, x exposition) error {
	x.w = w
	for g := range gaugeFamilies {
		if g == kvUsage && !m.limited() {
			continue
		}
		x.head(&gaugeFamilies[g])
		m.each(func(e *engine, labels string) { x.gauge(m, e, g, labels) })
	}
	last := ""
	for c := range counterFamilies {
		f := &counterFamilies[c]
		if c >= draftsMade && !m.info.Speculative {
			break
		}
		if f.name != last {
			x.head(&f.family)
			last = f.name
		}
		m.each(func(e *engine, labels string) {
			if f.reason != "" {
				labels += `,finished_reason="` + f.reason + `"`
			}
			x.counter(m, e, c, labels)
		})
	}
	for h := range histograms {
		x.head(&m.families[h])
		m.each(func(e *engine, labels string) { x.histogram(m, e, h, labels) })
	}
	x.config(m)
	if m.info.Lifecycle {
		x.lifecycle(m)
	}
	if x.open {
		x.b = append(x.b, "# EOF\n"...)
	}
	x.flush()
	return x.err
}

// each calls f with every engine and its labels.
func (m *Metrics) each(f func(e *engine, labels string)) {
	for i := range m.engines {
		f(&m.engines[i], `engine="`+strconv.Itoa(i)+`",model_name=`+quote(m.info.Engines[i].Model))
	}
}

// quote makes a label's value of a text. It must be valid UTF-8.
func quote(v string) string {
	v = strings.ToValidUTF8(v, "\uFFFD")
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(v) + `"`
}

func (x *exposition) head(f *family) {
	name := f.name
	if f.kind == counter && !x.open {
		name += "_total"
	}
	x.b = append(x.b, "# HELP "+name+" "+f.help+"\n# TYPE "+name+" "+f.kind.String()+"\n"...)
}

// samples writes the values of a series: the first, and those that next gives for each instant in turn.
func (x *exposition) samples(m *Metrics, name, labels string, first float64, next func(slot int) float64) {
	for k := 0; k <= m.slots; k++ {
		v := first
		if k > 0 {
			v = next(k - 1)
		}
		if k < x.from {
			continue
		}
		x.b = append(append(append(append(x.b, name...), '{'), labels...), "} "...)
		x.b = appendValue(x.b, v)
		if x.open {
			at := Epoch.Add(time.Duration(k) * m.Interval())
			x.b = strconv.AppendFloat(append(x.b, ' '), float64(at.UnixMilli())/1000, 'f', -1, 64)
		}
		if x.b = append(x.b, '\n'); len(x.b) >= eventBuffer {
			x.flush()
		}
	}
}

// appendValue appends a number, whole ones without a point.
func appendValue(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

func (x *exposition) flush() {
	if x.err == nil && len(x.b) > 0 {
		_, x.err = x.w.Write(x.b)
	}
	x.b = x.b[:0]
}

// slot returns the events of the k-th interval; nil if there are none.
func (e *engine) slot(k int) *slot {
	if k < len(e.slots) {
		return &e.slots[k]
	}
	return nil
}

func (x *exposition) gauge(m *Metrics, e *engine, g int, labels string) {
	value := 0.0
	x.samples(m, gaugeFamilies[g].name, labels, 0, func(k int) float64 {
		if s := e.slot(k); s != nil && s.gauges[g].set {
			value = s.gauges[g].value
		}
		return value
	})
}

func (x *exposition) counter(m *Metrics, e *engine, c int, labels string) {
	var sum int64
	x.samples(m, counterFamilies[c].name+"_total", labels, 0, func(k int) float64 {
		if s := e.slot(k); s != nil {
			sum += s.counters[c]
		}
		return float64(sum)
	})
}

func (x *exposition) histogram(m *Metrics, e *engine, h int, labels string) {
	f := &m.families[h]
	for i := 0; i <= len(f.bounds); i++ {
		le := "+Inf"
		if i < len(f.bounds) {
			le = bound(float64(f.bounds[i]) / f.unit)
		}
		var sum uint64
		x.samples(m, f.name+"_bucket", labels+`,le="`+le+`"`, 0, func(k int) float64 {
			if s := e.slot(k); s != nil && s.buckets[h].counts != nil {
				for _, n := range s.buckets[h].counts[:i+1] {
					sum += n
				}
			}
			return float64(sum)
		})
	}
	var n uint64
	x.samples(m, f.name+"_count", labels, 0, func(k int) float64 {
		if s := e.slot(k); s != nil {
			n += s.buckets[h].n
		}
		return float64(n)
	})
	sum := tally{}.sum
	x.samples(m, f.name+"_sum", labels, 0, func(k int) float64 {
		if s := e.slot(k); s != nil {
			sum = sum.Add(s.buckets[h].sum)
		}
		return sum.Float64() / f.unit
	})
}

// bound writes a bucket's bound as Prometheus' Python client does: always with a point or an exponent.
func bound(v float64) string {
	if v >= 1e6 {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// config writes the labels of the KV caches' configurations.
func (x *exposition) config(m *Metrics) {
	if !m.limited() {
		return
	}
	x.head(&configFamily)
	for i, e := range m.info.Engines {
		labels := `engine="` + strconv.Itoa(i) + `"`
		for _, key := range configKeys(e.Config) {
			labels += "," + key + "=" + quote(e.Config[key])
		}
		if len(e.Config) > 0 {
			x.samples(m, configFamily.name, labels, 1, func(int) float64 { return 1 })
		}
	}
}

var configFamily = family{name: "vllm:cache_config_info", help: "Information of the LLMEngine CacheConfig"}

// configKeys are the labels of a configuration in order.
func configKeys(config map[string]string) []string { return slices.Sorted(maps.Keys(config)) }
