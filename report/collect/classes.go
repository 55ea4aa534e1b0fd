package collect

import (
	"slices"

	"clifftop/report"
	"clifftop/report/stats"
	"clifftop/sim/clock"
	"clifftop/sim/event"
	"clifftop/workload"
)

// A ClassSpan is a kind of requests that are also reported apart.
type ClassSpan struct {
	Name string
	// SLO is the class's own; nil for none.
	SLO *report.SLO
}

// Limited reports whether an SLO, or that of a class, limits anything.
func (o *Options) Limited() bool {
	return o.SLO.Limits() || slices.ContainsFunc(o.Classes, func(k ClassSpan) bool { return k.SLO.Limits() })
}

// MaxClasses is the number of classes up to which they are reported apart: each takes about a megabyte.
const MaxClasses = 100

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
		all = append(all, New(own))
	}
	return all
}

// perRequest is the objective without limits on single gaps.
func perRequest(s *report.SLO) *report.SLO {
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

// ownSLOs reports whether the run has no objective of its own, but some of its classes have.
func (a classes) ownSLOs(o *Options) bool {
	return o.SLO == nil && len(a) > 0 && slices.ContainsFunc(o.Classes, func(k ClassSpan) bool { return k.SLO != nil })
}

// limitsOf are the limits on requests of a class: those of the run, or of the class where the run has none.
func (a classes) limitsOf(class uint16, run *Collector) *limits {
	if k := a.of(class); k != nil && run.opts.SLO == nil {
		return &k.limits
	}
	return &run.limits
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
func (c summariser) classResults(w *window) []report.Class {
	var results []report.Class
	for i, k := range c.classes {
		if k.totals.offered == 0 {
			continue
		}
		for k.line.width < c.line.width {
			k.line.halve()
		}
		sum, detail := k.line.total(min(w.from, len(k.line.buckets)), min(w.to, len(k.line.buckets)))
		var s report.Summary
		of := summariser{k}
		of.counts(&s)
		of.rates(&s, w, &sum)
		of.latencies(&s, w, &sum, detail)
		of.goodput(&s, w, &sum, detail)
		s.Goodput.WorkFraction, s.Goodput.GPUBusyFraction, s.Goodput.GPUWallFraction = nil, nil, nil
		results = append(results, report.Class{
			Name: c.opts.Classes[i].Name, Requests: s.Requests, Throughput: s.Throughput, Latency: s.Latency,
			Goodput:       s.Goodput,
			PrefixHitRate: stats.Ratio(float64(sum.cached), float64(sum.input)),
		})
	}
	return results
}
