package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"clifftop/report/layout"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// A ClassSpan is a kind of requests that are also reported apart.
type ClassSpan struct {
	Name string
	// SLO is the class's own; nil for none.
	SLO *SLO
}

// MaxClasses is the number of classes up to which they are reported apart: each takes about a megabyte.
const MaxClasses = 100

// Class is what was measured of the requests of one class, over the window of the whole run. Answer tokens count when
// their request ends, since iterations do not tell whose tokens they produce; for the same reason there are no inter-token
// gaps.
type Class struct {
	Name       string     `json:"name"`
	Requests   Requests   `json:"requests"`
	Throughput Throughput `json:"throughput"`
	Latency    Latency    `json:"latency_ms"`
	// Goodput is by the class's own objective, or by that of the run.
	Goodput Goodput `json:"goodput"`
	// PrefixHitRate is the fraction of prompt tokens found in the cache.
	PrefixHitRate *float64 `json:"prefix_hit_rate"`
}

// classes count a run by class, each with a collector of its own that sees the class's requests alone.
type classes []*Collector

func newClasses(o Options) classes {
	if n := len(o.Classes); n < 2 && (n == 0 || o.Classes[0].SLO == nil) || n > MaxClasses {
		return nil
	}
	var all classes
	for _, k := range o.Classes {
		own := Options{SLO: perRequest(k.SLO), End: o.End, Expected: o.Expected, GPUs: o.GPUs, Warmup: o.Warmup}
		if k.SLO == nil {
			own.SLO = perRequest(o.SLO)
		}
		all = append(all, NewCollector(own))
	}
	return all
}

// perRequest is the objective without limits on single gaps.
func perRequest(s *SLO) *SLO {
	if s == nil {
		return nil
	}
	own := *s
	own.Objectives = nil
	for _, o := range s.Objectives {
		if o.Metric != "itl" {
			own.Objectives = append(own.Objectives, o)
		}
	}
	return &own
}

// of is the collector of a class; nil where it has none.
func (a classes) of(class uint16) *Collector {
	if int(class) < len(a) {
		return a[class]
	}
	return nil
}

func (a classes) arrived(at clock.Time, r *workload.Request) {
	if k := a.of(r.Class); k != nil {
		k.Arrived(at, r)
	}
}

func (a classes) finished(rec *event.Record) {
	if k := a.of(rec.Request.Class); k != nil {
		k.Finished(rec)
		at := ended(rec)
		if rec.Outcome == event.Completed {
			at = rec.ClientLast
		}
		k.line.upTo(at).output += int64(rec.Tokens)
	}
}

// classResults measures the classes over the window of the whole run. A class without requests is left out.
func (c *Collector) classResults(w *window) []Class {
	var results []Class
	for i, k := range c.classes {
		if k.totals.offered == 0 {
			continue
		}
		for k.line.width < c.line.width {
			k.line.halve()
		}
		sum, detail := k.line.total(min(w.from, len(k.line.buckets)), min(w.to, len(k.line.buckets)))
		var s Summary
		k.counts(&s)
		k.rates(&s, w, &sum)
		k.latencies(&s, w, &sum, detail)
		k.goodput(&s, w, &sum, detail)
		s.Goodput.WorkFraction, s.Goodput.GPUBusyFraction, s.Goodput.GPUWallFraction = nil, nil, nil
		results = append(results, Class{
			Name: c.opts.Classes[i].Name, Requests: s.Requests, Throughput: s.Throughput, Latency: s.Latency, Goodput: s.Goodput,
			PrefixHitRate: stats.Ratio(float64(sum.cached), float64(sum.input)),
		})
	}
	return results
}

// poolClasses pools the classes of several runs by their names; one that a run lacks is left out.
func poolClasses(runs []*Summary) []Class {
	var pooled []Class
	for _, k := range runs[0].Classes {
		var of []*Summary
		for _, r := range runs {
			for _, x := range r.Classes {
				if x.Name == k.Name {
					of = append(of, &Summary{
						Window: r.Window, Requests: x.Requests, Throughput: x.Throughput, Latency: x.Latency, Goodput: x.Goodput,
						System: System{PrefixHitRate: x.PrefixHitRate},
					})
				}
			}
		}
		if len(of) < len(runs) {
			continue
		}
		s := Pool(of)
		pooled = append(pooled, Class{
			Name: k.Name, Requests: s.Requests, Throughput: s.Throughput, Latency: s.Latency, Goodput: s.Goodput, PrefixHitRate: s.System.PrefixHitRate,
		})
	}
	return pooled
}

// WriteClasses writes classes.csv of a run: a row for each class, with the columns of curve.csv that requests tell.
func WriteClasses(w io.Writer, list []Class) error {
	out := csv.NewWriter(w)
	names, keep := classColumns()
	if err := out.Write(append([]string{"class"}, names...)); err != nil {
		return err
	}
	for i := range list {
		if err := out.Write(append([]string{list[i].Name}, list[i].row(keep)...)); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WriteClassesCSV writes classes.csv of a sweep: a row for each class of each point, after the point's value.
func (c *Curve) WriteClassesCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	names, keep := classColumns()
	if err := out.Write(append([]string{c.Over, "class"}, names...)); err != nil {
		return err
	}
	for at, p := range c.Points {
		s, err := c.Summary(at)
		if err != nil {
			return err
		}
		if s == nil {
			continue
		}
		for i := range s.Classes {
			k := &s.Classes[i]
			if err := out.Write(append([]string{strconv.FormatFloat(p.Value, 'g', -1, 64), k.Name}, k.row(keep)...)); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

// classColumns are the columns of curve.csv that requests tell, and their places.
func classColumns() (names []string, keep []int) {
	for i, c := range columns() {
		switch c.name {
		case "offered", "completed", "rejected", "offered_requests_per_s", "requests_per_s", "output_tokens_per_s", "input_tokens_per_s",
			"prefix_hit_rate", "attainment", "goodput_requests_per_s", "goodput_output_tokens_per_s":
		default:
			if !strings.HasSuffix(c.name, "_ms") || strings.HasPrefix(c.name, "itl_") {
				continue
			}
		}
		names, keep = append(names, c.name), append(keep, i)
	}
	return names, keep
}

// row has the columns to keep.
func (k *Class) row(keep []int) []string {
	s := Summary{Requests: k.Requests, Throughput: k.Throughput, Latency: k.Latency, Goodput: k.Goodput, System: System{PrefixHitRate: k.PrefixHitRate}}
	all := s.row()
	var row []string
	for _, n := range keep {
		row = append(row, all[n])
	}
	return row
}

// classGrid has a row for each class.
func classGrid(s *Summary, t *layout.Text) {
	if len(s.Classes) == 0 {
		return
	}
	rows := [][]string{{"class", "offered", "req/s", "tok/s", "TTFTp50", "p95", "TPOTp50", "p95", "good"}}
	for i := range s.Classes {
		k := &s.Classes[i]
		l := &k.Latency
		good := "–"
		if a := k.Goodput.Attainment; a != nil {
			good = layout.Percent(*a)
		}
		rows = append(rows, []string{k.Name, fmt.Sprint(k.Requests.Offered), layout.Cell(k.Throughput.RequestsPerS), layout.Cell(k.Throughput.OutputTokensPerS),
			layout.Cell(l.TTFT.P50), layout.Cell(l.TTFT.P95), layout.Cell(l.TPOT.P50), layout.Cell(l.TPOT.P95), good})
	}
	if t.Markdown {
		t.Blank()
	}
	t.Grid(rows, 8)
	if !t.Markdown {
		t.Blank()
	}
}
